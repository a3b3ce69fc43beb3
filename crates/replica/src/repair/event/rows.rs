//! Which rows an event needs otherwise than they are.
//!
//! | the event | needs | so |
//! |---|---|---|
//! | changes or deletes a row | that row | one that is missing is put back as it was before the event |
//! | writes a row | its key, and each of its unique values, to be free | a row in the way is taken away |
//!
//! A row that earlier events of the same transaction touch is as they leave it, which is not how it is now: nothing is
//! done about it. A row in the way with another key than the event's is taken away only if the source does not have it.

use super::failed::{FailedEvent, Lack};
use super::fetch::{Fetched, RowsEvent, refused};
use super::scratch::{ReadRow, Scratch, values_of};
use crate::checksum::ChecksumSelection;
use crate::checksum::RowDifferenceKind;
use crate::checksum::catalog::{self, ComparableTable};
use crate::checksum::sides::Side;
use crate::repair::plan::{PlannedRow, PlannedTable, RowValues};
use crate::repair::rows::RowStatements;
use crate::repair::writer::Writer;
use evenkeel_binlog::Done;
use evenkeel_op::Result;
use evenkeel_server::connect::quote_name;
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeSet;

type Keys = BTreeSet<Vec<String>>;

/// What an event needs.
pub(super) struct Needs<'a> {
    table: &'a ComparableTable,
    fetched: &'a Fetched,
    failed: &'a FailedEvent,
    statements: RowStatements,
}

/// The rows of an event, as they were and as they are afterwards.
struct Both {
    before: Vec<ReadRow>,
    after: Vec<ReadRow>,
}

impl<'a> Needs<'a> {
    /// Errors: `Refused` for a table whose rows nobody can tell from each other.
    pub(super) fn of(
        table: &'a ComparableTable,
        fetched: &'a Fetched,
        failed: &'a FailedEvent,
    ) -> Result<Self> {
        let statements = RowStatements::of(table)
            .ok_or_else(|| refused(&table.name, "it has no unique key without NULL"))?;
        Ok(Self {
            table,
            fetched,
            failed,
            statements,
        })
    }

    /// Returns the table, without rows.
    pub(super) fn table(&self) -> PlannedTable {
        PlannedTable {
            database: self.table.name.database.clone(),
            table: self.table.name.table.clone(),
            columns: self.statements.columns(),
            definition: self.table.definition(),
            rows: Vec::new(),
        }
    }

    /// Returns what tells its events from others.
    pub(super) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for event in &self.fetched.events {
            hasher.update(&event.map).update(&event.rows);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the rows that have to be otherwise: none if all are as it needs them.
    pub(super) fn rows(
        &self,
        writer: &mut Writer,
        (replica, source): (&ConnectOptions, &mut Side),
        rows_max: usize,
        may_go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<PlannedRow>> {
        let mut scratch = Scratch::make(replica, source, self.table)?;
        let mut touched = Keys::new();
        let last = self.fetched.events.len() - 1;
        for (at, event) in self.fetched.events.iter().enumerate() {
            may_go_on()?;
            let both = self.read(&mut scratch, event)?;
            let is_it = match self.fetched.ends_there {
                true => at == last,
                // It is the first one that needs something.
                false => self.may_fail(event.done),
            };
            if is_it {
                let found = self.of_event(&scratch, event, &both, &touched, writer, source)?;
                if found.len() > rows_max {
                    let why = format!("its event needs {} rows otherwise", found.len());
                    return Err(refused(&self.table.name, &why));
                }
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            let rows = both.before.into_iter().chain(both.after);
            touched.extend(rows.map(|row| row.key));
        }
        Ok(Vec::new())
    }

    /// Whether an event of this kind can have failed as the one did.
    fn may_fail(&self, done: Done) -> bool {
        let may = match self.failed.lack {
            Lack::MissingRow => done != Done::Inserted,
            Lack::RowInTheWay => done != Done::Deleted,
        };
        may && done == self.failed.done
    }

    fn read(&self, scratch: &mut Scratch, event: &RowsEvent) -> Result<Both> {
        let images = Scratch::images(event, self.table)?;
        let mut side = |image: &Option<Vec<u8>>| match image {
            None => Ok(Vec::new()),
            Some(rows) => scratch.read(self.fetched, event, (images.kind, rows), &self.statements),
        };
        // What is read last lies in the table afterwards, for others to be compared with.
        Ok(match self.failed.lack {
            Lack::MissingRow => {
                let after = side(&images.after)?;
                let before = side(&images.before)?;
                Both { before, after }
            }
            Lack::RowInTheWay => Both {
                before: side(&images.before)?,
                after: side(&images.after)?,
            },
        })
    }

    fn of_event(
        &self,
        scratch: &Scratch,
        event: &RowsEvent,
        both: &Both,
        touched: &Keys,
        writer: &mut Writer,
        source: &mut Side,
    ) -> Result<Vec<PlannedRow>> {
        if !self.may_fail(event.done) {
            return Err(refused(
                &self.table.name,
                "its event is of another kind than the error",
            ));
        }
        let keys = |rows: &[ReadRow]| rows.iter().map(|row| row.key.clone()).collect::<Keys>();
        let (before, after) = (keys(&both.before), keys(&both.after));
        if before != after && !before.is_disjoint(&after) {
            let why = "its event may change a row twice";
            return Err(refused(&self.table.name, why));
        }
        match self.failed.lack {
            Lack::MissingRow => self.missing(scratch, both, touched, writer),
            Lack::RowInTheWay => self.in_the_way(scratch, both, touched, writer, source),
        }
    }

    /// Returns the rows that were there before the event, and are not.
    fn missing(
        &self,
        scratch: &Scratch,
        both: &Both,
        touched: &Keys,
        writer: &mut Writer,
    ) -> Result<Vec<PlannedRow>> {
        let mut found = Vec::new();
        for row in both.before.iter().filter(|row| !touched.contains(&row.key)) {
            let sql = self.statements.select(&row.key, false)?;
            if self
                .statements
                .found(&row.key, writer.rows(&sql)?)?
                .is_none()
            {
                found.push(self.planned(RowDifferenceKind::Missing, row));
            }
        }
        if found.is_empty() {
            return Ok(found);
        }
        // What was there before had its unique values for itself.
        let keys: Keys = both.before.iter().map(|row| row.key.clone()).collect();
        for row in self.alike(scratch, writer)? {
            if !keys.contains(&row.key) {
                let why = format!(
                    "a row is missing, and {} has one of its unique values",
                    self.statements.named(&row.key)
                );
                return Err(refused(&self.table.name, &why));
            }
        }
        Ok(found)
    }

    /// Returns the rows that have what the event's rows must have for themselves.
    fn in_the_way(
        &self,
        scratch: &Scratch,
        both: &Both,
        touched: &Keys,
        writer: &mut Writer,
        source: &mut Side,
    ) -> Result<Vec<PlannedRow>> {
        let own: Keys = both.before.iter().map(|row| row.key.clone()).collect();
        let mut found = Vec::new();
        self.is_alike_on(source)?;
        for row in self.alike(scratch, writer)? {
            if own.contains(&row.key) || touched.contains(&row.key) {
                continue;
            }
            let name = self.statements.named(&row.key);
            let on_source = self.of_source(source, &row.key)?;
            let is_own = both.after.iter().any(|new| new.key == row.key);
            let as_event = both.after.contains(&row);
            if as_event || is_own && on_source.as_ref() == Some(&row.values) {
                let why = format!(
                    "row {name} is as the source has it: the replica's position may be older than its data"
                );
                return Err(refused(&self.table.name, &why));
            }
            if !is_own && on_source.is_some() {
                let why = format!(
                    "row {name} is in the way of the event's, and the source has a row with that key, too"
                );
                return Err(refused(&self.table.name, &why));
            }
            found.push(self.planned(RowDifferenceKind::Extra, &row));
        }
        Ok(found)
    }

    /// Returns the rows of the table that share a unique value with one in the scratch table.
    fn alike(&self, scratch: &Scratch, writer: &mut Writer) -> Result<Vec<ReadRow>> {
        let mut found: Vec<ReadRow> = Vec::new();
        for key in &self.table.keys {
            let columns: Option<Vec<usize>> = key.columns.iter().copied().collect();
            let columns = columns.ok_or_else(|| {
                let why = format!("its unique key '{}' is not one of whole columns", key.name);
                refused(&self.table.name, &why)
            })?;
            let names = columns
                .iter()
                .map(|at| quote_name(&self.table.columns[*at].name));
            let names: Vec<String> = names.collect();
            let sql = self.statements.select_alike(&names, &scratch.quoted());
            for row in writer.rows(&sql)? {
                let row = self.row(row)?;
                if !found.contains(&row) {
                    found.push(row);
                }
            }
        }
        Ok(found)
    }

    fn row(&self, values: RowValues) -> Result<ReadRow> {
        let (key, values) = self.statements.split(values)?;
        Ok(ReadRow { key, values })
    }

    /// Refuses a table that is defined otherwise on the source.
    fn is_alike_on(&self, source: &mut Side) -> Result<()> {
        let selection = ChecksumSelection {
            databases: Vec::new(),
            tables: vec![self.table.name.clone()],
        };
        let there = catalog::read(&mut source.session, &selection)?;
        let there = there.get(&self.table.name);
        match there.is_some_and(|there| there.difference(self.table).is_none()) {
            true => Ok(()),
            false => Err(refused(
                &self.table.name,
                "it is defined otherwise on the source",
            )),
        }
    }

    /// Returns the source's row with a key, as it is by now.
    fn of_source(&self, source: &mut Side, key: &[String]) -> Result<Option<RowValues>> {
        let rows = source.session.rows(&self.statements.select(key, false)?)?;
        let rows = rows.iter().map(values_of).collect();
        self.statements.found(key, rows)
    }

    fn planned(&self, kind: RowDifferenceKind, row: &ReadRow) -> PlannedRow {
        let is_missing = kind == RowDifferenceKind::Missing;
        PlannedRow {
            kind,
            row: self.statements.named(&row.key),
            key: row.key.clone(),
            replica: Some(row.values.clone()).filter(|_| !is_missing),
            source: Some(row.values.clone()).filter(|_| is_missing),
        }
    }
}
