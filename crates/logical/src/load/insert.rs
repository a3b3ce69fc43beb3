//! Rows as INSERT statements, for servers that forbid LOAD DATA LOCAL and for dumps that are made of
//! such.

use crate::dump::{ColumnEntry, RowTime};
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::quote_name;
use std::io::{BufRead, BufReader, Read};

/// A statement ends when it has grown to this, in bytes: well below any max_allowed_packet.
const STATEMENT: usize = 1_000_000;
/// How much is read at a time.
const READ: usize = 1 << 18;

/// Types that take text and no bytes.
pub(super) const TEXT_ONLY: [&str; 4] = ["json", "uuid", "inet4", "inet6"];

/// Returns whether a column takes text and no bytes.
pub(super) fn is_text_only(column: &ColumnEntry) -> bool {
    TEXT_ONLY.contains(&column.full_type.to_ascii_lowercase().as_str())
}

/// Gives statements of many rows, made of tab-separated lines, to `run`; the session's character set
/// is `binary`.
///
/// What a line escapes is escaped in the same way in a literal; only the quote is not.
pub(super) fn of_lines(
    table: &str,
    columns: &[ColumnEntry],
    from: &mut dyn Read,
    mut run: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let names: Vec<String> = columns.iter().map(|one| quote_name(&one.name)).collect();
    let head = format!("INSERT INTO {table} ({}) VALUES\n", names.join(", "));
    let kinds: Vec<LiteralKind> = columns.iter().map(LiteralKind::of).collect();
    let mut lines = BufReader::with_capacity(READ, from);
    let (mut line, mut statement) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line);
        let read = read.context(|| "failed to read rows")?;
        let full = statement.len() + line.len() > STATEMENT;
        if !statement.is_empty() && (read == 0 || full) {
            run(&statement)?;
            statement.clear();
        }
        if read == 0 {
            return Ok(());
        }
        match statement.is_empty() {
            true => statement.extend_from_slice(head.as_bytes()),
            false => statement.extend_from_slice(b",\n"),
        }
        row(&line, &kinds, &mut statement)?;
    }
}

/// How a cell becomes a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiteralKind {
    Quoted,
    /// Quoted, with a character set.
    Text,
    Number,
    /// The server computes it.
    Computed,
    /// Quoted, or DEFAULT for what still holds.
    RowEnd,
}

impl LiteralKind {
    fn of(column: &ColumnEntry) -> Self {
        match column {
            one if one.generated => Self::Computed,
            one if one.row_time == Some(RowTime::End) => Self::RowEnd,
            one if one.by_number => Self::Number,
            one if is_text_only(one) => Self::Text,
            _ => Self::Quoted,
        }
    }
}

fn row(line: &[u8], kinds: &[LiteralKind], out: &mut Vec<u8>) -> Result<()> {
    let wrong = || {
        Error::failed(
            "the number of cells in a row differs from the number of columns in the table",
        )
    };
    let line = line.strip_suffix(b"\n").ok_or_else(wrong)?;
    let mut kinds = kinds.iter();
    out.push(b'(');
    for (at, cell) in line.split(|byte| *byte == b'\t').enumerate() {
        let kind = kinds.next().ok_or_else(wrong)?;
        if at > 0 {
            out.push(b',');
        }
        match (kind, cell) {
            (LiteralKind::Computed, _) | (LiteralKind::RowEnd, b"\\N") => {
                out.extend_from_slice(b"DEFAULT");
                continue;
            }
            (_, b"\\N") => {
                out.extend_from_slice(b"NULL");
                continue;
            }
            (LiteralKind::Number, digits) => {
                // In quotes it would be a member's text.
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return Err(Error::failed("a member of an ENUM or SET is not a number"));
                }
                out.extend_from_slice(digits);
                continue;
            }
            (LiteralKind::Text, _) => out.extend_from_slice(b"_utf8mb4"),
            (LiteralKind::Quoted | LiteralKind::RowEnd, _) => {}
        }
        out.push(b'\'');
        for piece in cell.split_inclusive(|byte| *byte == b'\'') {
            match piece.strip_suffix(b"'") {
                Some(before) => {
                    out.extend_from_slice(before);
                    out.extend_from_slice(b"\\'");
                }
                None => out.extend_from_slice(piece),
            }
        }
        out.push(b'\'');
    }
    out.push(b')');
    match kinds.next() {
        None => Ok(()),
        Some(_) => Err(wrong()),
    }
}

/// What files of rows set before them, without blanks: the session has that.
const SET_ALREADY: [&str; 5] = [
    "SETTIME_ZONE='+00:00'",
    "SETFOREIGN_KEY_CHECKS=0",
    "SETUNIQUE_CHECKS=0",
    "SETCHECK_CONSTRAINT_CHECKS=0",
    "SETSYSTEM_VERSIONING_INSERT_HISTORY=1",
];

/// Gives the INSERT statements of a file to `run`: they end in a semicolon and a newline, which
/// values never hold. Of the settings at the file's beginning the character set is run too; the
/// session has the others.
///
/// Errors: those of `run`; `Failed` for a statement of another kind, or for another table.
pub(super) fn of_statements(
    table: &str,
    from: &mut dyn Read,
    mut run: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let name = quote_name(table);
    let mut lines = BufReader::with_capacity(READ, from);
    let mut statement = Vec::new();
    loop {
        let read = lines.read_until(b'\n', &mut statement);
        if read.context(|| "failed to read rows")? == 0 {
            break;
        }
        let Some(whole) = statement.strip_suffix(b";\n") else {
            continue;
        };
        let whole = whole.trim_ascii_start();
        if let Some((verb, length)) = verb(whole) {
            let into = &whole[length..];
            if !into.starts_with(name.as_bytes()) {
                return Err(Error::failed(format!(
                    "a file of rows is for another table than {table}"
                )));
            }
            match verb {
                INTO => run(whole)?,
                // The table was empty: each row is there once, or it is an error.
                _ => run(&[INTO, into].concat())?,
            }
        } else if let Some(set) = setting(whole) {
            if set.starts_with("SETNAMES") {
                run(whole)?;
            } else if !is_set_already(&set) {
                return Err(Error::failed(format!(
                    "a file of rows has settings that load does not support: {set}"
                )));
            }
        } else {
            return Err(Error::failed(
                "a file of rows holds more than INSERT statements",
            ));
        }
        statement.clear();
    }
    match statement.trim_ascii().is_empty() {
        true => Ok(()),
        false => Err(Error::failed("a file of rows ends within a statement")),
    }
}

/// What a statement of rows begins with here.
const INTO: &[u8] = b"INSERT INTO ";
/// Other beginnings of such a statement.
const VERBS: [&[u8]; 4] = [
    INTO,
    b"INSERT IGNORE INTO ",
    b"REPLACE INTO ",
    b"INSERT  IGNORE INTO ",
];

/// Returns what rows begin with, and how long that is.
pub(super) fn verb(statement: &[u8]) -> Option<(&'static [u8], usize)> {
    let found = VERBS.into_iter().find(|verb| statement.starts_with(verb))?;
    Some((found, found.len()))
}

/// Returns a setting in an executed comment, in capitals and without blanks.
pub(super) fn setting(statement: &[u8]) -> Option<String> {
    let inside = ["/*!", "/*M!"]
        .into_iter()
        .find_map(|gate| statement.strip_prefix(gate.as_bytes()))?
        .strip_suffix(b"*/")?;
    let text = String::from_utf8_lossy(inside).to_ascii_uppercase();
    let text = text.trim_start_matches(|one: char| one.is_ascii_digit());
    let text: String = text.split_whitespace().collect();
    text.starts_with("SET").then_some(text)
}

/// Whether a setting is a mode that reads the text of rows as the session does, which takes every value
/// that some mode takes.
fn is_mode(set: &str) -> bool {
    let only = set.matches('=').count() == 1 && set.ends_with('\'');
    let reads_otherwise = ["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ANSI'"];
    set.starts_with("SETSQL_MODE='")
        && only
        && !reads_otherwise.iter().any(|mode| set.contains(mode))
}

pub(super) fn is_set_already(set: &str) -> bool {
    let parts = set.trim_start_matches("SET").split(',');
    // A list in quotes is one value.
    SET_ALREADY.contains(&set)
        || is_mode(set)
        || parts
            .map(|part| format!("SET{part}"))
            .all(|part| SET_ALREADY.contains(&part.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, full_type: &str) -> ColumnEntry {
        ColumnEntry {
            name: name.to_owned(),
            full_type: full_type.to_owned(),
            charset: None,
            by_number: false,
            generated: false,
            row_time: None,
            masked: None,
        }
    }

    #[test]
    fn modes_that_read_otherwise_are_not_taken() {
        for (set, taken) in [
            (
                "SETSQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
                true,
            ),
            (
                "SETSQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
                true,
            ),
            ("SETSQL_MODE='NO_BACKSLASH_ESCAPES'", false),
            ("SETSQL_MODE='REAL_AS_FLOAT,ANSI_QUOTES,ANSI'", false),
            ("SETSQL_MODE='',TIME_ZONE='+01:00'", false),
            ("SETTIME_ZONE='+00:00'", true),
            ("SETTIME_ZONE='+01:00'", false),
        ] {
            assert_eq!(is_set_already(set), taken, "{set}");
        }
    }

    #[test]
    fn lines_become_statements() {
        let columns = [column("a`", "int(11)"), column("j", "json")];
        let mut all = Vec::new();
        let lines = b"1\t{\"k\": \"it's \\\\n\"}\n\\N\t\\N\n\\\\N\t''\n";
        of_lines("`s`.`t`", &columns, &mut &lines[..], |sql| {
            all.push(String::from_utf8_lossy(sql).into_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(
            all,
            ["INSERT INTO `s`.`t` (`a```, `j`) VALUES\n\
              ('1',_utf8mb4'{\"k\": \"it\\'s \\\\n\"}'),\n(NULL,NULL),\n('\\\\N',_utf8mb4'\\'\\'')"]
        );
        for wrong in [&b"1\n"[..], b"1\t2\t3\n", b"1\t2"] {
            assert!(of_lines("t", &columns, &mut &wrong[..], |_| Ok(())).is_err());
        }
    }

    #[test]
    fn statements_are_cut_between_rows() {
        let line = [&b"x".repeat(300_000)[..], b"\n"].concat();
        let lines = line.repeat(10);
        let mut sizes = Vec::new();
        of_lines("t", &[column("a", "text")], &mut &lines[..], |sql| {
            sizes.push(sql.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(sizes.len(), 4);
        assert!(
            sizes.iter().all(|size| *size <= STATEMENT + 100),
            "{sizes:?}"
        );
    }

    #[test]
    fn files_of_statements_hold_nothing_else() {
        let run = |text: &[u8]| {
            let mut all = Vec::new();
            of_statements("t", &mut &text[..], |sql| {
                all.push(String::from_utf8_lossy(sql).into_owned());
                Ok(())
            })
            .map(|()| all)
        };
        let file = b"/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES' */;\n\
                     /*!40014 SET FOREIGN_KEY_CHECKS=0, UNIQUE_CHECKS=0 */;\n\
                     INSERT INTO `t` VALUES\n(1),\n('a;\\n');\n";
        assert_eq!(
            run(file).unwrap(),
            ["INSERT INTO `t` VALUES\n(1),\n('a;\\n')"]
        );
        let others = b"\n/*!40101 SET NAMES binary*/;\n/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n\n\
                       /*!40103 SET TIME_ZONE='+00:00' */;\nINSERT IGNORE INTO `t` (`a`) VALUES (1);\n\
                       REPLACE INTO `t` VALUES\n(2);\n";
        assert_eq!(
            run(others).unwrap(),
            [
                "/*!40101 SET NAMES binary*/",
                "INSERT INTO `t` (`a`) VALUES (1)",
                "INSERT INTO `t` VALUES\n(2)"
            ]
        );
        assert!(run(b"/*!40103 SET TIME_ZONE='+02:00' */;\n").is_err());
        assert!(run(b"INSERT INTO `t2` VALUES (1);\n").is_err());
        assert!(run(b"DROP TABLE t;\n").is_err());
        assert!(run(b"INSERT INTO `t` VALUES (1)").is_err());
    }
}
