-- Whether the caller is in a transaction. No variable of MySQL tells, but outside of one a savepoint is gone
-- with the statement that made it.
CREATE PROCEDURE {db}.evenkeel_queue_inside(OUT inside INT)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE CONTINUE HANDLER FOR 1305 SET inside = 0;
  SET inside = 1;
  SAVEPOINT evenkeel_queue;
  RELEASE SAVEPOINT evenkeel_queue;
END
