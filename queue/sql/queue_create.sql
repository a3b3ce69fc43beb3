-- Makes a queue. The columns are as in CREATE TABLE, with keys, if there are to be any, but no primary one.
CREATE PROCEDURE {db}.queue_create(
  queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  new_columns LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_tag BIGINT UNSIGNED DEFAULT UUID_SHORT();
  DECLARE the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE made INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF made THEN
      DELETE FROM evenkeel_queues WHERE tag = the_tag;
      SET @evq_sql = CONCAT('DROP TABLE IF EXISTS `', REPLACE(the_base, '`', '``'), '`');
      PREPARE evq_create FROM @evq_sql;
      EXECUTE evq_create;
      DEALLOCATE PREPARE evq_create;
    END IF;
    RESIGNAL;
  END;
  CALL evenkeel_queue_outside('queue_create');
  CALL evenkeel_queue_name(queue_name);
  -- No two queues ever share one, so that nobody mistakes a new one for an old one of its name.
  SET the_base = CONCAT(LEFT(queue_name, 40), '_q', LOWER(HEX(the_tag)));
  SET @evq_sql = CONCAT('CREATE TABLE `', REPLACE(the_base, '`', '``'), '` (', new_columns,
    '\n, `_queue_row` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB');
  PREPARE evq_create FROM @evq_sql;
  SET made = 1;
  EXECUTE evq_create;
  DEALLOCATE PREPARE evq_create;
  CALL evenkeel_queue_show('CREATE', queue_name, the_base, the_tag);
  INSERT INTO evenkeel_queues (name, base, tag) VALUES (queue_name, the_base, the_tag);
  SELECT 1 AS queue_create;
END
