-- A procedure cannot change what the next INSERT does: rather than to let rows in twice, it says how to.
CREATE PROCEDURE {db}.queue_set_srcid(slot BIGINT, mode VARCHAR(10) CHARACTER SET utf8mb4, id BIGINT)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
    'over InnoDB the source comes with its rows: CALL queue_insert_from(queue, slot, ''a'' or ''w'', id, ''VALUES (...)'')';
END
