-- Gives a queue another name. Owners keep their rows, and whoever waits waits on.
CREATE PROCEDURE {db}.queue_rename(
  queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  new_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  CALL evenkeel_queue_outside('queue_rename');
  CALL evenkeel_queue_name(new_name);
  CALL evenkeel_queue_known(queue_name, the_base, the_tag);
  CALL evenkeel_queue_show('CREATE', new_name, the_base, the_tag);
  UPDATE evenkeel_queues AS q SET q.name = new_name WHERE q.tag = the_tag;
  SET @evq_sql = CONCAT('DROP VIEW IF EXISTS `', REPLACE(queue_name, '`', '``'), '`');
  PREPARE evq_rename FROM @evq_sql;
  EXECUTE evq_rename;
  DEALLOCATE PREPARE evq_rename;
  SELECT 1 AS queue_rename;
END
