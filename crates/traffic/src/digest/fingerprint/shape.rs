//! Statements that differ in nothing but plain values are read once.
//!
//! Most of what a server runs are a few statements with other numbers and strings. What depends on their words alone,
//! fingerprints and the tables they name, is kept by their shape: the text with marks in the place of plain values.
//! Where a reader might disagree about what a value is, there is no shape, and the statement is read as a whole.

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// Longer statements are read each time.
const LONGEST: usize = 2 << 10;
/// As many shapes are kept; then all are forgotten.
const MOST: usize = 2048;

/// What stands for a value. None of these bytes is in a statement that has a shape.
const TEXT: u8 = 1;
const NUMBER: u8 = 2;

/// What is known of shapes.
#[derive(Debug)]
pub(crate) struct Shapes<T> {
    known: HashMap<Box<[u8]>, Arc<T>, RandomState>,
    shape: Vec<u8>,
}

impl<T> Default for Shapes<T> {
    fn default() -> Self {
        Self {
            known: HashMap::default(),
            shape: Vec::new(),
        }
    }
}

impl<T> Shapes<T> {
    /// Returns what is known of a statement's shape; what is not known yet, and what has none, is read. What `read`
    /// returns must depend on nothing but the words of `sql`.
    pub(crate) fn get(&mut self, sql: &[u8], read: impl FnOnce() -> T) -> Arc<T> {
        if !shape(sql, &mut self.shape) {
            return Arc::new(read());
        }
        if let Some(known) = self.known.get(&self.shape[..]) {
            return Arc::clone(known);
        }
        let value = Arc::new(read());
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known
            .insert(self.shape.as_slice().into(), Arc::clone(&value));
        value
    }
}

/// Writes the shape of a statement; returns false where it has none.
fn shape(sql: &[u8], into: &mut Vec<u8>) -> bool {
    into.clear();
    if sql.len() > LONGEST || !is_about_rows(sql) {
        return false;
    }
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = sql.get(at) {
        if IS_PLAIN[usize::from(byte)] {
            at += 1;
            continue;
        }
        let before = at.checked_sub(1).map_or(b' ', |at| sql[at]);
        let end = match byte {
            b'\'' => text(sql, at, before),
            b'`' => name(sql, at),
            b'0'..=b'9' => Some(digits(sql, at)),
            _ if is_refused(byte, sql.get(at + 1).copied()) => None,
            _ => Some(at + 1),
        };
        let Some(end) = end else {
            return false;
        };
        let after = sql.get(end).copied().unwrap_or(b' ');
        let mark = match byte {
            b'\'' => Some(TEXT),
            b'0'..=b'9' if is_apart(before) && is_apart(after) => Some(NUMBER),
            _ => None,
        };
        if let Some(mark) = mark {
            into.extend_from_slice(&sql[copied..at]);
            into.push(mark);
            copied = end;
        }
        at = end;
    }
    into.extend_from_slice(&sql[copied..]);
    true
}

/// Bytes that nothing begins with but themselves.
const IS_PLAIN: [bool; 256] = {
    let mut is_plain = [false; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        is_plain[at] = byte.is_ascii_alphabetic()
            || matches!(
                byte,
                b' ' | b'_' | b',' | b'.' | b'(' | b')' | b'=' | b'?' | b'@' | b'$'
            )
            || matches!(
                byte,
                b'<' | b'>' | b'+' | b'%' | b';' | b':' | b'!' | b'&' | b'|' | b'\n'
            );
        at += 1;
    }
    is_plain
};

/// Whether a statement reads or changes rows: of others, a value may decide what they do.
fn is_about_rows(sql: &[u8]) -> bool {
    let sql = sql.trim_ascii_start();
    let verbs: [&[u8]; 5] = [b"select", b"insert", b"update", b"delete", b"replace"];
    verbs.iter().any(|verb| {
        let word = sql.get(..verb.len());
        let after = sql.get(verb.len()).copied().unwrap_or(b' ');
        word.is_some_and(|word| word.eq_ignore_ascii_case(verb)) && is_apart(after)
    })
}

/// Whether a byte cannot be a part of a value beside it, nor say how it is read.
fn is_apart(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b'('
            | b')'
            | b','
            | b';'
            | b'='
            | b'<'
            | b'>'
            | b'+'
            | b'-'
            | b'*'
            | b'/'
            | b'%'
    )
}

/// Whether readers might disagree about what begins here: other quotes, comments, bytes of other character sets.
fn is_refused(byte: u8, next: Option<u8>) -> bool {
    match byte {
        b'"' | b'\\' | b'#' | 0x7F.. => true,
        b'\t' | b'\n' | b'\r' => false,
        ..b' ' => true,
        b'-' => next == Some(b'-'),
        b'/' => next == Some(b'*'),
        b'*' => next == Some(b'/'),
        _ => false,
    }
}

/// Returns where a string ends that every reader ends there.
fn text(sql: &[u8], at: usize, before: u8) -> Option<usize> {
    let is_plain = |byte: &u8| !matches!(byte, b'\'' | b'\\' | 0x7F.. | ..b' ');
    let inside = sql[at + 1..].iter().take_while(|byte| is_plain(byte));
    let end = at + 1 + inside.count();
    let after = sql.get(end + 1).copied().unwrap_or(b' ');
    let is_text = sql.get(end) == Some(&b'\'') && is_apart(before) && is_apart(after);
    is_text.then_some(end + 1)
}

/// Returns where a plain name in quotes ends.
fn name(sql: &[u8], at: usize) -> Option<usize> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let inside = sql[at + 1..].iter().take_while(|byte| is_plain(byte));
    let end = at + 1 + inside.count();
    (sql.get(end) == Some(&b'`')).then_some(end + 1)
}

fn digits(sql: &[u8], at: usize) -> usize {
    let digits = sql[at..].iter().take_while(|byte| byte.is_ascii_digit());
    at + digits.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Option<String> {
        let mut into = Vec::new();
        let has_one = shape(sql.as_bytes(), &mut into);
        has_one.then(|| String::from_utf8(into).unwrap())
    }

    #[test]
    fn values_are_left_out() {
        for (sql, expected) in [
            (
                "SELECT c FROM t1 WHERE id=42",
                "SELECT c FROM t1 WHERE id=\u{2}",
            ),
            (
                "select 'a', -7, 0, 00 from `t`",
                "select \u{1}, -\u{2}, \u{2}, \u{2} from `t`",
            ),
            (
                "INSERT INTO t VALUES (1,'x')",
                "INSERT INTO t VALUES (\u{2},\u{1})",
            ),
            (
                "SELECT 1.5, 1e5, a.1, @1, x1",
                "SELECT 1.5, 1e5, a.1, @1, x1",
            ),
        ] {
            assert_eq!(of(sql).as_deref(), Some(expected), "{sql}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_has_no_shape() {
        for sql in [
            "SET autocommit = 0",
            "PREPARE a FROM 'DROP TABLE t'",
            "SELECT \"a\"",
            "SELECT 'a\\'",
            "SELECT 'a''b'",
            "SELECT x'41'",
            "SELECT N'a'",
            "SELECT 'a'b",
            "SELECT 'ä'",
            "SELECT 1 -- 2",
            "SELECT 1 # 2",
            "SELECT /*!50000 1 */ 2",
            "SELECT 'a",
            "SELECT `a",
            "SELECT \u{2}",
            "selectx 1",
            "",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }

    #[test]
    fn shapes_that_are_kept_are_bounded() {
        let mut shapes = Shapes::default();
        for number in 0..3 * MOST {
            shapes.get(format!("SELECT a{number}").as_bytes(), || number);
        }
        assert!(shapes.known.len() <= MOST);
        shapes.get(b"SELECT 1 FROM a", || 7);
        assert_eq!(*shapes.get(b"SELECT 2 FROM a", || unreachable!()), 7);
    }
}
