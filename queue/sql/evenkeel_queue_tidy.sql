-- Lets go of locks that a killed call has left, and of the places among those who wait.
CREATE PROCEDURE {db}.evenkeel_queue_tidy()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE one VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF @evq_mode IS NULL THEN
    DO RELEASE_LOCK(CONCAT('evq.mode.', CONNECTION_ID()));
  END IF;
  IF @evq_pending IS NOT NULL THEN
    DO RELEASE_LOCK(@evq_pending);
    SET @evq_pending = NULL;
  END IF;
  WHILE @evq_waits <> '' DO
    SET one = SUBSTRING_INDEX(@evq_waits, ',', 1);
    SET @evq_pending = one, @evq_waits = SUBSTRING(@evq_waits, CHAR_LENGTH(one) + 2);
    DO RELEASE_LOCK(one);
    SET @evq_pending = NULL;
  END WHILE;
END
