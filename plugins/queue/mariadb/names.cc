// Names and privileges of tables, and waits.

#include "ha_queue.h"
#include "../handler/names.h"
#include <mysql/service_thd_wait.h>
#include <sql_parse.h>
#include <sql_table.h>

std::string current_database(THD *thd) {
  const LEX_CSTRING *now = thd_current_db(thd);
  return now && now->str ? std::string(now->str, now->length) : std::string();
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

// A wait may stand in a statement's WHERE: it is evaluated once, before the first row is read.
const char *why_not_here(THD *) { return nullptr; }

void wait_begins(THD *thd) { thd_wait_begin(thd, THD_WAIT_USER_LOCK); }

void wait_ends(THD *thd) { thd_wait_end(thd); }
