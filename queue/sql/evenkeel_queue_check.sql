-- Refuses conditions that would be more than that. It guards against surprise, not against harm: all runs
-- with the caller's own privileges.
CREATE PROCEDURE {db}.evenkeel_queue_check(cond LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE bare LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '';
  DECLARE pieces, piece INT DEFAULT 1;
  -- What stands outside of '…': every other piece, as a doubled quote begins another text at once.
  SET pieces = CHAR_LENGTH(cond) - CHAR_LENGTH(REPLACE(cond, '''', '')) + 1;
  WHILE piece <= pieces DO
    SET bare = CONCAT(bare, SUBSTRING_INDEX(SUBSTRING_INDEX(cond, '''', piece), '''', -1), ' ');
    SET piece = piece + 2;
  END WHILE;
  IF pieces % 2 = 0 OR TRIM(bare) = '' OR LOCATE('\\', cond) > 0
     OR bare REGEXP '[;#"@?:]' OR LOCATE('/*', bare) > 0 OR LOCATE('--', bare) > 0
     OR LOWER(bare) REGEXP '(^|[^a-z0-9_$`])(select|table|values|into)([^a-z0-9_$`]|$)' THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
      'the condition is wrong: it is one expression over columns, without SELECT, comments, variables, ; \\ and "';
  END IF;
END
