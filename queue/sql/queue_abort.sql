-- Gives back what is owned, and sees all again.
CREATE PROCEDURE {db}.queue_abort()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  CALL evenkeel_queue_outside('queue_abort');
  CALL evenkeel_queue_tidy();
  CALL evenkeel_queue_owner('queue_abort');
  CALL evenkeel_queue_release();
  SET @evq_mode = NULL;
  DO RELEASE_LOCK(CONCAT('evq.mode.', CONNECTION_ID()));
  SELECT 1 AS queue_abort;
END
