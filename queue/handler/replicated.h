// What must not be in the binary log as text: a replica that executed it would read a queue of its own, or call a
// function of its own. In the other formats the server logs rows of the other tables and nothing of queues.
#pragma once

#include "ha_queue.h"
#ifdef MARIADB_BASE_VERSION
extern "C" int thd_binlog_format(const MYSQL_THD thd);
extern "C" bool thd_binlog_filter_ok(const MYSQL_THD thd);
#else
#include <sql/sql_thd_internal_api.h>
#endif

// Whether the statement at hand writes, and is logged as text if at all.
inline bool is_logged_as_text(THD *thd) {
  if (thd_binlog_format(thd) != BINLOG_FORMAT_STMT || !thd_binlog_filter_ok(thd)) return false;
  switch (thd_sql_command(thd)) {
    case SQLCOM_CREATE_TABLE:
    case SQLCOM_INSERT:
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_REPLACE:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_UPDATE:
    case SQLCOM_UPDATE_MULTI:
    case SQLCOM_DELETE:
    case SQLCOM_DELETE_MULTI:
    case SQLCOM_LOAD: return true;
    default: return false;
  }
}

// Tells the user why this statement may not read a queue, or, where it writes it, make it. Or returns 0.
inline int refused_by_log(THD *thd, bool writes) {
  const char *why = nullptr;
  if (!writes && is_logged_as_text(thd))
    why = "with binlog_format=STATEMENT a replica would read its own queue: SET SESSION binlog_format=MIXED, or ROW";
  else if (writes && thd_sql_command(thd) == SQLCOM_CREATE_TABLE && thd_binlog_format(thd) != BINLOG_FORMAT_UNSPEC)
    why = "CREATE TABLE ... SELECT would not be in the binary log: create the queue first, then INSERT ... SELECT";
  if (!why) return 0;
  my_printf_error(ER_BINLOG_STMT_MODE_AND_ROW_ENGINE, "queue: %s", MYF(0), why);
  return HA_ERR_LOGGING_IMPOSSIBLE;
}
