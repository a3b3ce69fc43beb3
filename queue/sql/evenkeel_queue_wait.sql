-- What queue_wait() and queue_wait_n() do.
CREATE PROCEDURE {db}.evenkeel_queue_wait(
  what LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, most BIGINT, seconds DOUBLE, OUT answer BIGINT)
SQL SECURITY INVOKER COMMENT '{stamp}'
main: BEGIN
  DECLARE begun DATETIME(6) DEFAULT SYSDATE(6);
  DECLARE slept, remains DOUBLE DEFAULT 0;
  DECLARE pause DOUBLE DEFAULT 0.001;
  DECLARE gone, tries, taken, owned, got INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  -- A queue was dropped, or is in a database without any.
  DECLARE CONTINUE HANDLER FOR 1049, 1146 SET gone = 1;
  SET answer = NULL;
  IF what IS NULL OR most IS NULL OR most < 1 OR seconds IS NULL THEN
    LEAVE main;
  END IF;
  CALL evenkeel_queue_outside('queue_wait');
  CALL evenkeel_queue_tidy();
  CALL evenkeel_queue_ask(what);
  IF gone OR @evq_ask IS NULL THEN
    LEAVE main;
  END IF;
  -- A wrong condition is told here, before anything is consumed. The statement stays for the next call: to
  -- prepare it costs more than to run it.
  IF NOT (@evq_asked <=> @evq_ask) THEN
    SET @evq_asked = NULL;
    PREPARE evq_ask FROM @evq_ask;
    IF gone THEN
      LEAVE main;
    END IF;
    SET @evq_asked = @evq_ask;
  END IF;
  IF @evq_mode IS NULL THEN
    SET got = GET_LOCK(CONCAT('evq.mode.', CONNECTION_ID()), 0);
    IF NOT (got <=> 1) THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'another connection holds the lock of this one''s name';
    END IF;
    SET @evq_mode = 1, @evq_rows = '', @evq_tag = NULL;
  END IF;
  CALL evenkeel_queue_owner('queue_wait');
  CALL evenkeel_queue_consume();
  SET most = LEAST(most, 1000), @evq_waits = '';
  look: LOOP
    SET @evq_after = 0, @evq_after_tag = 0, tries = 0;
    pass: LOOP
      SET @evq_place = NULL;
      EXECUTE evq_ask;
      IF gone OR @evq_place IS NULL OR tries = 100 THEN
        LEAVE pass;
      END IF;
      SET taken = 0;
      CALL evenkeel_queue_take(taken);
      IF taken THEN
        SET answer = @evq_place, owned = owned + 1;
      ELSE
        SET tries = tries + 1;
      END IF;
      IF owned = most THEN
        LEAVE look;
      END IF;
      SET @evq_after = @evq_row, @evq_after_tag = @evq_row_tag;
    END LOOP;
    IF gone OR owned > 0 THEN
      LEAVE look;
    END IF;
    -- Whichever is over first: a clock that is set back does not make it endless.
    SET remains = seconds - GREATEST(slept, TIMESTAMPDIFF(MICROSECOND, begun, SYSDATE(6)) / 1000000);
    IF remains <= 0 THEN
      SET answer = 0;
      LEAVE look;
    END IF;
    IF slept = 0 THEN
      CALL evenkeel_queue_stand();
    END IF;
    SET remains = LEAST(pause, remains);
    -- DO would pass over KILL QUERY.
    SET got = SLEEP(remains);
    IF got THEN
      CALL evenkeel_queue_tidy();
      SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317, MESSAGE_TEXT = 'Query execution was interrupted';
    END IF;
    SET slept = slept + remains, pause = LEAST(pause * 1.5, 0.1);
  END LOOP;
  CALL evenkeel_queue_tidy();
END
