//! Ranges of a table's key, handed out one by one to whoever has time, and sized by the rows that
//! the earlier ones held.

use super::predicate::{Bound, after, before, literal, names};
use super::table::{DumpTable, Key};
use crate::objects::Column;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;
use evenkeel_wire::Connection;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// What a row is taken for before any was seen, in bytes.
const ROW: u64 = 100;
/// By how much a step over integers may grow at a time: the next rows may be closer together.
const GROWTH: i128 = 4;

/// Some rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    /// From 0, in the key's order.
    pub(super) number: u32,
    /// Which rows; `None` is all.
    pub(super) condition: Option<String>,
    /// How many integers it spans; 0 where it was cut otherwise.
    span: i128,
}

/// Where the next range begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Position {
    Start,
    /// From here on, by integers, up to the largest; in steps.
    Integers {
        next: i128,
        last: i128,
        step: i128,
    },
    /// From here on, by values looked up.
    Values(Bound),
    End,
}

/// How far a table is handed out.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    table: &'t DumpTable,
    chunk_bytes: u64,
    position: Position,
    /// Handed out in an earlier life, and not read to the end then.
    again: VecDeque<Range>,
    number: u32,
    /// What the ranges that were read held.
    rows: u64,
    bytes: u64,
    span: i128,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(table: &'t DumpTable, chunk_bytes: u64) -> Self {
        Self {
            table,
            chunk_bytes,
            position: match table.has_rows {
                true => Position::Start,
                false => Position::End,
            },
            again: VecDeque::new(),
            number: 0,
            rows: 0,
            bytes: 0,
            span: 0,
        }
    }

    /// Continues where an earlier life ended: after the ranges that were handed out, of which those
    /// that are not `done` come again.
    pub(super) fn resume(&mut self, ranges: Vec<Range>, after: Position, done: &BTreeSet<u32>) {
        self.position = after;
        self.number = ranges.last().map_or(0, |range| range.number + 1);
        let left = ranges.into_iter();
        self.again = left.filter(|one| !done.contains(&one.number)).collect();
    }

    /// Returns where the next range begins.
    pub(super) fn position(&self) -> &Position {
        &self.position
    }

    /// Takes note of what a range held.
    pub(super) fn seen(&mut self, range: &Range, rows: u64, bytes: u64) {
        self.rows += rows;
        self.bytes += bytes;
        self.span += range.span;
    }

    /// Cuts the next range off; `None` when all are handed out.
    pub(super) fn next(&mut self, connection: &mut Connection) -> Result<Option<Range>> {
        if let Some(range) = self.again.pop_front() {
            return Ok(Some(range));
        }
        let key = match (&self.position, &self.table.key) {
            (Position::End, _) => return Ok(None),
            (Position::Start, Some(key)) if self.is_large() => key,
            (Position::Start, _) => {
                self.position = Position::End;
                return Ok(Some(self.range(None, 0)));
            }
            (_, Some(key)) => key,
            (_, None) => return Ok(None),
        };
        let integers =
            key.whole && key.columns.len() == 1 && self.table.columns[key.columns[0]].is_integer();
        if integers {
            self.next_integers(connection, key)
        } else {
            self.next_values(connection, key)
        }
    }

    /// Returns whether it is worth cutting, as far as the server guesses.
    fn is_large(&self) -> bool {
        self.table.bytes > self.chunk_bytes + self.chunk_bytes / 2
    }

    fn range(&mut self, condition: Option<String>, span: i128) -> Range {
        let number = self.number;
        self.number += 1;
        Range {
            number,
            condition,
            span,
        }
    }

    /// Returns how many rows make a chunk.
    fn rows_wanted(&self) -> u64 {
        let seen = self.bytes.checked_div(self.rows);
        let guessed = || self.table.bytes.checked_div(self.table.rows);
        let row = seen.or_else(guessed).unwrap_or(ROW);
        (self.chunk_bytes / row.max(1)).max(1)
    }

    fn next_integers(&mut self, connection: &mut Connection, key: &Key) -> Result<Option<Range>> {
        let name = quote_name(&self.table.columns[key.columns[0]].name);
        let wanted = i128::from(self.rows_wanted());
        if matches!(self.position, Position::Start) {
            let sql = format!("SELECT MIN({name}), MAX({name}) FROM {}", self.table.from());
            let (Some(first), Some(last)) = two_integers(connection, &sql)? else {
                self.position = Position::End;
                return Ok(None);
            };
            let rows = i128::from(self.table.rows.max(1));
            let step = ((last - first + 1) * wanted / rows).max(1);
            self.position = Position::Integers {
                next: first,
                last,
                step,
            };
        }
        let (rows, span) = (i128::from(self.rows), self.span);
        let Position::Integers { next, last, step } = &mut self.position else {
            return Ok(None);
        };
        // Over a gap at once, or a sparse table would be millions of empty ranges.
        let sql = format!(
            "SELECT MIN({name}), MIN({name}) FROM {} WHERE {name} >= {next}",
            self.table.from()
        );
        let (Some(from), _) = two_integers(connection, &sql)? else {
            self.position = Position::End;
            return Ok(None);
        };
        if rows > 0 && span > 0 {
            *step = (span * wanted / rows).clamp(1, *step * GROWTH);
        }
        let to = from + *step;
        let span = *step;
        *next = to;
        let condition = if to > *last {
            self.position = Position::End;
            format!("{name} >= {from}")
        } else {
            format!("{name} >= {from} AND {name} < {to}")
        };
        Ok(Some(self.range(Some(condition), span)))
    }

    fn next_values(&mut self, connection: &mut Connection, key: &Key) -> Result<Option<Range>> {
        let names = names(self.table, key);
        let list = names.join(", ");
        let from = match &self.position {
            Position::Values(bound) => Some(bound),
            _ => None,
        };
        let beyond = from.map_or_else(String::new, |bound| {
            format!("WHERE {} ", after(&names, bound, false))
        });
        let sql = format!(
            "SELECT {list} FROM {}{} {beyond}ORDER BY {list} LIMIT 1 OFFSET {}",
            self.table.from(),
            forced(self.table, key),
            self.rows_wanted()
        );
        let to = self.bound(connection, key, &sql)?;
        let condition = match (from, &to) {
            (None, None) => None,
            (None, Some(to)) => Some(before(&names, to)),
            (Some(from), None) => Some(after(&names, from, true)),
            (Some(from), Some(to)) => Some(format!(
                "{} AND {}",
                after(&names, from, true),
                before(&names, to)
            )),
        };
        self.position = to.map_or(Position::End, Position::Values);
        Ok(Some(self.range(condition, 0)))
    }

    fn bound(&self, connection: &mut Connection, key: &Key, sql: &str) -> Result<Option<Bound>> {
        let mut rows = connection.query(sql)?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let mut cells = row.cells();
        let mut bound = Bound::new();
        for at in &key.columns {
            let cell = cells.next().ok().flatten();
            let cell = cell.ok_or_else(|| Error::failed("a key's column is NULL"))?;
            bound.push(literal(&self.table.columns[*at], cell));
        }
        Ok(Some(bound))
    }

    /// Has the server forget where earlier reads of a table ended, where that would end the next one: see
    /// `Abilities::sticky_range_ends`. Of the two rows that are asked for, it then returns one. They are of the range:
    /// behind the end of others there may be many rows that the view does not see.
    pub(super) fn forget_earlier_reads(
        connection: &mut Connection,
        table: &DumpTable,
        range: &Range,
    ) -> Result<()> {
        if !table.is_read_backwards {
            return Ok(());
        }
        let sql = format!("{} LIMIT 2", Self::reading("1", table, range));
        let mut rows = connection.query(&sql)?;
        while rows.next()?.is_some() {}
        Ok(())
    }

    /// Returns the statement that reads a range's rows.
    pub(super) fn select(table: &DumpTable, range: &Range) -> String {
        Self::reading(&table.selected(Column::is_by_number), table, range)
    }

    fn reading(what: &str, table: &DumpTable, range: &Range) -> String {
        let mut sql = format!("SELECT {what} FROM {}", table.from());
        let conditions: Vec<String> = [&range.condition, &table.condition]
            .into_iter()
            .flatten()
            .map(|condition| format!("({condition})"))
            .collect();
        if let Some(key) = &table.key {
            // Alone, a condition of the user's may have an index of its own.
            let is_alone = range.condition.is_none() && table.condition.is_some();
            if !is_alone || table.is_read_backwards {
                sql.push_str(&forced(table, key));
            }
        } else if table.is_read_backwards {
            sql.push_str(" USE INDEX ()");
        }
        if !conditions.is_empty() {
            sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
        }
        if let Some(key) = &table.key {
            sql.push_str(&order(table, key));
        }
        sql
    }
}

fn order(table: &DumpTable, key: &Key) -> String {
    let way = if table.is_read_backwards { " DESC" } else { "" };
    let names = names(table, key).into_iter();
    let names: Vec<String> = names.map(|name| format!("{name}{way}")).collect();
    format!(" ORDER BY {}", names.join(", "))
}

/// Rows lie in the primary key's order: reading them in another, or sorting them, is never better. Where they must be
/// read backwards, sorting them afterwards would not do.
fn forced(table: &DumpTable, key: &Key) -> String {
    match key.name == "PRIMARY" || table.is_read_backwards {
        true => format!(" FORCE INDEX ({})", quote_name(&key.name)),
        false => String::new(),
    }
}

fn two_integers(connection: &mut Connection, sql: &str) -> Result<(Option<i128>, Option<i128>)> {
    let mut rows = connection.query(sql)?;
    let Some(row) = rows.next()? else {
        return Ok((None, None));
    };
    let mut cells = row.cells();
    let mut number = || {
        let cell = cells.next().ok().flatten()?;
        std::str::from_utf8(cell).ok()?.parse().ok()
    };
    Ok((number(), number()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_their_ends_where_they_must_be() {
        let columns = ["client", "seq"].map(|name| Column::for_tests(name, "int", None));
        let mut table = DumpTable::for_tests("bank", "ledger", columns.into());
        table.key = Some(Key {
            name: "PRIMARY".to_owned(),
            columns: vec![0, 1],
            whole: true,
        });
        let range = Range {
            condition: Some("`client` < 2".to_owned()),
            number: 0,
            span: 0,
        };
        let end = |table: &DumpTable| {
            let sql = Cursor::select(table, &range);
            assert!(sql.contains(" FORCE INDEX (`PRIMARY`) WHERE "), "{sql}");
            sql.split(" ORDER BY ").last().unwrap().to_owned()
        };
        assert_eq!(end(&table), "`client`, `seq`");
        table.is_read_backwards = true;
        assert_eq!(end(&table), "`client` DESC, `seq` DESC");
        table.key.as_mut().unwrap().name = "other key".to_owned();
        let sql = Cursor::select(&table, &range);
        assert!(sql.contains(" FORCE INDEX (`other key`) "), "{sql}");
        // A condition of the user's may be several ranges of an index of its own.
        table.key = None;
        table.condition = Some("seq IN (1, 7)".to_owned());
        let sql = Cursor::select(&table, &range);
        assert!(sql.contains(" USE INDEX () WHERE "), "{sql}");
    }
}
