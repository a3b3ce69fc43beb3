-- Drops a queue with all its rows. Interrupted, it can be called again.
CREATE PROCEDURE {db}.queue_drop(queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  CALL evenkeel_queue_outside('queue_drop');
  CALL evenkeel_queue_known(queue_name, the_base, the_tag);
  SET @evq_sql = CONCAT('DROP VIEW IF EXISTS `', REPLACE(queue_name, '`', '``'), '`');
  PREPARE evq_drop FROM @evq_sql;
  EXECUTE evq_drop;
  SET @evq_sql = CONCAT('DROP TABLE IF EXISTS `', REPLACE(the_base, '`', '``'), '`');
  PREPARE evq_drop FROM @evq_sql;
  EXECUTE evq_drop;
  DEALLOCATE PREPARE evq_drop;
  DELETE FROM evenkeel_queue_sources WHERE tag = the_tag;
  DELETE FROM evenkeel_queues WHERE tag = the_tag;
  SELECT 1 AS queue_drop;
END
