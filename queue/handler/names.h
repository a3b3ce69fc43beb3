// What the functions of SQL ask a family of servers.
#pragma once

#include <string>
#include "sessions.h"

class THD;

// The server's number of a session, as CONNECTION_ID() says it.
uint64_t connection_id(THD *thd);

// The database that a session is in; empty for none.
std::string current_database(THD *thd);

// As the server has it: names are folded where it folds them.
void fold(std::string *name);

// May this user take rows of it? The server tells the user if not.
bool may_take(THD *thd, const std::string &db, const std::string &table);

// Where a table is, without a suffix: as the server tells a handler.
std::string path_of(const std::string &db, const std::string &table);

// Whether the engine knows which queue has which name: after a crash a server's dictionary may have to be asked first.
// The server tells the user if not.
bool are_names_known(THD *thd);

// Why this statement cannot wait, with what to do instead; null where it can. At most 500 bytes.
const char *why_not_here(THD *thd);

// Which statement is executed: all that is evaluated for it, its functions and triggers too, sees the same number.
ulonglong statement_of(THD *thd);

// Around a wait: a server with a pool of threads may let another one work.
void wait_begins(THD *thd);
void wait_ends(THD *thd);

// As long as it lives, the engine of the name is there; `hton` is null when it is not, or is about to go.
struct Pin {
  handlerton *hton = nullptr;
  void *plugin = nullptr;

  Pin();
  ~Pin();
  Pin(const Pin &) = delete;
};

// A mark on the session that goes when it is reset or its user is changed.
bool make_mark();
void mark(THD *thd);
bool is_marked(THD *thd);

// Whether the server takes changes by this user, or is read-only; tells the user if so.
bool takes_changes(THD *thd);

// A change of the server's data. It waits until no other session has the server stand still, FLUSH TABLES WITH READ LOCK,
// and holds such a one up as long as it lives. Where it may not begin the user was told why.
class Change {
  void *ticket = nullptr;
  THD *thd;

 public:
  bool may_begin = false;

  explicit Change(THD *thd);
  ~Change();
  Change(const Change &) = delete;
};
