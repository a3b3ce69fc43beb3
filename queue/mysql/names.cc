// Names and privileges of tables, statements, and what a session may do now.
//
// Members of the session are read here and nowhere else: `build` takes only headers of exactly the server's
// version.

#include "../handler/names.h"
#include "ha_queue.h"
#include <sql/auth/auth_acls.h>
#include <sql/auth/auth_common.h>
#include <sql/mdl.h>
#include <sql/mysqld.h>
#include <sql/sql_lex.h>
#include <sql/sql_plugin.h>
#include <sql/sql_table.h>

// Of a header that asks for sources.
bool check_readonly(THD *thd, bool err_if_readonly);

uint64_t connection_id(THD *thd) { return thd->thread_id(); }

std::string current_database(THD *thd) {
  LEX_CSTRING now = thd->db();
  return now.str ? std::string(now.str, now.length) : std::string();
}

bool may_take(THD *thd, const std::string &db, const std::string &table) {
  Table_ref list(db.c_str(), db.size(), table.c_str(), table.size(), table.c_str(), TL_READ);
  return !check_table_access(thd, SELECT_ACL | DELETE_ACL, &list, false, 1, false);
}

std::string path_of(const std::string &db, const std::string &table) {
  char path[FN_REFLEN + 1];
  bool is_cut;
  build_table_filename(path, sizeof path - 1, db.c_str(), table.c_str(), "", 0, &is_cut);
  return path;
}

void fold(std::string *name) {
  // Nothing gets longer here.
  if (lower_case_table_names) name->resize(my_casedn_str(files_charset_info, name->data()));
}

// MySQL asks WHERE for each row that it has read: of an empty queue never, and of others once too often. Functions and
// triggers are asked for each row, too.
const char *why_not_here(THD *thd) {
  switch (thd->lex->sql_command) {
    case SQLCOM_SELECT:
    case SQLCOM_DO:
    case SQLCOM_SET_OPTION:
    // An expression of a stored program.
    case SQLCOM_END: break;
    default: return "a wait belongs into a SELECT, DO or SET that does nothing else: wait first, then do the rest";
  }
  if (thd->in_sub_stmt) return "functions and triggers cannot wait: wait first, then do the rest";
  for (const Table_ref *one = thd->lex->query_tables; one; one = one->next_global)
    if (one->table && one->table->file && is_of_queues(one->table->file))
      return "MySQL cannot wait in a statement that reads a queue: SELECT queue_wait(...) first, then SELECT from it";
  return nullptr;
}

ulonglong statement_of(THD *thd) { return thd->query_id; }

// MySQL tells its pool of threads nothing of what plugins do.
void wait_begins(THD *) {}
void wait_ends(THD *) {}

Pin::Pin() {
  plugin_ref found = plugin_lock_by_name(nullptr, LEX_CSTRING{STRING_WITH_LEN("QUEUE")}, MYSQL_STORAGE_ENGINE_PLUGIN);
  plugin = found;
  if (found && plugin_state(found) == PLUGIN_IS_READY) hton = plugin_data<handlerton *>(found);
}

Pin::~Pin() {
  if (plugin) plugin_unlock(nullptr, (plugin_ref)plugin);
}

bool takes_changes(THD *thd) { return !check_readonly(thd, true); }

Change::Change(THD *thd) : thd(thd) {
  if (!takes_changes(thd) || thd->global_read_lock.can_acquire_protection()) return;
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::GLOBAL, "", "", MDL_INTENTION_EXCLUSIVE, MDL_EXPLICIT);
  if (thd->mdl_context.acquire_lock(&request, LONG_TIMEOUT)) return;
  ticket = request.ticket;
  may_begin = true;
}

Change::~Change() {
  if (ticket) thd->mdl_context.release_lock((MDL_ticket *)ticket);
}
