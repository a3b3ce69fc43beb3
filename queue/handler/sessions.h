// Sessions of the server that use queues, and whether there is an engine for them.
//
// The functions of SQL may be there when the engine is not: the server has refused it, or it was taken out. So nothing
// keeps the engine's handlerton: a session that uses queues holds on to the plugin, as the server counts it, and
// whoever holds nothing asks.
#pragma once

#include <mysql/plugin.h>
#include "../engine/engine.h"

struct handlerton;

#ifdef MARIADB_BASE_VERSION
// The server takes its services back when the engine goes; a function that had begun tells its user all the same.
inline my_print_error_service_st *errors_of_server;
#undef my_printf_error
#define my_printf_error (errors_of_server ? errors_of_server : my_print_error_service)->my_printf_error_func
#endif

struct Session {
  evq_connection *queues;
  // The statement that has waited last, as statement_of() tells it.
  ulonglong waited = 0;
  // Queues that a statement is about to write.
  uint writes = 0;

  explicit Session(evq_connection *queues) : queues(queues) {}
  ~Session() { evq_connection_free(queues); }
};

// Said by the engine when it is loaded and before it goes.
void engine_begins(handlerton *hton);
void engine_ends();

// Whether functions can work. The answer is of this moment only.
bool is_engine_there();

// How many sessions use queues.
uint sessions();

// The session's queues, made when they are first asked for; null when the engine is not there or memory is short.
// What a session has stays until the session ends.
Session *session_of(THD *thd);

// The same for a table's handler: as long as a table is open, its engine is there.
Session *session_at(THD *thd, handlerton *hton);

// What a session has, or null. By whoever knows that the engine is there.
Session *session_if_any(THD *thd, handlerton *hton);

// When the session ends.
void end_session(THD *thd, handlerton *hton);
