-- Refuses what would be part of the caller's transaction, or end it.
CREATE PROCEDURE {db}.evenkeel_queue_outside(verb VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE inside INT;
  DECLARE told VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  CALL evenkeel_queue_inside(inside);
  IF inside THEN
    SET told = CONCAT(verb, '() is called in a transaction: COMMIT first, and make sure that autocommit is 1');
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = told;
  END IF;
END
