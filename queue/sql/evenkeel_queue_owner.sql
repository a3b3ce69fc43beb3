-- Refuses whoever has not waited, and whoever has lost what it owned.
CREATE PROCEDURE {db}.evenkeel_queue_owner(verb VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE told VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF @evq_mode IS NULL THEN
    SET told = CONCAT(verb, '() needs a connection that has called queue_wait() before');
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = told;
  END IF;
  IF NOT (IS_USED_LOCK(CONCAT('evq.mode.', CONNECTION_ID())) <=> CONNECTION_ID()) THEN
    SET @evq_mode = NULL, @evq_tag = NULL, @evq_rows = '';
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
      'the owned rows were returned to the queue: RELEASE_ALL_LOCKS() was called since queue_wait()';
  END IF;
END
