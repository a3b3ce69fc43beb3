-- Removes all rows that nobody owns, a thousand at a time.
CREATE PROCEDURE {db}.queue_truncate(queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  DECLARE removed BIGINT DEFAULT 1;
  CALL evenkeel_queue_outside('queue_truncate');
  CALL evenkeel_queue_known(queue_name, the_base, the_tag);
  SET @evq_sql = CONCAT('DELETE FROM `', REPLACE(the_base, '`', '``'), '` WHERE IS_FREE_LOCK(CONCAT(''evq.', the_tag,
    '.'', `_queue_row`)) ORDER BY `_queue_row` LIMIT 1000');
  PREPARE evq_truncate FROM @evq_sql;
  WHILE removed > 0 DO
    EXECUTE evq_truncate;
    SET removed = ROW_COUNT();
  END WHILE;
  DEALLOCATE PREPARE evq_truncate;
  SELECT 1 AS queue_truncate;
END
