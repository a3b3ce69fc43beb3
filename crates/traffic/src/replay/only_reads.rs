//! Whether a statement changes no data, whatever its session and its server make of the text.

use super::access::{Access, access, is_one_query};
use evenkeel_sql::Mode;

/// Whether a statement changes no data, however its session reads quotes, backslashes and bytes beyond ASCII, and
/// whichever version comments its server runs; what it does in the mode that is assumed is known.
pub(super) fn only_reads_in_any_mode(known: &Access, sql: &[u8], mode: Mode) -> bool {
    if !known.only_reads() || hides_in_comments(sql) {
        return false;
    }
    in_every_mode(sql, mode, |mode| access(sql, mode).only_reads())
}

/// Whether it is one query that changes no data, in every mode, and begins with its own first word: what stands in
/// front of it then is in front of nothing else.
pub(crate) fn is_query(sql: &[u8], mode: Mode) -> bool {
    let begin = sql.trim_ascii_start();
    let is_version = begin.starts_with(b"/*!") || begin.to_ascii_lowercase().starts_with(b"/*m!");
    !is_version
        && only_reads_in_any_mode(&access(sql, mode), sql, mode)
        && in_every_mode(sql, mode, |mode| is_one_query(sql, mode))
}

/// Whether something is so however a session reads quotes, backslashes and bytes beyond ASCII.
fn in_every_mode(sql: &[u8], mode: Mode, is_so: impl Fn(Mode) -> bool) -> bool {
    let names: &[bool] = match sql.contains(&b'"') {
        true => &[false, true],
        false => &[mode.ansi_quotes],
    };
    let mut modes = names.iter().flat_map(|ansi_quotes| {
        let mode = Mode {
            ansi_quotes: *ansi_quotes,
            ..mode
        };
        mode.readings(sql)
    });
    modes.all(is_so)
}

/// Whether a version comment has something in it that begins a string or a comment, or ends a statement: a server that
/// skips the comment reads the rest otherwise than one that runs it.
fn hides_in_comments(sql: &[u8]) -> bool {
    let starts = memchr::memmem::find_iter(sql, b"/*");
    starts.into_iter().any(|at| {
        let rest = &sql[at + 2..];
        let is_version = matches!(rest, [b'!', ..] | [b'M' | b'm', b'!', ..]);
        let end = memchr::memmem::find(rest, b"*/").unwrap_or(rest.len());
        let inside = &rest[..end];
        let has = |text: &[u8]| memchr::memmem::find(inside, text).is_some();
        let is_plain =
            !inside.iter().any(|byte| b"'\"`#;\\".contains(byte)) && !has(b"--") && !has(b"/*");
        is_version && (!is_plain || end == rest.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_what_can_be_explained() {
        let is = |sql: &str| is_query(sql.as_bytes(), Mode::default());
        for sql in [
            "SELECT 1",
            " /* app */ (SELECT a FROM t) UNION SELECT 2",
            "WITH x AS (SELECT 1) SELECT ';' FROM x",
        ] {
            assert!(is(sql), "{sql}");
        }
        for sql in [
            "SHOW TABLES",
            "ANALYZE SELECT 1",
            "/*!50000 ANALYZE */ SELECT 1",
            "SELECT 1; SELECT SLEEP(10)",
            "SELECT '\\'; SELECT SLEEP(10) -- '",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "UPDATE t SET a = 1",
            "WITH x AS (SELECT 1) DELETE FROM t",
            "SET @a = 1",
            "BEGIN",
            "",
        ] {
            assert!(!is(sql), "{sql}");
        }
    }

    #[test]
    fn what_frees_or_hides_writes_is_no_read() {
        let reads = |sql: &str| {
            only_reads_in_any_mode(
                &access(sql.as_bytes(), Mode::default()),
                sql.as_bytes(),
                Mode::default(),
            )
        };
        for sql in [
            "SELECT 'a' FROM t",
            "SELECT \"a\\\"b\" FROM t",
            "START TRANSACTION",
            "START TRANSACTION READ ONLY",
            "SET NAMES utf8mb4",
            "COMMIT",
        ] {
            assert!(reads(sql), "{sql}");
        }
        for sql in [
            "START TRANSACTION READ WRITE",
            "SET SESSION TRANSACTION READ WRITE",
            "SET tx_read_only=0",
            "SET @@session.transaction_read_only = 0",
            "SET STATEMENT tx_read_only=0 FOR SELECT f()",
            // With NO_BACKSLASH_ESCAPES the string ends at the second quote.
            "SELECT '\\' INTO OUTFILE '/tmp/x' -- '",
            "BEGIN; UPDATE t SET a = 1",
            // A server that is older than the comment's version skips it, and the string does not begin.
            "SELECT 1 /*!999999 ' */ ; DROP TABLE t -- '",
            "SELECT 1 /*M!999999 # */ INTO OUTFILE '/tmp/x'\n",
            "SELECT 1 /*!50701 -- */ INTO OUTFILE '/tmp/x'\n*/",
            "SELECT 1 /*!50701 a",
        ] {
            assert!(!reads(sql), "{sql}");
        }
        assert!(reads("SELECT /*!40001 SQL_NO_CACHE */ a FROM t /* ' */"));
        let gbk: &[u8] = b"SELECT '\xbf\\' INTO OUTFILE '/tmp/x' -- '";
        let known = access(gbk, Mode::default());
        assert!(!only_reads_in_any_mode(&known, gbk, Mode::default()));
    }
}
