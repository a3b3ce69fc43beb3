// What the queue engine offers a server's handler; implemented in Rust, in src/calls.rs.
//
// A function that returns an int returns 0, or one of the numbers below with a text in the fault.
// Nothing throws. A connection and a cursor are used by one thread at a time; evq_connection_kill may
// be called by any.

#pragma once
#include <stddef.h>
#include <stdint.h>

extern "C" {

enum evq_code {
  EVQ_FULL = 2,
  EVQ_IO = 3,
  EVQ_CORRUPT = 4,
  EVQ_POISONED = 5,
  EVQ_MISSING = 6,
  EVQ_TOO_LARGE = 7,
  EVQ_MISUSE = 8,
  EVQ_PANIC = 9
};

struct evq_fault { char text[512]; };

struct evq_connection;
struct evq_cursor;

struct evq_options {
  uint32_t sync_rows;      // 0 never, 1 each half second, 2 before it is acknowledged
  uint32_t sync_removals;
  uint64_t map_bytes;
  uint64_t slice_bytes;
  uint32_t compacts;       // 0: only when asked
};

struct evq_stats {
  uint64_t rows, owned, waiters, appended, removed, files, bytes, memory;
  uint64_t dead_bytes;  // of bytes, roughly
  uint64_t waits_at_once, waits_later, waits_timed_out;
  uint64_t back_by_abort, back_by_close;
  uint64_t groups, requests, syncs;
};

// The data directory is the one that the server is in.
int evq_start(evq_fault *);
void evq_stop();
void evq_set_options(const evq_options *);

// Of a server that keeps names in a dictionary: what a statement does to a name holds when that has it, and is taken back
// when it has not. Until then, and after a crash, evq_settle_names is to be called.
struct evq_statement {
  evq_connection *by;
  uint64_t table;  // the table's number in the dictionary; 0: it is not in it yet
};
// Where the table of this number is, or, of number 0, the one at this path. 1: `place` has its path; 0: the dictionary has
// none; -1: it cannot be asked.
typedef int (*evq_look_up)(void *of, uint64_t table, const char *path, char *place, size_t bytes);

// Tables are meant by their path without a suffix. Without a statement it is done for good.
int evq_create(const char *path, const uint8_t *layout, size_t bytes, const evq_statement *, evq_fault *);
int evq_rename(const char *from, const char *to, const evq_statement *, evq_fault *);
int evq_drop(const char *path, const evq_statement *, evq_fault *);
// Fails where the functions could not be told this name: no queue gets it. Whoever takes back what was done does not ask.
int evq_name(const char *path, evq_fault *);
// For MariaDB, which drops queues without the engine: removes what is left of those that it has no file of in a schema that
// is about to go; and what the error log is to say of all of them.
int evq_drop_forgotten_in(const char *schema, evq_fault *);
int evq_forgotten(void (*print)(void *, const uint8_t *text, size_t bytes), void *of, evq_fault *);
// The connection's statement has ended; null: only what others have left, or a crash.
int evq_settle_names(evq_connection *, evq_look_up, void *of, evq_fault *);
int evq_are_names_settled();
// The numbers of a table, a line each.
int evq_numbers_of(const char *path, void (*print)(void *, const uint8_t *text, size_t bytes), void *of, evq_fault *);
int evq_compact(const char *path, evq_fault *);
// Sums over tables that are open, and what was counted in those that were.
int evq_totals(evq_stats *, evq_fault *);
// The numbers of each open table, and the sums.
int evq_status(void (*print)(void *, const uint8_t *text, size_t bytes), void *of, evq_fault *);

// `id` is the server's number of it. Null when that fails.
evq_connection *evq_connection_new(uint64_t id);
void evq_connection_free(evq_connection *);
// As if it were new: what it owns goes back.
void evq_connection_reset(evq_connection *);
void evq_connection_kill(const evq_connection *);

// The answer is the table's number from 1; 0 when the time is over, -1 when somebody ended it, -2 when
// there is no such table. A condition is null for any row.
int evq_wait(evq_connection *, const char *const *paths, const char *const *conditions, size_t count, uint64_t most, double timeout_s,
             int (*is_killed)(void *), void *of, int64_t *answer, evq_fault *);
// Whether a wait would ask: fails as it would for a condition that is none; `*is_there` is 0 when there is no such table.
int evq_look(const char *const *paths, const char *const *conditions, size_t count, int *is_there, evq_fault *);
// Removes what is owned, as evq_wait begins; whether there is any.
int evq_consume(evq_connection *, evq_fault *);
int evq_holds(const evq_connection *);
int evq_end(evq_connection *, evq_fault *);
int evq_abort(evq_connection *, evq_fault *);
int evq_row_id(const evq_connection *, uint64_t *id, evq_fault *);
int evq_set_source(evq_connection *, uint64_t slot, int is_reset, uint64_t id, evq_fault *);

// Rows that this connection inserts into that table are copies of those that it reads with evq_copy.
void evq_copies_to(evq_connection *, const char *path);

int evq_open(const char *path, evq_cursor **, evq_fault *);
int evq_close(evq_cursor *, evq_fault *);
// Rows between these two are there together; with drops they are not there at all.
void evq_gather(evq_cursor *);
int evq_gathered(evq_cursor *, evq_connection *, int drops, evq_fault *);
int evq_insert(evq_cursor *, evq_connection *, const uint8_t *row, size_t bytes, evq_fault *);
void evq_scan(evq_cursor *, const evq_connection *);
// Scans all rows, whoever owns them, for the table that the connection copies to. That one takes this one's
// place when it is renamed.
int evq_copy(evq_cursor *, evq_connection *, evq_fault *);
int evq_next(evq_cursor *, uint64_t *id, evq_fault *);  // id 0: the end
int evq_read(evq_cursor *, uint64_t id, int *found, evq_fault *);
const uint8_t *evq_row(const evq_cursor *, size_t *bytes);
uint64_t evq_row_at_hand(const evq_cursor *);
int evq_doom(evq_cursor *, const evq_connection *);  // 0: somebody else has the row
int evq_settle(evq_cursor *, evq_connection *, evq_fault *);
// Reads all rows, whoever owns them: fails where one is not what was written.
int evq_check(const evq_cursor *, int (*is_killed)(void *), void *of, evq_fault *);
int evq_truncate(const evq_cursor *, evq_fault *);
void evq_cursor_stats(const evq_cursor *, evq_stats *);
}
