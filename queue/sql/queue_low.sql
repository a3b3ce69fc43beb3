-- The first row that a view shows. Constant within a statement, so that an owner's SELECT reads its rows alone.
CREATE FUNCTION {db}.queue_low(the_tag BIGINT UNSIGNED) RETURNS BIGINT
DETERMINISTIC NO SQL SQL SECURITY INVOKER COMMENT '{stamp}'
RETURN IF(@evq_mode IS NULL, 1, IF(@evq_tag = the_tag, @evq_low, 1))
