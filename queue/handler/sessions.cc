// Sessions of the server that use queues, and whether there is an engine for them.

#include "ha_queue.h"
#include "names.h"
#include "sessions.h"
#include <atomic>
#include <mutex>
#include <new>
#include <shared_mutex>

// The plugin is deinitialized while nobody uses it, as the server sees it. A function that begins is not seen yet: it
// looks at the handlerton under this lock, and the engine goes under it.
static std::shared_mutex gate;
static handlerton *loaded;
static std::atomic<uint> count;

void engine_begins(handlerton *hton) {
#ifdef MARIADB_BASE_VERSION
  errors_of_server = my_print_error_service;
#endif
  std::lock_guard<std::shared_mutex> guard(gate);
  loaded = hton;
}

void engine_ends() {
  std::lock_guard<std::shared_mutex> guard(gate);
  loaded = nullptr;
}

bool is_engine_there() {
  std::shared_lock<std::shared_mutex> guard(gate);
  return loaded;
}

uint sessions() { return count; }

// What a session has that is about to end. The server lets go of the plugin by itself then, and still asks the
// handlerton: whoever gave the plugin back before would have had it freed.
static char ended;

Session *session_if_any(THD *thd, handlerton *hton) {
  void *found = thd_get_ha_data(thd, hton);
  return found == &ended ? nullptr : (Session *)found;
}

// A session that was reset, or has another user, is a new one: what it owned goes back.
static Session *as_it_is(THD *thd, Session *session) {
  if (!is_marked(thd)) {
    evq_connection_reset(session->queues);
    session->waited = 0;
    session->writes = 0;
    mark(thd);
  }
  return session;
}

Session *session_at(THD *thd, handlerton *hton) {
  if (auto *session = session_if_any(thd, hton)) return as_it_is(thd, session);
  evq_connection *queues = evq_connection_new(connection_id(thd));
  if (!queues) return nullptr;
  auto *session = new (std::nothrow) Session(queues);
  if (!session) return evq_connection_free(queues), nullptr;
  count++;
  // From here on the server counts the session as a user of the plugin.
  thd_set_ha_data(thd, hton, session);
  mark(thd);
  return session;
}

Session *session_of(THD *thd) {
  {
    std::shared_lock<std::shared_mutex> guard(gate);
    if (!loaded) return nullptr;
    if (auto *session = session_if_any(thd, loaded)) return as_it_is(thd, session);
  }
  Pin pin;
  {
    std::shared_lock<std::shared_mutex> guard(gate);
    // Another library may have put in an engine of this name.
    if (!pin.hton || pin.hton != loaded) return nullptr;
  }
  return session_at(thd, pin.hton);
}

void end_session(THD *thd, handlerton *hton) {
  Session *session = session_if_any(thd, hton);
  if (!session) return;
  thd_set_ha_data(thd, hton, &ended);
  delete session;
  count--;
}
