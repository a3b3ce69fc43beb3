-- Consumes what is owned, then waits for a row of the first queue that has one: its number, 0 when the time is
-- over, NULL where there is no such queue. Several queues are a JSON array.
CREATE PROCEDURE {db}.queue_wait(what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, seconds DOUBLE)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE answer BIGINT;
  CALL evenkeel_queue_wait(what, 1, seconds, answer);
  SELECT answer AS queue_wait;
END
