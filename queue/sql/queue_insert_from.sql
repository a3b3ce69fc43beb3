-- Inserts what a source sent: 1. With 'a', passes over what it has sent before: 0. In the caller's transaction,
-- if there is one, else in one of its own.
CREATE PROCEDURE {db}.queue_insert_from(
  queue_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, slot BIGINT,
  mode VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, id BIGINT,
  new_rows LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY INVOKER COMMENT '{stamp}'
main: BEGIN
  DECLARE inside, answer INT DEFAULT 0;
  DECLARE the_tag BIGINT UNSIGNED;
  DECLARE seen BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF NOT inside THEN
      ROLLBACK;
    END IF;
    RESIGNAL;
  END;
  CALL evenkeel_queue_inside(inside);
  IF slot NOT BETWEEN 0 AND 63 OR mode NOT IN ('a', 'w') THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
      'a source has a slot, 0 to 63, and ''a'', to pass over what came before, or ''w'', to take it';
  END IF;
  SELECT q.tag INTO the_tag FROM evenkeel_queues AS q WHERE q.name = queue_name;
  IF the_tag IS NULL OR slot IS NULL OR mode IS NULL OR id IS NULL OR new_rows IS NULL THEN
    SELECT NULL AS queue_insert_from;
    LEAVE main;
  END IF;
  IF NOT inside THEN
    START TRANSACTION;
  END IF;
  -- Whoever comes from the same source waits here.
  INSERT INTO evenkeel_queue_sources (tag, slot) VALUES (the_tag, slot) ON DUPLICATE KEY UPDATE tag = the_tag;
  SELECT s.last_id INTO seen FROM evenkeel_queue_sources AS s WHERE s.tag = the_tag AND s.slot = slot FOR UPDATE;
  IF mode = 'w' OR seen IS NULL OR id > seen THEN
    SET @evq_sql = CONCAT('INSERT INTO `', REPLACE(queue_name, '`', '``'), '` ', new_rows);
    PREPARE evq_insert FROM @evq_sql;
    EXECUTE evq_insert;
    DEALLOCATE PREPARE evq_insert;
    -- Last, so that rows that are refused can be sent again, whatever the caller does with the transaction.
    UPDATE evenkeel_queue_sources AS s SET s.last_id = id WHERE s.tag = the_tag AND s.slot = slot;
    SET answer = 1;
  END IF;
  IF NOT inside THEN
    COMMIT;
  END IF;
  SELECT answer AS queue_insert_from;
END
