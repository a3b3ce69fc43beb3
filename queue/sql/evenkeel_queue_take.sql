-- Tries to own the row that was found: its lock first, then a look whether it is there still. Whoever removes
-- rows holds them locked and looks for this lock, so that one of the two sees the other.
CREATE PROCEDURE {db}.evenkeel_queue_take(OUT taken INT)
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE got INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  -- Two that try for each other's locks in the same moment: nobody waits, so there is nothing to end.
  DECLARE CONTINUE HANDLER FOR 1213, 3058 SET got = 0;
  -- Somebody's transaction holds the row.
  DECLARE CONTINUE HANDLER FOR 1205 SET @evq_there = 0;
  SET taken = 0;
  SET @evq_pending = CONCAT('evq.', @evq_row_tag, '.', @evq_row), @evq_there = 0;
  SET got = GET_LOCK(@evq_pending, 0);
  IF got = 1 THEN
    IF NOT (@evq_looked <=> @evq_row_base) THEN
      SET @evq_looked = NULL;
      SET @evq_sql = CONCAT('SELECT 1 INTO @evq_there FROM ', @evq_row_base, ' WHERE `_queue_row` = ? FOR UPDATE{skip}');
      PREPARE evq_look FROM @evq_sql;
      SET @evq_looked = @evq_row_base;
    END IF;
    {impatient}
    EXECUTE evq_look USING @evq_row;
    {patient}
    IF @evq_there = 1 THEN
      SET @evq_low = IF(@evq_rows = '', @evq_row, @evq_low), @evq_high = @evq_row,
          @evq_tag = @evq_row_tag, @evq_base = @evq_row_base,
          @evq_rows = CONCAT(@evq_rows, IF(@evq_rows = '', '', ','), @evq_row), @evq_pending = NULL;
      SET taken = 1;
    ELSE
      DO RELEASE_LOCK(@evq_pending);
    END IF;
  END IF;
  SET @evq_pending = NULL;
END
