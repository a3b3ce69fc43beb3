//! What statements have in common that differ in their values only.
//!
//! Rules: comments and hints are left out, `/*! */` and `/*M! */` are read. Strings, numbers and placeholders are `?`.
//! Words are lower case. Lists of values after `IN` and `VALUES` are `(...)`, equal rows and equal arms of a `UNION`
//! that follow each other count once, `LIMIT` with or without an offset is `limit ?`.

mod percona;
mod shape;
mod tokens;

pub use evenkeel_sql::Mode;
pub use percona::percona;
pub(crate) use shape::Shapes;

use evenkeel_sql::{Lexeme, Lexemes, unquoted};
use tokens::Tokens;

/// By which rules statements are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// Our own.
    #[default]
    Evenkeel,
    /// Those of pt-query-digest, with their oddities, so that both reports can be laid side by side.
    Percona,
}

/// A fingerprint with its identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// The statement without its values.
    pub text: String,
    /// By our rules the first sixteen hexadecimal digits of the text's BLAKE3, in lower case. By Percona's its MD5, in
    /// upper case: pt-query-digest shows that since 3.1, and the last sixteen digits of it before.
    pub id: String,
}

/// Returns the fingerprint of a statement; `is_cut` when more of it came.
#[must_use]
pub fn fingerprint(sql: &[u8], is_cut: bool, rules: Rules, mode: Mode) -> Fingerprint {
    match rules {
        Rules::Evenkeel => {
            let text = own(sql, is_cut, mode);
            let id = blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
            Fingerprint { text, id }
        }
        Rules::Percona => {
            let text = percona(sql);
            let id = percona::id(&text);
            let text = String::from_utf8_lossy(&text).into_owned();
            Fingerprint { text, id }
        }
    }
}

fn own(sql: &[u8], is_cut: bool, mode: Mode) -> String {
    if !is_cut && is_administrator(sql) {
        return String::from_utf8_lossy(sql).into_owned();
    }
    let mut tokens = Tokens::default();
    let mut lexemes = Lexemes::new(sql, mode);
    while let Some(lexeme) = lexemes.next() {
        match lexeme {
            // As fingerprints have it, so that one of a fingerprint is the same.
            Lexeme::Sign(b"(") if lexemes.takes(b"...)") => tokens.list(),
            Lexeme::Sign([byte]) if byte.is_ascii_control() => {}
            lexeme => tokens.add(lexeme),
        }
    }
    tokens.end(is_cut)
}

/// Returns whether a log names a command here, and not a client that begins a statement like it.
fn is_administrator(sql: &[u8]) -> bool {
    const COMMAND: &[u8] = b"administrator command: ";
    const LONGEST: usize = 40;
    let name = sql.strip_prefix(COMMAND);
    name.is_some_and(|name| {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_');
        name.len() <= LONGEST && name.iter().all(is_letter)
    })
}

/// Returns the statement that `PREPARE name FROM 'statement'` prepares.
#[must_use]
pub fn prepared(sql: &[u8], mode: Mode) -> Option<Vec<u8>> {
    let verb = sql.get(..8)?;
    verb.eq_ignore_ascii_case(b"prepare ").then_some(())?;
    let mut lexemes = Lexemes::new(sql, mode);
    match lexemes.nth(2)? {
        Lexeme::Word(word) if word.eq_ignore_ascii_case(b"from") => {}
        _ => return None,
    }
    match lexemes.next()? {
        Lexeme::Text(text) => Some(unquoted(text, mode)),
        _ => None,
    }
}

/// Returns a statement in which nothing stands that is said after `IDENTIFIED BY`, or of a password: in a statement
/// that mentions one, every string is `'***'`.
#[must_use]
pub fn redacted(sql: &[u8], mode: Mode) -> Vec<u8> {
    let lower = sql.to_ascii_lowercase();
    let has = |word: &[u8]| memchr::memmem::find(&lower, word).is_some();
    if !["identified", "passw", "secret", "sst_auth"]
        .iter()
        .any(|word| has(word.as_bytes()))
    {
        return sql.to_vec();
    }
    // Whatever the quotes are: none of what stands between them is shown.
    let mode = Mode {
        ansi_quotes: false,
        ..mode
    };
    let mut lexemes = Lexemes::new(sql, mode);
    let mut safe = Vec::with_capacity(sql.len());
    let mut from = 0;
    while let Some(lexeme) = lexemes.next() {
        if let Lexeme::Text(_) = lexeme {
            safe.extend_from_slice(&sql[from..lexemes.begin()]);
            safe.extend_from_slice(b"'***'");
            from = lexemes.end();
        }
    }
    // What a comment says of it is no better.
    safe.extend_from_slice(&sql[from..]);
    safe
}
