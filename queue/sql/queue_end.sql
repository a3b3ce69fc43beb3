-- Removes what is owned for good, and sees all again.
CREATE PROCEDURE {db}.queue_end()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  CALL evenkeel_queue_outside('queue_end');
  CALL evenkeel_queue_tidy();
  CALL evenkeel_queue_owner('queue_end');
  CALL evenkeel_queue_consume();
  SET @evq_mode = NULL;
  DO RELEASE_LOCK(CONCAT('evq.mode.', CONNECTION_ID()));
  SELECT 1 AS queue_end;
END
