//! Statements without their values: only what all statements of their class have in common.

use crate::Statement;
use crate::digest::Counted;
use crate::digest::fingerprint::Mode;
use crate::digest::fingerprint::{Rules, fingerprint};
use evenkeel_sql::{Lexeme, Lexemes};

/// Returns the part of a text that is the same for every server that may have read it, where that is not all of it:
/// what a backslash means depends on `sql_mode` and the character set, and `$tag$` begins a string in MySQL 9 only.
pub(super) fn sure_part(sql: &[u8]) -> Option<Vec<u8>> {
    let quote = sql.iter().position(|byte| b"'\"`".contains(byte));
    let doubtful = quote.filter(|_| has_two_readings(sql));
    let end = [doubtful, dollar_quote(sql)].into_iter().flatten().min()?;
    Some([&sql[..end], b" ?"].concat())
}

/// Whether servers that read this text in different ways find different statements in it.
fn has_two_readings(sql: &[u8]) -> bool {
    let read = |mode| fingerprint(sql, false, Rules::Evenkeel, mode).text;
    let mut readings = Mode::default().readings(sql).map(read);
    let first = readings.next();
    readings.any(|other| Some(&other) != first.as_ref())
}

/// Returns where the first `$tag$` begins.
fn dollar_quote(sql: &[u8]) -> Option<usize> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut dollars = memchr::memchr_iter(b'$', sql);
    dollars.find(|at| {
        let after = sql[at + 1..].iter().position(|byte| !is_word(*byte));
        let is_closed = after.is_some_and(|length| sql[at + 1 + length] == b'$');
        let before = at.checked_sub(1).map(|before| sql[before]);
        is_closed && !before.is_some_and(|before| is_word(before) || before == b'$')
    })
}

/// Returns what is kept of a statement's text: its fingerprint, which has neither values nor comments. What
/// `PREPARE name FROM 'text'` prepares is redacted within it, so that its class stays the same.
pub(super) fn text(it: &Statement<'_>, counted: Option<&Counted>) -> String {
    let Some(counted) = counted else {
        return String::new();
    };
    let print = &counted.fingerprint.text;
    match name_of_prepared(it.sql).filter(|_| counted.is_inner) {
        Some(name) => {
            let quoted = print.replace('\\', "\\\\").replace('\'', "''");
            format!("prepare {name} from '{quoted}'")
        }
        // It counts, though it was nothing but a comment: what is empty would not.
        None if print.is_empty() => " ".to_owned(),
        None => print.clone(),
    }
}

/// Returns the name that `PREPARE name FROM 'text'` gives.
fn name_of_prepared(sql: &[u8]) -> Option<String> {
    match Lexemes::new(sql, Mode::default()).nth(1)? {
        Lexeme::Word(name) | Lexeme::Name(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_text_that_may_mean_two_things_the_sure_part_is_kept() {
        for (sql, sure) in [
            (&br"SELECT 'a', 1"[..], None),
            (br"SELECT 'a\n', 1", None),
            (br"SELECT a$b$c FROM t", None),
            (b"SELECT \xeb| 1", None),
            (br"SELECT 1, 'a\', 'Hush'", Some(&b"SELECT 1,  ?"[..])),
            (b"SELECT '\xbf\\', 'Hush'", Some(b"SELECT  ?")),
            (
                br"CREATE FUNCTION f() AS $x$ Hush; $x$",
                Some(b"CREATE FUNCTION f() AS  ?"),
            ),
            (br"SELECT $$Hush$$", Some(b"SELECT  ?")),
        ] {
            let found = sure_part(sql);
            assert_eq!(found.as_deref(), sure, "{}", String::from_utf8_lossy(sql));
        }
    }
}
