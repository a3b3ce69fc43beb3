//! Statements of which the private server makes nothing, or not what the source made: it loads no library, and it
//! reads no file. They are known by their text before anything is applied, so that a restore says which they were.
//!
//! Not seen: statements in compressed events, and those of which the text does not say it because a function, a
//! trigger or a view does it.

use crate::archive::LogPosition;
use serde::Serialize;

/// How much of a statement is shown.
const TOLD: usize = 300;

/// Why a statement did not make what it made on the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// `CREATE FUNCTION … SONAME`: left out.
    Library,
    /// `LOAD_FILE()`: the file is the source's, and is NULL here.
    File,
}

/// A statement that was not applied as it was meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmade {
    /// Where it begins.
    pub at: LogPosition,
    /// Why.
    pub why: Why,
    /// Its text, or the beginning of it.
    pub statement: String,
}

/// Tells a statement that will not make what it made.
pub(super) fn why(text: &[u8]) -> Option<Why> {
    // Most are recognized by this alone.
    let has = |word: &[u8]| {
        let is_first = |byte: u8| byte.eq_ignore_ascii_case(&word[0]);
        let mut parts = text.windows(word.len());
        parts.any(|part| is_first(part[0]) && part.eq_ignore_ascii_case(word))
    };
    if !has(b"SONAME") && !has(b"LOAD_FILE") {
        return None;
    }
    let words = words(text);
    let is = |word: &&String, other: &str| word.eq_ignore_ascii_case(other);
    let makes = words.first().is_some_and(|word| is(&word, "CREATE"));
    if makes && words.iter().any(|word| is(&word, "SONAME")) {
        return Some(Why::Library);
    }
    let reads = words
        .windows(2)
        .any(|pair| is(&&pair[0], "LOAD_FILE") && pair[1] == "(");
    reads.then_some(Why::File)
}

/// Returns the part of a statement that is shown.
pub(super) fn reported(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut reported: String = text.chars().take(TOLD).collect();
    if reported.len() < text.len() {
        reported.push('…');
    }
    reported
}

/// Cuts a statement into words and signs, without what stands in quotes or in comments.
fn words(text: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80 {
            word.push(char::from(byte));
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match byte {
            b'\'' | b'"' | b'`' => at = behind_quotes(text, at, byte),
            b'/' if text.get(at) == Some(&b'*') && text.get(at + 1) != Some(&b'!') => {
                let end = text[at..].windows(2).position(|part| part == b"*/");
                at = end.map_or(text.len(), |end| at + end + 2);
            }
            byte if byte.is_ascii_whitespace() => {}
            sign => words.push(char::from(sign).to_string()),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Returns the place behind a quoted text; one that is doubled begins the next.
fn behind_quotes(text: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\\' if quote != b'`' => at += 1,
            byte if byte == quote => break,
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_reported_by_what_they_do() {
        for (text, expected) in [
            (
                "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
                Some(Why::Library),
            ),
            (
                "/* of a tool */ create aggregate function f returns int soname 'x'",
                Some(Why::Library),
            ),
            (
                "INSERT INTO t VALUES (load_file ('/etc/motd'))",
                Some(Why::File),
            ),
            (
                "UPDATE t SET a = 'it''s', b = LOAD_FILE(b)",
                Some(Why::File),
            ),
            (
                "INSERT INTO t VALUES ('CREATE FUNCTION f SONAME LOAD_FILE(1)')",
                None,
            ),
            ("INSERT INTO t VALUES ('a\\'b LOAD_FILE(1)', 7)", None),
            ("INSERT INTO load_file VALUES (1)", None),
            ("CREATE TABLE soname_f (a INT)", None),
            ("CREATE FUNCTION f() RETURNS INT RETURN 1", None),
            ("CREATE TABLE t (a INT) /* SONAME */", None),
        ] {
            assert_eq!(why(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(reported(&[b'x'; 400]).chars().count(), 301);
    }
}
