-- Lets go of all owned rows. Killed in between, it knows which are left.
CREATE PROCEDURE {db}.evenkeel_queue_release()
SQL SECURITY INVOKER COMMENT '{stamp}'
BEGIN
  DECLARE one VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  WHILE @evq_rows <> '' DO
    SET one = SUBSTRING_INDEX(@evq_rows, ',', 1);
    SET @evq_pending = CONCAT('evq.', @evq_tag, '.', one),
        @evq_rows = SUBSTRING(@evq_rows, CHAR_LENGTH(one) + 2);
    DO RELEASE_LOCK(@evq_pending);
    SET @evq_pending = NULL;
  END WHILE;
  SET @evq_tag = NULL, @evq_base = NULL, @evq_low = NULL, @evq_high = NULL;
END
