-- The digest of captures, for DuckDB, Spark and other engines: `evenkeel digest` in SQL.
-- Before it, name the files: a view `statements` over the Parquet files of a capture directory.
WITH counted AS (
    SELECT class, fingerprint, is_prepare, error, rows_sent, rows_affected,
           CASE WHEN NOT is_prepare THEN CAST(latency_ns AS BIGINT) END AS latency_ns
    FROM statements
    WHERE class IS NOT NULL
),
ranked AS (
    SELECT class, latency_ns,
           ROW_NUMBER() OVER (PARTITION BY class ORDER BY latency_ns) AS place,
           COUNT(*) OVER (PARTITION BY class) AS timed
    FROM counted
    WHERE latency_ns IS NOT NULL
),
-- The least latency that at least 95 of 100 statements did not exceed.
percentiles AS (
    SELECT class,
           MIN(CASE WHEN place >= CEIL(CAST(0.95 AS DOUBLE) * timed) THEN latency_ns END) AS p95_ns,
           MIN(CASE WHEN place >= CEIL(CAST(0.99 AS DOUBLE) * timed) THEN latency_ns END) AS p99_ns
    FROM ranked
    GROUP BY class
),
summed AS (
    SELECT class, MIN(fingerprint) AS fingerprint,
           SUM(CASE WHEN is_prepare THEN 0 ELSE 1 END) AS executions,
           SUM(CASE WHEN is_prepare THEN 1 ELSE 0 END) AS prepares,
           COUNT(error) AS errors,
           SUM(CASE WHEN NOT is_prepare THEN CAST(rows_sent AS BIGINT) END) AS rows_sent,
           SUM(CASE WHEN NOT is_prepare THEN CAST(rows_affected AS BIGINT) END) AS rows_affected,
           COUNT(latency_ns) AS timed,
           SUM(latency_ns) AS sum_ns,
           MIN(latency_ns) AS min_ns,
           MAX(latency_ns) AS max_ns
    FROM counted
    GROUP BY class
)
SELECT summed.class, fingerprint, executions, prepares, errors, rows_sent, rows_affected, timed, sum_ns, min_ns,
       CASE WHEN timed > 0 THEN CAST((sum_ns - sum_ns % timed) / timed AS BIGINT) END AS avg_ns,
       p95_ns, p99_ns, max_ns
FROM summed
LEFT JOIN percentiles ON percentiles.class = summed.class
ORDER BY sum_ns DESC, summed.class
