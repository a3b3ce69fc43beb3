-- Makes the view through which a queue is seen: its columns, and of its rows those that nobody owns, or those
-- that this connection owns once it has waited. `how` is CREATE or CREATE OR REPLACE.
CREATE PROCEDURE {db}.evenkeel_queue_show(
  how VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, the_tag BIGINT UNSIGNED)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE place TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  SET place = CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.');
  -- 1017 columns of 64 characters, and their quotes.
  SET @evq_most = @@SESSION.group_concat_max_len, @evq_columns = NULL;
  SET SESSION group_concat_max_len = 1048576;
  SET @evq_sql = CONCAT(
    'SELECT GROUP_CONCAT(CONCAT(''`'', REPLACE(column_name, ''`'', ''``''), ''`'') ORDER BY ordinal_position) ',
    'INTO @evq_columns FROM information_schema.columns WHERE table_schema = ', QUOTE(DATABASE()),
    ' AND table_name = ', QUOTE(the_base), ' AND column_name <> ''_queue_row''');
  PREPARE evq_columns FROM @evq_sql;
  EXECUTE evq_columns;
  DEALLOCATE PREPARE evq_columns;
  SET SESSION group_concat_max_len = @evq_most;
  SET @evq_sql = CONCAT(how, ' ALGORITHM = MERGE SQL SECURITY INVOKER VIEW ', place, '`',
    REPLACE(queue_name, '`', '``'), '` AS SELECT ', @evq_columns, ' FROM ', place, '`',
    REPLACE(the_base, '`', '``'), '` WHERE `_queue_row` BETWEEN ', place, 'queue_low(', the_tag, ') AND ', place,
    'queue_high(', the_tag, ') AND IS_USED_LOCK(CONCAT(''evq.', the_tag,
    '.'', `_queue_row`)) <=> IS_USED_LOCK(CONCAT(''evq.mode.'', CONNECTION_ID()))');
  PREPARE evq_show FROM @evq_sql;
  EXECUTE evq_show;
  DEALLOCATE PREPARE evq_show;
END
