-- The base table and the tag of a queue of this database. Refuses one that is not there.
CREATE PROCEDURE {db}.evenkeel_queue_known(
  queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT the_base VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT the_tag BIGINT UNSIGNED)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE told VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  SET the_base = NULL, the_tag = NULL;
  SELECT q.base, q.tag INTO the_base, the_tag FROM evenkeel_queues AS q WHERE q.name = queue_name;
  IF the_tag IS NULL THEN
    SET told = CONCAT('there is no queue ', IFNULL(queue_name, 'NULL'));
    SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = told;
  END IF;
END
