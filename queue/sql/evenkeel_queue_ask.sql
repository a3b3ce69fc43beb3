-- Makes the statement that looks for a row, into @evq_ask, and lists its queues in @evq_tags. @evq_ask is NULL
-- where one of the queues is not there.
CREATE PROCEDURE {db}.evenkeel_queue_ask(what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
main: BEGIN
  DECLARE one, branch, cond, the_base LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE the_tag BIGINT UNSIGNED;
  DECLARE many, place INT DEFAULT 1;
  DECLARE is_list INT DEFAULT 0;
  -- The statement is prepared with these as numbers.
  SET @evq_ask = NULL, @evq_tags = '', @evq_after = 0, @evq_after_tag = 0;
  IF what LIKE '[%' AND JSON_VALID(what) THEN
    SET is_list = 1, many = JSON_LENGTH(what);
  END IF;
  IF many < 1 THEN
    LEAVE main;
  END IF;
  IF many > 64 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'queue_wait() waits for up to 64 queues at a time';
  END IF;
  SET @evq_union = '';
  WHILE place <= many DO
    SET one = IF(is_list, JSON_UNQUOTE(JSON_EXTRACT(what, CONCAT('$[', place - 1, ']'))), what);
    CALL evenkeel_queue_find(one, the_base, the_tag, cond);
    IF the_base IS NULL THEN
      LEAVE main;
    END IF;
    IF cond IS NOT NULL THEN
      CALL evenkeel_queue_check(cond);
    END IF;
    SET branch = CONCAT(' FROM ', the_base, ' WHERE `_queue_row` > IF(@evq_after_tag = ', the_tag,
      ', @evq_after, 0) AND IS_FREE_LOCK(CONCAT(''evq.', the_tag, '.'', `_queue_row`)) AND (', IFNULL(cond, '1'),
      '\n) ORDER BY `_queue_row` LIMIT 1');
    IF many = 1 THEN
      SET @evq_ask = CONCAT('SELECT 1, `_queue_row`, ', the_tag, ', ', QUOTE(the_base),
        ' INTO @evq_place, @evq_row, @evq_row_tag, @evq_row_base', branch);
    ELSE
      SET @evq_union = CONCAT(@evq_union, IF(place > 1, ' UNION ALL ', ''), '(SELECT ', place,
        ' AS place, `_queue_row` AS id, ', the_tag, ' AS tag, ', QUOTE(the_base), ' AS base', branch, ')');
    END IF;
    IF NOT FIND_IN_SET(the_tag, @evq_tags) THEN
      SET @evq_tags = CONCAT(@evq_tags, IF(@evq_tags = '', '', ','), the_tag);
    END IF;
    IF NOT IFNULL(FIND_IN_SET(the_tag, @evq_allowed), 0) THEN
      -- Whoever may not remove rows may not take them: the server says so here.
      SET @evq_sql = CONCAT('DELETE FROM ', the_base, ' WHERE `_queue_row` = 0');
      PREPARE evq_allowed FROM @evq_sql;
      DEALLOCATE PREPARE evq_allowed;
      SET @evq_allowed = RIGHT(CONCAT_WS(',', @evq_allowed, the_tag), 2000);
    END IF;
    SET place = place + 1;
  END WHILE;
  IF many > 1 THEN
    SET @evq_ask = CONCAT('SELECT place, id, tag, base INTO @evq_place, @evq_row, @evq_row_tag, @evq_row_base FROM (',
      @evq_union, ') AS found ORDER BY place LIMIT 1');
  END IF;
END
