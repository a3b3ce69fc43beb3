-- Gives back the space of rows that are gone: the server builds the table anew. NULL where there is no such queue.
CREATE PROCEDURE {db}.queue_compact(what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_base, cond LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  DECLARE CONTINUE HANDLER FOR 1049, 1146 SET the_base = NULL;
  CALL evenkeel_queue_outside('queue_compact');
  CALL evenkeel_queue_find(what, the_base, the_tag, cond);
  IF the_base IS NOT NULL THEN
    SET @evq_sql = CONCAT('ALTER TABLE ', the_base, ' ENGINE=InnoDB');
    PREPARE evq_compact FROM @evq_sql;
    EXECUTE evq_compact;
    DEALLOCATE PREPARE evq_compact;
  END IF;
  SELECT IF(the_base IS NULL, NULL, 1) AS queue_compact;
END
