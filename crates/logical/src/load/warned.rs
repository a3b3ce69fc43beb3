//! ENUM's error value: the empty text that a server stores for what is no member (number 0). It takes that
//! value back as it was, and warns of each. To tell these warnings from others, they are counted in what is
//! sent.

use super::source::SourceTable;
use crate::dump::{ColumnEntry, has_empty_member};
use crate::objects::text::{Token, TokenKind, all_tokens, name_of};
use crate::objects::{self, Generated};
use evenkeel_op::{Error, Result};
use evenkeel_wire::Connection;
use std::collections::BTreeMap;
use std::io::{self, Read};

/// What the server says of each error value: "Data truncated for column".
const TRUNCATED: &str = "1265";
/// What it says of bytes that are no text of the column's character set: "Incorrect string value".
const NO_TEXT: &str = "1366";
/// How many warnings a message quotes.
const QUOTED: usize = 3;

/// How error values are written in the rows of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorValues {
    /// By the name of each column that may have one.
    written: BTreeMap<String, &'static [u8]>,
    /// The columns of rows that do not name theirs, in order.
    order: Vec<String>,
}

impl ErrorValues {
    /// Of a table of `dump`, or of another program's, of which only the definition is known.
    pub(super) fn of(table: &SourceTable, described: Option<&objects::TableObject>) -> Self {
        if !table.columns.is_empty() {
            return Self::of_entries(&table.columns);
        }
        let columns = described.map_or(&[][..], |one| &one.columns[..]);
        let stored = columns.iter().filter(|one| one.generated == Generated::No);
        let entries: Vec<ColumnEntry> = stored
            .map(|one| ColumnEntry {
                name: one.name.clone(),
                full_type: one.column_type.clone(),
                charset: None,
                by_number: false,
                generated: false,
                row_time: None,
                masked: None,
            })
            .collect();
        Self::of_entries(&entries)
    }

    fn of_entries(entries: &[ColumnEntry]) -> Self {
        let written = |one: &ColumnEntry| -> Option<&'static [u8]> {
            let is_enum = one.full_type.get(..4)?.eq_ignore_ascii_case("enum");
            match one.by_number {
                _ if !is_enum => None,
                true => Some(b"0"),
                // Else the empty text is a member.
                false => (!has_empty_member(&one.full_type)).then_some(b""),
            }
        };
        Self {
            written: entries
                .iter()
                .filter_map(|one| Some((one.name.clone(), written(one)?)))
                .collect(),
            order: entries.iter().map(|one| one.name.clone()).collect(),
        }
    }

    /// Returns how each cell of a row writes its error value, if it may be one.
    fn cells(&self, names: &[String]) -> Vec<Option<&'static [u8]>> {
        let written = |name: &String| self.written.get(name).copied();
        names.iter().map(written).collect()
    }

    /// Counts those in a statement of rows, INSERT … VALUES.
    pub(super) fn in_statement(&self, sql: &[u8]) -> u64 {
        let tokens = match self.written.is_empty() {
            true => None,
            false => all_tokens(sql),
        };
        let Some((head, rows)) = tokens.as_deref().and_then(|all| {
            let values = all.iter().position(|one| one.is_word(sql, "VALUES"))?;
            Some((&all[..values], &all[values + 1..]))
        }) else {
            return 0;
        };
        let named = listed(sql, head);
        let cells = self.cells(if named.is_empty() {
            &self.order
        } else {
            &named
        });
        let (mut found, mut depth, mut cell) = (0, 0_usize, 0);
        for (at, token) in rows.iter().enumerate() {
            match token.kind {
                TokenKind::Sign(b'(') => {
                    depth += 1;
                    if depth == 1 {
                        cell = 0;
                    }
                }
                TokenKind::Sign(b')') => depth = depth.saturating_sub(1),
                TokenKind::Sign(b',') if depth == 1 => cell += 1,
                _ => {}
            }
            let begins = depth == 1 && (token.is_sign(b'(') || token.is_sign(b','));
            let [value, end, ..] = rows.get(at + 1..).unwrap_or_default() else {
                continue;
            };
            let is_alone = end.is_sign(b',') || end.is_sign(b')');
            if let Some(Some(wanted)) = cells.get(cell).filter(|_| begins && is_alone) {
                found += u64::from(unquoted(value.of(sql)) == *wanted);
            }
        }
        found
    }

    /// Counts those in tab-separated lines that go by; `statement` names their columns, if it does.
    pub(super) fn watch<'a>(&self, from: &'a mut dyn Read, statement: &str) -> Watched<'a> {
        let sql = statement.as_bytes();
        let named = all_tokens(sql).map_or_else(Vec::new, |tokens| listed(sql, &tokens));
        Watched {
            from,
            cells: match self.written.is_empty() {
                true => Vec::new(),
                // Variables stand for columns of `dump` that are converted.
                false if named.len() == self.order.len() => self.cells(&self.order),
                false => self.cells(&named),
            },
            cell: Vec::new(),
            column: 0,
            found: 0,
        }
    }
}

/// Returns what stands in a statement's first parentheses: the names of columns, and of variables.
fn listed(sql: &[u8], tokens: &[Token]) -> Vec<String> {
    let inside = tokens.iter().skip_while(|one| !one.is_sign(b'('));
    let inside = inside.skip(1).take_while(|one| !one.is_sign(b')'));
    let names = inside.filter(|one| matches!(one.kind, TokenKind::Name | TokenKind::Word));
    names.map(|one| name_of(one.of(sql))).collect()
}

/// Returns the inside of a text in quotes.
fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'\'', inside @ .., b'\''] | [b'"', inside @ .., b'"'] => inside,
        other => other,
    }
}

/// Rows on their way.
pub(super) struct Watched<'a> {
    from: &'a mut dyn Read,
    cells: Vec<Option<&'static [u8]>>,
    /// The beginning of the cell so far.
    cell: Vec<u8>,
    column: usize,
    found: u64,
}

/// Longer than any error value, in quotes as well.
const CELL: usize = 4;

impl Watched<'_> {
    /// Returns how many error values went by.
    pub(super) fn found(&self) -> u64 {
        self.found
    }

    fn look(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr2(b'\t', b'\n', bytes) {
            self.gather(&bytes[..end]);
            if let Some(Some(wanted)) = self.cells.get(self.column) {
                self.found += u64::from(unquoted(&self.cell) == *wanted);
            }
            self.cell.clear();
            self.column = match bytes[end] {
                b'\t' => self.column + 1,
                _ => 0,
            };
            bytes = &bytes[end + 1..];
        }
        self.gather(bytes);
    }

    fn gather(&mut self, bytes: &[u8]) {
        let room = CELL.saturating_sub(self.cell.len());
        self.cell.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        if self.cells.iter().any(Option::is_some) {
            self.look(&into[..read]);
        }
        Ok(read)
    }
}

/// Fails when the last statement changed a value on its way in: the server only warns of it. It warns of
/// each of the `error_values` too.
pub(super) fn clean(connection: &mut Connection, warnings: u16, error_values: u64) -> Result<()> {
    if warnings == 0 {
        return Ok(());
    }
    // What came with the answer ends at 65 535.
    let all = first_cells(connection, "SHOW COUNT(*) WARNINGS")?;
    let all = all.first().and_then(|row| row[0].parse().ok());
    let said = first_cells(connection, "SHOW WARNINGS")?;
    let is_expected = |row: &[String; 3]| row[1] == TRUNCATED;
    if all == Some(error_values) && said.iter().all(is_expected) {
        return Ok(());
    }
    // What is expected comes last.
    let (expected, others): (Vec<_>, Vec<_>) = said.iter().partition(|row| is_expected(row));
    let quoted: Vec<String> = others
        .into_iter()
        .chain(expected)
        .take(QUOTED)
        .map(|row| format!("{}: {}", row[1], row[2]))
        .collect();
    let error = Error::failed(format!(
        "the server would change values: {}",
        quoted.join("; ")
    ));
    let is_text = said.iter().any(|row| row[1] == NO_TEXT);
    let error = match is_text {
        true => error.hint(
            "a table can hold texts with bytes that are not valid in their character set, but no statement can insert them again: \
             repair them on the source, or dump that column as bytes",
        ),
        false => error,
    };
    Err(error
        .hint("this server cannot hold these rows as they are; nothing of this file was loaded"))
}

/// Returns the first three cells of each row.
fn first_cells(connection: &mut Connection, sql: &str) -> Result<Vec<[String; 3]>> {
    let mut rows = connection.query(sql)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = row.cells();
        all.push([(); 3].map(|()| {
            let cell = cells.next().ok().flatten().unwrap_or_default();
            String::from_utf8_lossy(cell).into_owned()
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> ErrorValues {
        let entry = |name: &str, full_type: &str, by_number| ColumnEntry {
            name: name.to_owned(),
            full_type: full_type.to_owned(),
            charset: None,
            by_number,
            generated: false,
            row_time: None,
            masked: None,
        };
        ErrorValues::of_entries(&[
            entry("i", "int(11)", false),
            entry("e", "enum('a','b')", false),
            entry("m", "enum('a','')", true),
            entry("o", "enum('a','')", false),
            entry("s", "set('a','')", true),
        ])
    }

    #[test]
    fn statements_are_looked_through() {
        for (sql, found) in [
            ("INSERT INTO `t` VALUES (0,'',0,'',0),\n(0,'a',1,'',0);", 2),
            (
                "INSERT INTO `t` (`m`, `e`) VALUES\n(0,''),(NULL,NULL),(0,'''')",
                3,
            ),
            ("INSERT INTO t (i) VALUES (0)", 0),
            (
                "INSERT INTO t (e) VALUES (CONCAT('')),(('')),('VALUES (\\'\\'')",
                0,
            ),
            ("REPLACE INTO `(` (e) VALUES (\"\")", 1),
            ("SELECT 1", 0),
        ] {
            assert_eq!(values().in_statement(sql.as_bytes()), found, "{sql}");
        }
        assert_eq!(
            ErrorValues::default().in_statement(b"INSERT INTO t VALUES ('')"),
            0
        );
    }

    #[test]
    fn lines_are_looked_through_however_they_are_cut() {
        let lines = b"0\t\t0\t\t0\n1\ta\t1\t\t1\n2\t\\N\t00\t0\t0\n3\t\"\"\t2\t\t0\n";
        for step in 1..12 {
            let mut pieces = lines.chunks(step);
            let mut from = io::empty();
            let mut watched =
                values().watch(&mut from, "LOAD DATA INTO TABLE t (@i, e, @v0, o, s)");
            pieces.by_ref().for_each(|piece| watched.look(piece));
            assert_eq!(watched.found(), 3, "{step}");
        }
        let mut other = &b"x\t\n\t\n"[..];
        let mut watched = values().watch(
            &mut other,
            "LOAD DATA INTO TABLE t CHARACTER SET binary (`i`, `e`)",
        );
        io::copy(&mut watched, &mut io::sink()).unwrap();
        assert_eq!(watched.found(), 2);
    }
}
