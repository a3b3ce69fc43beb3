// Names and privileges of tables, and where a wait may stand.
//
// Members of the session are read here and nowhere else: `build` takes only headers of exactly the server's
// version.

#include "../handler/names.h"
#include "ha_queue.h"
#include <sql/auth/auth_acls.h>
#include <sql/auth/auth_common.h>
#include <sql/sql_lex.h>
#include <sql/sql_table.h>

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

// MySQL asks WHERE for each row that it has read: of an empty queue never, and of others once too often.
const char *why_not_here(THD *thd) {
  for (const Table_ref *one = thd->lex->query_tables; one; one = one->next_global)
    if (one->table && one->table->file && one->table->file->ht == queue_hton)
      return "MySQL cannot wait in a statement that reads a queue: SELECT queue_wait(...) first, then SELECT from it";
  return nullptr;
}

// MySQL tells its pool of threads nothing of what plugins do.
void wait_begins(THD *) {}
void wait_ends(THD *) {}
