// What no queue can be, whichever server it is in: the user is told why, and what to do.
#pragma once

#include "ha_queue.h"

// Whether CREATE TABLE or ALTER TABLE asks for what a queue cannot be; 0 if not.
inline int refused_options(const HA_CREATE_INFO *info) {
  const char *why = nullptr;
  bool has_place = (info->used_fields & HA_CREATE_USED_DATADIR && info->data_file_name) ||
                   (info->used_fields & HA_CREATE_USED_INDEXDIR && info->index_file_name);
  // Were the server told before, MySQL would make a table of InnoDB instead, and say nothing.
  if (info->options & HA_LEX_CREATE_TMP_TABLE)
    why = "a temporary table cannot be a queue";
  else if (has_place)
    why = "the rows of all queues are in #sqlqueue in the data directory: leave out DATA DIRECTORY and INDEX DIRECTORY";
#ifdef HA_VERSIONED_TABLE
  // Rows that are gone would be kept, by an UPDATE.
  else if (info->versioned())
    why = "a queue keeps no rows that are gone: leave out WITH SYSTEM VERSIONING, or say DROP SYSTEM VERSIONING";
#endif
  if (!why) return 0;
  my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "queue: %s", MYF(0), why);
  return HA_WRONG_CREATE_OPTION;
}

// Whether the functions could not be told a name that a table is about to get; 0 if they could. A server that takes back
// what it did is not asked.
inline int refused_name(THD *thd, const char *path) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_CREATE_TABLE:
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_RENAME_TABLE: break;
    default: return 0;
  }
  evq_fault fault;
  int code = evq_name(path, &fault);
  return code ? told(code, fault) : 0;
}

// CHECK TABLE reads each row. What is in the files beside rows `evenkeel queue check` reads.
inline int checked(THD *thd, const evq_cursor *cursor) {
  evq_fault fault;
  int code = evq_check(cursor, [](void *of) -> int { return thd_killed((THD *)of); }, thd, &fault);
  if (code) told(code, fault);
  if (thd_killed(thd)) return HA_ADMIN_FAILED;
  return code == EVQ_CORRUPT ? HA_ADMIN_CORRUPT : code ? HA_ADMIN_FAILED : HA_ADMIN_OK;
}
