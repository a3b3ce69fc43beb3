-- A line for each number; it counts, so it reads all rows. NULL where there is no such queue.
CREATE PROCEDURE {db}.queue_stats(what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE the_base, cond LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  DECLARE slot, waiters INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR 1049, 1146 SET the_base = NULL;
  CALL evenkeel_queue_find(what, the_base, the_tag, cond);
  IF the_base IS NOT NULL THEN
    SET @evq_sql = CONCAT('SELECT COUNT(*), COUNT(IF(IS_FREE_LOCK(CONCAT(''evq.', the_tag,
      '.'', `_queue_row`)), NULL, 1)) INTO @evq_count, @evq_owned FROM ', the_base);
    PREPARE evq_stats FROM @evq_sql;
    IF the_base IS NOT NULL THEN
      EXECUTE evq_stats;
      DEALLOCATE PREPARE evq_stats;
    END IF;
  END IF;
  WHILE the_base IS NOT NULL AND slot < 256 DO
    IF NOT IS_FREE_LOCK(CONCAT('evq.wait.', the_tag, '.', slot)) THEN
      SET waiters = waiters + 1;
    END IF;
    SET slot = slot + 1;
  END WHILE;
  SELECT IF(the_base IS NULL, NULL, CONCAT('rows: ', @evq_count, '\nrows_owned: ', @evq_owned, '\nwaiters: ', waiters,
    '\n')) AS queue_stats;
END
