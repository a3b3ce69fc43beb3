// Names and privileges of tables, statements, and what a session may do now.

#include "ha_queue.h"
#include "../handler/names.h"
#include <mysql/service_thd_mdl.h>
#include <mysql/service_thd_specifics.h>
#include <mysql/service_thd_wait.h>
#include <mysqld.h>
#include <sql_acl.h>
#include <sql_parse.h>
#include <sql_plugin.h>
#include <sql_table.h>

uint64_t connection_id(THD *thd) { return thd_get_thread_id(thd); }

std::string current_database(THD *thd) {
  const LEX_CSTRING *now = thd_current_db(thd);
  return now && now->str ? std::string(now->str, now->length) : std::string();
}

void fold(std::string *name) {
  if (!lower_case_table_names) return;
  std::string folded(name->size() * files_charset_info->casedn_multiply() + 1, '\0');
  folded.resize(files_charset_info->casedn(&(*name)[0], name->size(), &folded[0], folded.size()));
  *name = folded;
}

bool may_take(THD *thd, const std::string &db, const std::string &table) {
  // With room behind it: a server's own may be longer.
  alignas(TABLE_LIST) char room[sizeof(TABLE_LIST) + 1024] = {};
  auto *list = reinterpret_cast<TABLE_LIST *>(room);
  LEX_CSTRING db_name = {db.c_str(), db.size()}, table_name = {table.c_str(), table.size()};
  list->init_one_table(&db_name, &table_name, nullptr, TL_READ);
  return !check_table_access(thd, SELECT_ACL | DELETE_ACL, list, false, 1, false);
}

std::string path_of(const std::string &db, const std::string &table) {
  char path[FN_REFLEN + 1];
  build_table_filename(path, sizeof path - 1, db.c_str(), table.c_str(), "", 0);
  return path;
}

// The server goes on itself with what a crash has cut short.
bool are_names_known(THD *) { return true; }

// A wait may stand in a SELECT's WHERE: it is evaluated once, before the first row is read.
const char *why_not_here(THD *thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_SELECT:
    case SQLCOM_DO:
    case SQLCOM_SET_OPTION:
    // An expression of a stored program.
    case SQLCOM_END: return nullptr;
    default: return "a wait belongs into a SELECT, DO or SET that does nothing else: wait first, then do the rest";
  }
}

// When the statement began, in microseconds, as NOW() has it. The server has it in no header.
extern "C" unsigned long long thd_start_utime(const THD *thd);

// For functions and triggers time stands still; each other statement has its own, those of procedures too. Where a user
// has set the time it stands still for all.
ulonglong statement_of(THD *thd) { return thd_start_utime(thd); }

void wait_begins(THD *thd) { thd_wait_begin(thd, THD_WAIT_USER_LOCK); }

void wait_ends(THD *thd) { thd_wait_end(thd); }

Pin::Pin() {
  LEX_CSTRING name = {STRING_WITH_LEN("QUEUE")};
  plugin_ref found = plugin_lock_by_name(nullptr, &name, MYSQL_STORAGE_ENGINE_PLUGIN);
  plugin = found;
  if (found && plugin_state(found) == PLUGIN_IS_READY) hton = plugin_hton(found);
}

Pin::~Pin() {
  if (plugin) plugin_unlock(nullptr, (plugin_ref)plugin);
}

// Made once: a library that was taken out stays where it is.
static MYSQL_THD_KEY_T mark_key;
static bool has_key;

bool make_mark() {
  has_key = has_key || !thd_key_create(&mark_key);
  return has_key;
}

void mark(THD *thd) { thd_setspecific(thd, mark_key, &mark_key); }

bool is_marked(THD *thd) { return thd_getspecific(thd, mark_key) == &mark_key; }

bool takes_changes(THD *thd) {
  if (!opt_readonly || !check_global_access(thd, PRIV_IGNORE_READ_ONLY, true)) return true;
  my_error(ER_OPTION_PREVENTS_STATEMENT, MYF(0), "--read-only");
  return false;
}

Change::Change(THD *thd) : thd(thd) {
  if (!takes_changes(thd)) return;
  auto *locks = (MDL_context *)thd_mdl_context(thd);
  if (locks->is_lock_owner(MDL_key::BACKUP, "", "", MDL_BACKUP_FTWRL1) ||
      locks->is_lock_owner(MDL_key::BACKUP, "", "", MDL_BACKUP_FTWRL2)) {
    my_error(ER_CANT_UPDATE_WITH_READLOCK, MYF(0));
    return;
  }
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::BACKUP, "", "", MDL_BACKUP_DML, MDL_EXPLICIT);
  if (locks->acquire_lock(&request, (double)LONG_TIMEOUT)) return;
  ticket = request.ticket;
  may_begin = true;
}

Change::~Change() {
  if (ticket) ((MDL_context *)thd_mdl_context(thd))->release_lock((MDL_ticket *)ticket);
}
