// The functions of SQL, the same for every family of servers: ha_queue.h and names.h are the family's.
//
// The server calls them as C: nothing is thrown out of them. As long as no engine is there, none of the server's
// services is either: then a function is refused before it asks for one.

#include "ha_queue.h"
#include "names.h"
#include "replicated.h"
#include "thrown.h"
#include <mysql/plugin.h>
#include <new>
#include <vector>

// A macro of the server's own queues.
#undef queue_end

#define UDF extern "C"

static const double PATIENCE_S = 60;

static const longlong SOURCES = 64;

static bool refuse(char *message, const char *why) {
  strcpy(message, why);
  return true;
}

// Of each function's beginning: what is said where the engine is not.
static bool has_no_engine(char *message) {
  return !is_engine_there() && refuse(message, "the engine QUEUE is not loaded, see 'evenkeel plugin status queue'");
}

// What a function does, for the server: of what is thrown the user is told.
template <typename Call>
static longlong answer(uchar *error, Call call) {
  try {
    return call();
  } catch (...) {
    tell_what_was_thrown();
    return *error = 1, 0;
  }
}

// It went after the function had begun.
static longlong no_engine(uchar *error) {
  my_printf_error(ER_UNKNOWN_ERROR, "queue: the engine QUEUE is not loaded", MYF(0));
  *error = 1;
  return 0;
}

// The session; when there is none the user is told.
static Session *session_here(uchar *error) {
  Session *session = session_of(current_thd);
  if (!session) no_engine(error);
  return session;
}

// A replica would call it too, and end or take what is its own.
static const char *why_not_logged() {
  return is_logged_as_text(current_thd)
             ? "with binlog_format=STATEMENT a replica would call it too: SET SESSION binlog_format=MIXED, or ROW"
             : nullptr;
}

// What a function works on: `[db.]table[:condition]`, as the caller may use it.
struct Named {
  std::string path, condition;
  bool is_there = false, is_conditional = false;
};

static bool find(THD *thd, const char *text, size_t length, Named *found) {
  std::string whole(text, length), db, table;
  if (whole.find('\0') != std::string::npos) {
    my_printf_error(ER_WRONG_ARGUMENTS, "queue: there is a zero byte in '%s': write such bytes as X'00'", MYF(0),
                    whole.c_str());
    return false;
  }
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
  fold(&db);
  fold(&table);
  if (!may_take(thd, db, table) || !are_names_known(thd)) return false;
  found->path = path_of(db, table);
  found->is_there = true;
  return true;
}

static int is_killed(void *thd) { return thd_killed((THD *)thd); }

static my_bool takes_tables(UDF_INIT *init, UDF_ARGS *args, char *message, const char *usage) {
  if (has_no_engine(message)) return true;
  if (const char *why = why_not_here(current_thd)) return refuse(message, why);
  if (const char *why = why_not_logged()) return refuse(message, why);
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

// Whether a wait may be done here and now; the user is told why not. What it would give would be consumed by the next of
// the same statement, and nobody would have seen it.
static bool may_wait(THD *thd, Session *session) {
  const char *why = why_not_here(thd);
  if (!why && session->writes) why = "a statement that changes a queue cannot wait: wait first, then do the rest";
  ulonglong now = statement_of(thd);
  if (!why && now == session->waited)
    why = "a statement waits once, and not for each row: what it was given first would be lost";
  if (why) return my_printf_error(ER_NOT_SUPPORTED_YET, "queue: %s", MYF(0), why), false;
  session->waited = now;
  return true;
}

// Removes what is owned: only that is a change of the server's data, and who waits does not hold it up.
static bool consume(THD *thd, Session *session) {
  if (!evq_holds(session->queues)) return true;
  Change change(thd);
  if (!change.may_begin) return false;
  evq_fault fault;
  int code = evq_consume(session->queues, &fault);
  if (code) told(code, fault);
  return !code;
}

static longlong wait_for(UDF_ARGS *args, uint tables, uint64_t most, double timeout_s, uchar *is_null,
                         uchar *error) {
  THD *thd = current_thd;
  Session *session = session_here(error);
  if (!session) return 0;
  // What it gave could not be ended where nothing may be changed.
  if (!takes_changes(thd) || !may_wait(thd, session)) return *error = 1, 0;
  std::vector<Named> named(tables);
  std::vector<const char *> paths, conditions;
  for (uint at = 0; at < tables; at++) {
    if (!args->args[at]) return *is_null = 1, 0;
    if (!find(thd, args->args[at], args->lengths[at], &named[at])) return *error = 1, 0;
    if (!named[at].is_there) return *is_null = 1, 0;
    paths.push_back(named[at].path.c_str());
    conditions.push_back(named[at].is_conditional ? named[at].condition.c_str() : nullptr);
  }
  evq_fault fault;
  if (evq_holds(session->queues)) {
    // A misspelled wait is no sign that the work on a row is done.
    int is_there = 0;
    if (int code = evq_look(paths.data(), conditions.data(), paths.size(), &is_there, &fault))
      return told(code, fault), *error = 1, 0;
    if (!is_there) return *is_null = 1, 0;
  }
  if (!consume(thd, session)) return *error = 1, 0;
  int64_t given = 0;
  wait_begins(thd);
  int code = evq_wait(session->queues, paths.data(), conditions.data(), paths.size(), most, timeout_s, is_killed, thd,
                      &given, &fault);
  wait_ends(thd);
  if (code) return told(code, fault), *error = 1, 0;
  if (given == -2) return *is_null = 1, 0;
  if (given == -1) return my_error(ER_QUERY_INTERRUPTED, MYF(0)), *error = 1, 0;
  return given;
}

// queue_wait('[db.]table[:condition]', ..., [seconds]): the number of the table that gave a row, from 1.
UDF my_bool queue_wait_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  return takes_tables(init, args, message, "use: queue_wait('[database.]table[:condition]', ..., [seconds])");
}

UDF longlong queue_wait(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  return answer(error, [&]() -> longlong {
    uint tables = args->arg_count;
    double timeout_s = PATIENCE_S;
    if (args->arg_type[tables - 1] != STRING_RESULT) {
      tables--;
      if (!args->args[tables]) return *is_null = 1, 0;
      timeout_s = *(double *)args->args[tables];
    }
    return wait_for(args, tables, 1, timeout_s, is_null, error);
  });
}

// queue_wait_n('[db.]table[:condition]', rows, seconds): as queue_wait of one table, for up to so many rows.
UDF my_bool queue_wait_n_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (has_no_engine(message)) return true;
  if (args->arg_count != 3 || args->arg_type[0] != STRING_RESULT)
    return refuse(message, "use: queue_wait_n('[database.]table[:condition]', rows, seconds)");
  if (const char *why = why_not_here(current_thd)) return refuse(message, why);
  if (const char *why = why_not_logged()) return refuse(message, why);
  args->arg_type[1] = INT_RESULT;
  args->arg_type[2] = REAL_RESULT;
  init->maybe_null = 1;
  return 0;
}

UDF longlong queue_wait_n(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  return answer(error, [&]() -> longlong {
    if (!args->args[1] || !args->args[2] || *(longlong *)args->args[1] < 1) return *is_null = 1, 0;
    return wait_for(args, 1, *(longlong *)args->args[1], *(double *)args->args[2], is_null, error);
  });
}

static my_bool takes_nothing(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (has_no_engine(message)) return true;
  if (args->arg_count) return refuse(message, "this function takes no argument");
  if (const char *why = why_not_logged()) return refuse(message, why);
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
  return answer(error, [&]() -> longlong {
    Session *session = session_here(error);
    if (!session) return 0;
    Change change(current_thd);
    if (!change.may_begin) return *error = 1, 0;
    evq_fault fault;
    return done(evq_end(session->queues, &fault), fault, error);
  });
}

UDF my_bool queue_abort_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  return takes_nothing(init, args, message);
}
UDF longlong queue_abort(UDF_INIT *, UDF_ARGS *, uchar *, uchar *error) {
  return answer(error, [&]() -> longlong {
    Session *session = session_here(error);
    if (!session) return 0;
    evq_fault fault;
    return done(evq_abort(session->queues, &fault), fault, error);
  });
}

UDF my_bool queue_rowid_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  init->maybe_null = 1;
  return takes_nothing(init, args, message);
}
UDF longlong queue_rowid(UDF_INIT *, UDF_ARGS *, uchar *is_null, uchar *error) {
  return answer(error, [&]() -> longlong {
    Session *session = session_here(error);
    if (!session) return 0;
    uint64_t id = 0;
    evq_fault fault;
    int code = evq_row_id(session->queues, &id, &fault);
    if (code) return done(code, fault, error);
    if (!id) *is_null = 1;
    return (longlong)id;
  });
}

// queue_set_srcid(slot, 'a' or 'w', id): what the next INSERT comes from.
UDF my_bool queue_set_srcid_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (has_no_engine(message)) return true;
  if (args->arg_count != 3 || args->arg_type[1] != STRING_RESULT)
    return refuse(message, "use: queue_set_srcid(slot, 'a' or 'w', rowid)");
  if (const char *why = why_not_logged()) return refuse(message, why);
  args->arg_type[0] = args->arg_type[2] = INT_RESULT;
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}
// A slot that there is not is NULL, as Q4M has it.
UDF longlong queue_set_srcid(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  return answer(error, [&]() -> longlong {
    for (uint at = 0; at < 3; at++)
      if (!args->args[at]) return *is_null = 1, 0;
    longlong slot = *(longlong *)args->args[0];
    if (slot < 0 || slot >= SOURCES) return *is_null = 1, 0;
    char mode = args->lengths[1] == 1 ? args->args[1][0] : 0;
    evq_fault fault = {"the second argument is 'a', to pass over rows that came before, or 'w', to take them"};
    if (mode != 'a' && mode != 'w') return done(EVQ_MISUSE, fault, error);
    Session *session = session_here(error);
    if (!session) return 0;
    return done(evq_set_source(session->queues, slot, mode == 'w', *(longlong *)args->args[2], &fault), fault, error);
  });
}

// queue_compact('[db.]table')
UDF my_bool queue_compact_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (has_no_engine(message)) return true;
  if (args->arg_count != 1 || args->arg_type[0] != STRING_RESULT)
    return refuse(message, "use: queue_compact('[database.]table')");
  if (const char *why = why_not_logged()) return refuse(message, why);
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}
UDF longlong queue_compact(UDF_INIT *, UDF_ARGS *args, uchar *is_null, uchar *error) {
  return answer(error, [&]() -> longlong {
    Named named;
    if (!args->args[0]) return *is_null = 1, 0;
    Pin pin;
    if (!pin.hton) return no_engine(error);
    if (!find(current_thd, args->args[0], args->lengths[0], &named)) return *error = 1, 0;
    if (!takes_changes(current_thd)) return *error = 1, 0;
    evq_fault fault;
    int code = named.is_there ? evq_compact(named.path.c_str(), &fault) : EVQ_MISSING;
    if (code == EVQ_MISSING) return *is_null = 1, 0;
    return done(code, fault, error);
  });
}

// queue_stats('[db.]table'): a line for each number, and for each session that owns rows.
static const ulong DECLARED = 16 << 20;
UDF my_bool queue_stats_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (has_no_engine(message)) return true;
  if (args->arg_count != 1 || args->arg_type[0] != STRING_RESULT)
    return refuse(message, "use: queue_stats('[database.]table')");
  init->maybe_null = 1;
  init->max_length = DECLARED;
  init->const_item = 0;
  init->ptr = (char *)new (std::nothrow) std::string;
  return init->ptr ? 0 : refuse(message, "out of memory");
}
UDF void queue_stats_deinit(UDF_INIT *init) { delete (std::string *)init->ptr; }

// Asks for a table's numbers. False: there are none, or there was an error.
static bool numbers_of(UDF_ARGS *args, std::string *text, uchar *error) {
  Named named;
  evq_fault fault;
  if (!args->args[0]) return false;
  Pin pin;
  if (!pin.hton) return no_engine(error);
  if (!find(current_thd, args->args[0], args->lengths[0], &named)) return *error = 1, false;
  auto put = [](void *of, const uint8_t *from, size_t bytes) {
    // It is called by what throws nothing.
    try {
      ((std::string *)of)->assign((const char *)from, bytes);
    } catch (...) {
      ((std::string *)of)->clear();
    }
  };
  int code = named.is_there ? evq_numbers_of(named.path.c_str(), put, text, &fault) : EVQ_MISSING;
  if (code && code != EVQ_MISSING) done(code, fault, error);
  // There was no memory for the text.
  if (!code && text->empty()) return *error = 1, false;
  return !code;
}

UDF char *queue_stats(UDF_INIT *init, UDF_ARGS *args, char *, ulong *length, uchar *is_null, uchar *error) {
  auto *text = (std::string *)init->ptr;
  *is_null = 1;
  if (!answer(error, [&]() -> longlong { return numbers_of(args, text, error); })) return nullptr;
  *length = text->size();
  *is_null = 0;
  return text->data();
}
