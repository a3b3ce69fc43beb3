-- The last row that a view shows. An owner sees nothing of other queues.
CREATE FUNCTION {db}.queue_high(the_tag BIGINT UNSIGNED) RETURNS BIGINT
DETERMINISTIC NO SQL SQL SECURITY INVOKER COMMENT '{stamp}'
RETURN IF(@evq_mode IS NULL, 9223372036854775807, IF(@evq_tag = the_tag, @evq_high, 0))
