//! Rows as INSERT statements, for servers that forbid LOAD DATA LOCAL and for dumps that are made of
//! such.

use crate::dump::ColumnEntry;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::quote_name;
use std::io::{BufRead, BufReader, Read};

/// A statement ends when it has grown to this, in bytes: well below any max_allowed_packet.
const STATEMENT: usize = 1_000_000;
/// How much is read at a time.
const READ: usize = 1 << 18;

/// Types that take text and no bytes.
const TEXT_ONLY: [&str; 4] = ["json", "uuid", "inet4", "inet6"];

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
    let text_only: Vec<bool> = columns.iter().map(is_text_only).collect();
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
        row(&line, &text_only, &mut statement)?;
    }
}

fn row(line: &[u8], text_only: &[bool], out: &mut Vec<u8>) -> Result<()> {
    let wrong = || Error::failed("a row has another number of cells than the table has columns");
    let line = line.strip_suffix(b"\n").ok_or_else(wrong)?;
    let mut kinds = text_only.iter();
    out.push(b'(');
    for (at, cell) in line.split(|byte| *byte == b'\t').enumerate() {
        let text = kinds.next().ok_or_else(wrong)?;
        if at > 0 {
            out.push(b',');
        }
        if cell == b"\\N" {
            out.extend_from_slice(b"NULL");
            continue;
        }
        if *text {
            out.extend_from_slice(b"_utf8mb4");
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

/// Gives the INSERT statements of a file to `run`: they end in a semicolon and a newline, which
/// values never hold. The settings at the file's beginning are left out: the session has them.
///
/// Errors: those of `run`; `Failed` for a statement of another kind.
pub(super) fn of_statements(
    from: &mut dyn Read,
    mut run: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
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
        if whole.starts_with(b"INSERT INTO ") {
            run(whole)?;
        } else if !whole.starts_with(b"/*!40") {
            return Err(Error::failed(
                "a file of rows holds more than INSERT statements",
            ));
        }
        statement.clear();
    }
    match statement.is_empty() {
        true => Ok(()),
        false => Err(Error::failed("a file of rows ends within a statement")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, full_type: &str) -> ColumnEntry {
        ColumnEntry {
            name: name.to_owned(),
            full_type: full_type.to_owned(),
            charset: None,
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
            of_statements(&mut &text[..], |sql| {
                all.push(String::from_utf8_lossy(sql).into_owned());
                Ok(())
            })
            .map(|()| all)
        };
        let file = b"/*!40101 SET NAMES binary */;\nINSERT INTO `t` VALUES\n(1),\n('a;\\n');\n";
        assert_eq!(
            run(file).unwrap(),
            ["INSERT INTO `t` VALUES\n(1),\n('a;\\n')"]
        );
        assert!(run(b"DROP TABLE t;\n").is_err());
        assert!(run(b"INSERT INTO `t` VALUES (1)").is_err());
    }
}
