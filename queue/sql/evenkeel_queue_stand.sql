-- Stands among those who wait for the queues of @evq_tags, for queue_stats() to count: the first free of 256
-- places of each.
CREATE PROCEDURE {db}.evenkeel_queue_stand()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE one, rest TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE slot, got INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR 1213, 3058 SET got = 0;
  SET rest = @evq_tags, @evq_waits = '';
  WHILE rest <> '' DO
    SET one = SUBSTRING_INDEX(rest, ',', 1);
    SET rest = SUBSTRING(rest, CHAR_LENGTH(one) + 2), slot = 0;
    WHILE slot < 256 DO
      SET got = 0, @evq_pending = CONCAT('evq.wait.', one, '.', slot), slot = slot + 1;
      IF IS_FREE_LOCK(@evq_pending) THEN
        SET got = GET_LOCK(@evq_pending, 0);
      END IF;
      IF got = 1 THEN
        SET @evq_waits = CONCAT(@evq_waits, @evq_pending, ','), slot = 256;
      END IF;
      SET @evq_pending = NULL;
    END WHILE;
  END WHILE;
END
