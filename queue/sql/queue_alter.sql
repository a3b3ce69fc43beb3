-- Changes a queue's columns and keys: `change` is what stands behind ALTER TABLE name. Owners keep their rows.
CREATE PROCEDURE {db}.queue_alter(
  queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  CALL evenkeel_queue_outside('queue_alter');
  CALL evenkeel_queue_known(queue_name, the_base, the_tag);
  SET @evq_sql = CONCAT('ALTER TABLE `', REPLACE(the_base, '`', '``'), '` ', what);
  PREPARE evq_alter FROM @evq_sql;
  EXECUTE evq_alter;
  DEALLOCATE PREPARE evq_alter;
  CALL evenkeel_queue_show('CREATE OR REPLACE', queue_name, the_base, the_tag);
  SELECT 1 AS queue_alter;
END
