-- The same, for up to so many rows of one queue.
CREATE PROCEDURE {db}.queue_wait_n(
  what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, most BIGINT, seconds DOUBLE)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE answer BIGINT;
  IF what LIKE '[%' AND JSON_VALID(what) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'queue_wait_n() waits for rows of one queue';
  END IF;
  CALL evenkeel_queue_wait(what, most, seconds, answer);
  SELECT answer AS queue_wait_n;
END
