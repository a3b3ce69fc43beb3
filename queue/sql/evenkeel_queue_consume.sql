-- Removes all owned rows for good, then lets go of them: nobody finds them in between.
CREATE PROCEDURE {db}.evenkeel_queue_consume()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  -- The queue was dropped.
  DECLARE gone INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR 1146 SET gone = 1;
  IF @evq_rows <> '' AND @evq_low = @evq_high THEN
    IF NOT (@evq_ended <=> @evq_base) THEN
      SET @evq_ended = NULL;
      SET @evq_sql = CONCAT('DELETE FROM ', @evq_base, ' WHERE `_queue_row` = ?');
      PREPARE evq_end FROM @evq_sql;
      SET @evq_ended = IF(gone, NULL, @evq_base);
    END IF;
    IF NOT gone THEN
      EXECUTE evq_end USING @evq_low;
    END IF;
  ELSEIF @evq_rows <> '' THEN
    SET @evq_sql = CONCAT('DELETE FROM ', @evq_base, ' WHERE `_queue_row` IN (', @evq_rows, ')');
    PREPARE evq_consume FROM @evq_sql;
    IF NOT gone THEN
      EXECUTE evq_consume;
      DEALLOCATE PREPARE evq_consume;
    END IF;
  END IF;
  CALL evenkeel_queue_release();
END
