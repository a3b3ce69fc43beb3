-- Takes `[database.]queue[:condition]` apart. The base table, quoted, is NULL where there is no such queue.
CREATE PROCEDURE {db}.evenkeel_queue_find(
  one LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT the_base TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT the_tag BIGINT UNSIGNED,
  OUT cond LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE named, place LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  SET the_base = NULL, the_tag = NULL, cond = NULL;
  SET named = SUBSTRING_INDEX(one, ':', 1);
  IF CHAR_LENGTH(named) < CHAR_LENGTH(one) THEN
    SET cond = SUBSTRING(one, CHAR_LENGTH(named) + 2);
  END IF;
  IF LOCATE('.', named) = 0 THEN
    SELECT q.base, q.tag INTO the_base, the_tag FROM evenkeel_queues AS q WHERE q.name = named;
    SET place = DATABASE();
  ELSE
    SET place = SUBSTRING_INDEX(named, '.', 1);
    SET @evq_found = NULL, @evq_found_tag = NULL;
    SET @evq_sql = CONCAT('SELECT base, tag INTO @evq_found, @evq_found_tag FROM `', REPLACE(place, '`', '``'),
                          '`.evenkeel_queues WHERE name = ', QUOTE(SUBSTRING(named, CHAR_LENGTH(place) + 2)));
    PREPARE evq_find FROM @evq_sql;
    EXECUTE evq_find;
    DEALLOCATE PREPARE evq_find;
    SET the_base = @evq_found, the_tag = @evq_found_tag;
  END IF;
  SET the_base = CONCAT('`', REPLACE(place, '`', '``'), '`.`', REPLACE(the_base, '`', '``'), '`');
END
