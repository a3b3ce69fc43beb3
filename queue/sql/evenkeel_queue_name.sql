-- Refuses names that no queue can be asked for by.
CREATE PROCEDURE {db}.evenkeel_queue_name(queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  IF IFNULL(queue_name, '') = '' OR LOCATE('.', queue_name) > 0 OR LOCATE(':', queue_name) > 0
     OR queue_name LIKE '[%' THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a queue''s name has no . and no : and does not begin with [';
  END IF;
END
