-- Which row is owned, the first of several; NULL for none.
CREATE PROCEDURE {db}.queue_rowid()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  CALL evenkeel_queue_owner('queue_rowid');
  SELECT @evq_low AS queue_rowid;
END
