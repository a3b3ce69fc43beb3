// What the server loads: the engine, its variables, its hooks.

#include "dictionary.h"
#include "ha_queue.h"
#include "names.h"
#include "shown.h"
#include <mysql/plugin.h>
#include <sql/log.h>

static uint sync_rows, sync_removals;
static ulonglong mmap_max, slice_bytes;
static bool compacts;

static void set_options() {
  evq_options options = {sync_rows, sync_removals, mmap_max, slice_bytes, compacts ? 1u : 0u};
  evq_set_options(&options);
}

template <typename T>
static void changed(THD *, SYS_VAR *, void *to, const void *from) {
  *(T *)to = *(const T *)from;
  set_options();
}

static MYSQL_SYSVAR_UINT(sync, sync_rows, PLUGIN_VAR_RQCMDARG,
                         "When new rows are durable: 2 before INSERT returns, 1 within a second, 0 when the system "
                         "likes",
                         nullptr, changed<uint>, 2, 0, 2, 0);
static MYSQL_SYSVAR_UINT(sync_consume, sync_removals, PLUGIN_VAR_RQCMDARG,
                         "When removals are durable, as queue_sync. One that is lost in a crash delivers a row again",
                         nullptr, changed<uint>, 2, 0, 2, 0);
static MYSQL_SYSVAR_ULONGLONG(mmap_max, mmap_max, PLUGIN_VAR_RQCMDARG,
                              "Bytes of files that may be mapped into memory, for each table that is opened from then on; others "
                              "are read", nullptr,
                              changed<ulonglong>, 16ULL << 30, 0, ~0ULL, 0);
static MYSQL_SYSVAR_BOOL(use_concurrent_compaction, compacts, PLUGIN_VAR_OPCMDARG,
                         "Compact tables while they are used; OFF: only when queue_compact() is called", nullptr,
                         changed<bool>, true);
static MYSQL_SYSVAR_ULONGLONG(concurrent_compaction_interval, slice_bytes, PLUGIN_VAR_RQCMDARG,
                              "Bytes that compaction copies before others have their turn", nullptr,
                              changed<ulonglong>, 1ULL << 20, 1024, 1ULL << 30, 0);

// Neither shown nor set by anybody: a session that is reset has 0 again.
static MYSQL_THDVAR_ULONG(mark, PLUGIN_VAR_NOSYSVAR | PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_READONLY,
                           "", nullptr, nullptr, 0, 0, ~0UL, 0);
static SYS_VAR *variables[] = {MYSQL_SYSVAR(sync), MYSQL_SYSVAR(sync_consume), MYSQL_SYSVAR(mmap_max),
                                        MYSQL_SYSVAR(use_concurrent_compaction),
                                        MYSQL_SYSVAR(concurrent_compaction_interval), MYSQL_SYSVAR(mark), nullptr};

bool make_mark() { return true; }

void mark(THD *thd) { THDVAR(thd, mark) = 1; }

bool is_marked(THD *thd) { return THDVAR(thd, mark); }

static handler *make(handlerton *hton, TABLE_SHARE *share, bool, MEM_ROOT *root) {
  return new (root) ha_queue(hton, share);
}

static int close_connection(handlerton *hton, THD *thd) {
  end_session(thd, hton);
  return 0;
}

// For KILL QUERY, too. The server holds the connection's lock meanwhile: it cannot go.
static void kill_connection(handlerton *hton, THD *thd) {
  if (Session *session = session_if_any(thd, hton)) evq_connection_kill(session->queues);
}

static handlerton *own;

static void post_ddl(THD *thd) {
  if (Session *session = session_if_any(thd, own)) statement_ends(thd, session);
}

// A queue that a crash has left in the directory goes back to its own first.
static void drop_database(handlerton *, const char *) { are_names_known(current_thd); }

// A transaction of the server's that the engine takes part in has nothing of the engine's to keep or to take back.
static int end_of_transaction(handlerton *, THD *, bool) { return 0; }

#define TOTAL(name, number) {name, (char *)&totals.number, SHOW_LONGLONG, SHOW_SCOPE_GLOBAL}
static SHOW_VAR numbers[] = {TOTALS(TOTAL),
                             {"statements_per_write", (char *)&per_write, SHOW_DOUBLE, SHOW_SCOPE_GLOBAL},
                             {nullptr, nullptr, SHOW_UNDEF, SHOW_SCOPE_UNDEF}};

static int show_totals(THD *, SHOW_VAR *out, char *) {
  count_totals();
  out->type = SHOW_ARRAY;
  out->value = (char *)numbers;
  return 0;
}

static SHOW_VAR shown[] = {{"Queue", (char *)show_totals, SHOW_FUNC, SHOW_SCOPE_GLOBAL},
                           {nullptr, nullptr, SHOW_UNDEF, SHOW_SCOPE_UNDEF}};

static const char *suffixes[] = {".QUE", nullptr};

static int start(void *plugin) {
  auto *hton = own = (handlerton *)plugin;
  // Names change with the server's dictionary, or not at all: of CREATE, RENAME, DROP and ALTER a crash leaves all or nothing.
  hton->flags = HTON_SUPPORTS_ATOMIC_DDL;
  hton->post_ddl = post_ddl;
  hton->drop_database = drop_database;
  hton->state = SHOW_OPTION_YES;
  hton->create = make;
  hton->close_connection = close_connection;
  hton->kill_connection = kill_connection;
  hton->commit = end_of_transaction;
  hton->show_status = show_status;
  hton->rollback = end_of_transaction;
  hton->file_extensions = suffixes;
  evq_fault fault;
  if (evq_start(&fault)) {
    sql_print_error("queue: %s", fault.text);
    return 1;
  }
  set_options();
  engine_begins(hton);
  return 0;
}

// The server tells an engine that it takes out no longer of connections that end.
static int is_in_use(void *) { return sessions() > 0; }

static int stop(void *) {
  engine_ends();
  evq_stop();
  return 0;
}

static st_mysql_storage_engine engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

mysql_declare_plugin(evenkeel_queue){
    MYSQL_STORAGE_ENGINE_PLUGIN, &engine, "QUEUE", "evenkeel", "Queues as tables, crash-safe, with waiting consumers",
    PLUGIN_LICENSE_GPL, start, is_in_use, stop, 0x0001, shown, variables, nullptr, 0}
mysql_declare_plugin_end;
