//! Statements without their values: only what all statements of their class have in common.

use crate::Statement;
use crate::digest::Counted;
use crate::digest::fingerprint::Mode;
use evenkeel_sql::{Lexeme, Lexemes};

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
