// The functions of SQL, the same for every family of servers: ha_queue.h and names.h are the family's.

#include "ha_queue.h"
#include "names.h"
#include <mysql/plugin.h>
#include <vector>

// A macro of the server's own queues.
#undef queue_end

#define UDF extern "C"

static const double PATIENCE_S = 60;

static bool refuse(char *message, const char *why) {
  strcpy(message, why);
  return true;
}

// What a function works on: `[db.]table[:condition]`, as the caller may use it.
struct Named {
  std::string path, condition;
  bool is_there = false, is_conditional = false;
};

static bool find(THD *thd, const char *text, size_t length, Named *found) {
  std::string whole(text, length), db, table;
  size_t colon = whole.find(':');
  if (colon != std::string::npos) {
    found->condition = whole.substr(colon + 1);
    found->is_conditional = true;
    whole.resize(colon);
  }
  size_t dot = whole.find('.');
  if (dot != std::string::npos) {
    db = whole.substr(0, dot);
    table = whole.substr(dot + 1);
  } else {
    db = current_database(thd);
    table = whole;
  }
  if (db.empty()) {
    my_error(ER_NO_DB_ERROR, MYF(0));
    return false;
  }
  if (table.empty()) return true;
  if (!may_take(thd, db, table)) return false;
  found->path = path_of(db, table);
  found->is_there = true;
  return true;
}

static int is_killed(void *thd) { return thd_killed((THD *)thd); }

static my_bool takes_tables(UDF_INIT *init, UDF_ARGS *args, char *message, const char *usage) {
  if (const char *why = why_not_here(current_thd)) return refuse(message, why);
  if (args->arg_count == 0) return refuse(message, usage);
  uint last = args->arg_count - 1;
  for (uint at = 0; at <= last; at++) {
    bool is_text = args->arg_type[at] == STRING_RESULT;
    if (is_text) continue;
    if (at != last || at == 0) return refuse(message, usage);
    args->arg_type[at] = REAL_RESULT;
  }
  // With constant arguments it is one, but not a cheap one: so `SELECT … WHERE queue_wait('t')` asks it once, when the
  // statement is executed and before a row is read.
  init->maybe_null = 1;
  return 0;
}

static longlong wait_for(UDF_ARGS *args, uint tables, uint64_t most, double timeout_s, uchar *is_null,
                         uchar *error) {
  THD *thd = current_thd;
  std::vector<Named> named(tables);
  std::vector<const char *> paths, conditions;
  for (uint at = 0; at < tables; at++) {
    if (!args->args[at]) return *is_null = 1, 0;
    if (!find(thd, args->args[at], args->lengths[at], &named[at])) return *error = 1, 0;
    if (!named[at].is_there) return *is_null = 1, 0;
    paths.push_back(named[at].path.c_str());
    conditions.push_back(named[at].is_conditional ? named[at].condition.c_str() : nullptr);
  }
  int64_t answer = 0;
  evq_fault fault;
  wait_begins(thd);
  int code = evq_wait(connection_of(thd), paths.data(), conditions.data(), paths.size(), most, timeout_s, is_killed,
                      thd, &answer, &fault);
  wait_ends(thd);
  if (code) return told(code, fault), *error = 1, 0;
  if (answer == -2) return *is_null = 1, 0;
  if (answer == -1) return my_error(ER_QUERY_INTERRUPTED, MYF(0)), *error = 1, 0;
  return answer;
}

// queue_wait('[db.]table[:condition]', ..., [seconds]): the number of the table that gave a row, from 1.
UDF my_bool queue_wait_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  return takes_tables(init, args, message, "use: queue_wait('[database.]table[:condition]', ..., [seconds])");
}

UDF longlong queue_wait(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  uint tables = args->arg_count;
  double timeout_s = PATIENCE_S;
  if (args->arg_type[tables - 1] != STRING_RESULT) {
    tables--;
    if (!args->args[tables]) return *is_null = 1, 0;
    timeout_s = *(double *)args->args[tables];
  }
  return wait_for(args, tables, 1, timeout_s, is_null, error);
}

// queue_wait_n('[db.]table[:condition]', rows, seconds): as queue_wait of one table, for up to so many rows.
UDF my_bool queue_wait_n_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (args->arg_count != 3 || args->arg_type[0] != STRING_RESULT)
    return refuse(message, "use: queue_wait_n('[database.]table[:condition]', rows, seconds)");
  if (const char *why = why_not_here(current_thd)) return refuse(message, why);
  args->arg_type[1] = INT_RESULT;
  args->arg_type[2] = REAL_RESULT;
  init->maybe_null = 1;
  return 0;
}

UDF longlong queue_wait_n(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  if (!args->args[1] || !args->args[2] || *(longlong *)args->args[1] < 1) return *is_null = 1, 0;
  return wait_for(args, 1, *(longlong *)args->args[1], *(double *)args->args[2], is_null, error);
}

static my_bool takes_nothing(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (args->arg_count) return refuse(message, "this function takes no argument");
  init->const_item = 0;
  return 0;
}

static longlong done(int code, const evq_fault &fault, uchar *error) {
  if (!code) return 1;
  told(code, fault);
  *error = 1;
  return 0;
}

UDF my_bool queue_end_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  return takes_nothing(init, args, message);
}
UDF longlong queue_end(UDF_INIT *, UDF_ARGS *, uchar *, uchar *error) {
  evq_fault fault;
  return done(evq_end(connection_of(current_thd), &fault), fault, error);
}

UDF my_bool queue_abort_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  return takes_nothing(init, args, message);
}
UDF longlong queue_abort(UDF_INIT *, UDF_ARGS *, uchar *, uchar *error) {
  evq_fault fault;
  return done(evq_abort(connection_of(current_thd), &fault), fault, error);
}

UDF my_bool queue_rowid_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  init->maybe_null = 1;
  return takes_nothing(init, args, message);
}
UDF longlong queue_rowid(UDF_INIT *, UDF_ARGS *, uchar *is_null, uchar *error) {
  uint64_t id = 0;
  evq_fault fault;
  int code = evq_row_id(connection_of(current_thd), &id, &fault);
  if (code) return done(code, fault, error);
  if (!id) *is_null = 1;
  return (longlong)id;
}

// queue_set_srcid(slot, 'a' or 'w', id): what the next INSERT comes from.
UDF my_bool queue_set_srcid_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (args->arg_count != 3 || args->arg_type[1] != STRING_RESULT)
    return refuse(message, "use: queue_set_srcid(slot, 'a' or 'w', rowid)");
  args->arg_type[0] = args->arg_type[2] = INT_RESULT;
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}
UDF longlong queue_set_srcid(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  for (uint at = 0; at < 3; at++)
    if (!args->args[at]) return *is_null = 1, 0;
  char mode = args->lengths[1] == 1 ? args->args[1][0] : 0;
  evq_fault fault = {"the second argument is 'a', to pass over rows that came before, or 'w', to take them"};
  if (mode != 'a' && mode != 'w') return done(EVQ_MISUSE, fault, error);
  int code = evq_set_source(connection_of(current_thd), *(longlong *)args->args[0], mode == 'w',
                            *(longlong *)args->args[2], &fault);
  return done(code, fault, error);
}

// queue_compact('[db.]table')
UDF my_bool queue_compact_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (args->arg_count != 1 || args->arg_type[0] != STRING_RESULT)
    return refuse(message, "use: queue_compact('[database.]table')");
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}
UDF longlong queue_compact(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  Named named;
  if (!args->args[0]) return *is_null = 1, 0;
  if (!find(current_thd, args->args[0], args->lengths[0], &named)) return *error = 1, 0;
  evq_fault fault;
  int code = named.is_there ? evq_compact(named.path.c_str(), &fault) : EVQ_MISSING;
  if (code == EVQ_MISSING) return *is_null = 1, 0;
  return done(code, fault, error);
}

// queue_stats('[db.]table'): a line for each number.
static const size_t STATS = 1024;
UDF my_bool queue_stats_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (args->arg_count != 1 || args->arg_type[0] != STRING_RESULT)
    return refuse(message, "use: queue_stats('[database.]table')");
  init->maybe_null = 1;
  init->max_length = STATS;
  init->const_item = 0;
  init->ptr = (char *)my_malloc(PSI_NOT_INSTRUMENTED, STATS, MYF(0));
  return init->ptr ? 0 : refuse(message, "out of memory");
}
UDF void queue_stats_deinit(UDF_INIT *init) { my_free(init->ptr); }
UDF char *queue_stats(UDF_INIT *init, UDF_ARGS *args, char *, ulong *length, uchar *is_null, uchar *error) {
  Named named;
  evq_fault fault;
  evq_stats now;
  *is_null = 1;
  if (!args->args[0]) return nullptr;
  if (!find(current_thd, args->args[0], args->lengths[0], &named)) return *error = 1, nullptr;
  int code = named.is_there ? evq_stats_of(named.path.c_str(), &now, &fault) : EVQ_MISSING;
  if (code == EVQ_MISSING) return nullptr;
  if (code) return told(code, fault), *error = 1, nullptr;
  *length = snprintf(init->ptr, STATS,
                     "rows: %llu\nrows_owned: %llu\nwaiters: %llu\nrows_written: %llu\nrows_removed: %llu\n"
                     "bytes: %llu\nfiles: %llu\nmemory: %llu\nwait_immediate: %llu\nwait_delayed: %llu\n"
                     "wait_timeout: %llu\nrestored_by_abort: %llu\nrestored_by_close: %llu\nbytes_removed: %llu\n",
                     (ulonglong)now.rows, (ulonglong)now.owned, (ulonglong)now.waiters, (ulonglong)now.appended,
                     (ulonglong)now.removed, (ulonglong)now.bytes, (ulonglong)now.files, (ulonglong)now.memory,
                     (ulonglong)now.waits_at_once, (ulonglong)now.waits_later, (ulonglong)now.waits_timed_out,
                     (ulonglong)now.back_by_abort, (ulonglong)now.back_by_close, (ulonglong)now.dead_bytes);
  *is_null = 0;
  return init->ptr;
}
