// What the server loads: the engine, its variables, its hooks.

#include "ha_queue.h"
#include "names.h"
#include "shown.h"
#include <mysql/plugin.h>

static uint sync_rows, sync_removals;
static ulonglong mmap_max, slice_bytes;
static my_bool compacts;

static void set_options() {
  evq_options options = {sync_rows, sync_removals, mmap_max, slice_bytes, compacts ? 1u : 0u};
  evq_set_options(&options);
}

template <typename T>
static void changed(THD *, st_mysql_sys_var *, void *to, const void *from) {
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
                         changed<my_bool>, TRUE);
static MYSQL_SYSVAR_ULONGLONG(concurrent_compaction_interval, slice_bytes, PLUGIN_VAR_RQCMDARG,
                              "Bytes that compaction copies before others have their turn", nullptr,
                              changed<ulonglong>, 1ULL << 20, 1024, 1ULL << 30, 0);

static st_mysql_sys_var *variables[] = {MYSQL_SYSVAR(sync), MYSQL_SYSVAR(sync_consume), MYSQL_SYSVAR(mmap_max),
                                        MYSQL_SYSVAR(use_concurrent_compaction),
                                        MYSQL_SYSVAR(concurrent_compaction_interval), nullptr};

static handler *make(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *root) {
  return new (root) ha_queue(hton, share);
}

#if MYSQL_VERSION_ID < 110000
static int close_connection(handlerton *hton, THD *thd) {
#else
// The server asks this only of an engine that is there.
static handlerton *own;
static int close_connection(THD *thd) {
  handlerton *hton = own;
#endif
  end_session(thd, hton);
  return 0;
}

// The server holds the connection's lock meanwhile: it cannot go.
static void kill_query(handlerton *hton, THD *thd, enum thd_kill_levels) {
  if (Session *session = session_if_any(thd, hton)) evq_connection_kill(session->queues);
}

// The schema's tables are dropped by now, and the server goes on to remove the directory. What it knows no table of would
// keep it from that.
static void drop_database(handlerton *, char *schema) {
  evq_fault fault;
  int code = evq_drop_forgotten_in(schema, &fault);
  if (code) told(code, fault);
}

// Said at a start, when the server has recovered from what a crash cut short, and by INSTALL PLUGIN.
static int recovered(handlerton *) {
  auto say = [](void *, const uint8_t *text, size_t bytes) {
    sql_print_warning("queue: %.*s", (int)bytes, (const char *)text);
  };
  evq_fault fault;
  if (evq_forgotten(say, nullptr, &fault)) sql_print_error("queue: %s", fault.text);
  return 0;
}

#define TOTAL(name, number) {name, &totals.number, SHOW_ULONGLONG}
static st_mysql_show_var numbers[] = {
    TOTALS(TOTAL), {"statements_per_write", &per_write, SHOW_DOUBLE}, {nullptr, nullptr, SHOW_UNDEF}};

static int show_totals(THD *, st_mysql_show_var *out, void *, system_status_var *, enum_var_type) {
  count_totals();
  out->type = SHOW_ARRAY;
  out->value = numbers;
  return 0;
}

static st_mysql_show_var shown[] = {SHOW_FUNC_ENTRY("Queue", show_totals), {nullptr, nullptr, SHOW_UNDEF}};

static const char *suffixes[] = {".QUE", nullptr};

static int start(void *plugin) {
  auto *hton = (handlerton *)plugin;
  hton->create = make;
  hton->close_connection = close_connection;
  hton->kill_query = kill_query;
  hton->show_status = show_status;
  hton->drop_database = drop_database;
  hton->signal_ddl_recovery_done = recovered;
  hton->tablefile_extensions = suffixes;
  hton->flags = HTON_TEMPORARY_NOT_SUPPORTED | HTON_NO_PARTITION;
#if MYSQL_VERSION_ID >= 110000
  own = hton;
#endif
  evq_fault fault = {"out of memory"};
  if (!make_mark() || evq_start(&fault)) {
    sql_print_error("queue: %s", fault.text);
    return 1;
  }
  set_options();
  engine_begins(hton);
  return 0;
}

static int stop(void *) {
  engine_ends();
  evq_stop();
  return 0;
}

static st_mysql_storage_engine engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

maria_declare_plugin(evenkeel_queue){
    MYSQL_STORAGE_ENGINE_PLUGIN, &engine, "QUEUE", "evenkeel", "Queues as tables, crash-safe, with waiting consumers",
    PLUGIN_LICENSE_GPL, start, stop, 0x0001, shown, variables, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL}
maria_declare_plugin_end;
