//! The transaction on the replica: rows are as expected, or nothing is done; and of what is done, nothing gets into the
//! replica's binary log.

use super::plan::{PlannedRow, PlannedTable, RowValues};
use super::rows::RowStatements;
use crate::checksum::catalog::Catalog;
use evenkeel_op::{Cancel, Error, Result};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use std::time::Duration;

/// Values as they are kept, and nothing that acts besides.
const FIRST_STATEMENTS: [&str; 6] = [
    "SET NAMES utf8mb4",
    "SET SESSION sql_log_bin = 0",
    "SET SESSION foreign_key_checks = 0, unique_checks = 1",
    // A value is written as it is: 0 too, and dates that are none.
    "SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET SESSION innodb_lock_wait_timeout = 10, lock_wait_timeout = 10, wait_timeout = 28800, sql_select_limit = 18446744073709551615 \
     /*M!100108 , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
];

/// A table's rows, and the statements for them.
pub(super) struct Change<'a> {
    pub(super) statements: RowStatements,
    pub(super) table: &'a PlannedTable,
}

impl<'a> Change<'a> {
    /// Makes the statements for tables as they are on the replica.
    ///
    /// Errors: `Refused` when one is not there any more, or is defined otherwise.
    pub(super) fn all(tables: &'a [PlannedTable], there: &Catalog) -> Result<Vec<Self>> {
        let each = tables.iter().map(|table| {
            let known = there.get(&table.name());
            let known = known.filter(|known| known.definition() == table.definition);
            let statements = known.and_then(RowStatements::of);
            let statements = statements.filter(|one| one.columns() == table.columns);
            let statements = statements.ok_or_else(|| {
                Error::refused(format!("{} has another definition now", table.name()))
                    .hint("make a new plan")
            })?;
            Ok(Self { statements, table })
        });
        each.collect()
    }

    /// Returns a row, in words.
    pub(super) fn named(&self, row: &PlannedRow) -> String {
        format!("{} {}", self.table.name(), row.row)
    }

    /// Returns the statements that take rows away, and those that put rows there, all for people.
    pub(super) fn sql(&self) -> Result<(Vec<String>, Vec<String>)> {
        let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
        for row in &self.table.rows {
            if row.replica.is_some() {
                deletes.push(self.statements.delete(&row.key)?);
            }
            if let Some(values) = &row.source {
                inserts.push(self.statements.insert(values)?);
            }
        }
        Ok((deletes, inserts))
    }

    /// Returns the statements that would put the rows back as they are now.
    pub(super) fn back(&self) -> Result<Vec<String>> {
        let now = self
            .table
            .rows
            .iter()
            .filter_map(|row| row.replica.as_ref());
        now.map(|values| self.statements.insert(values)).collect()
    }
}

/// A server that says nothing for so long is hung. A statement waits for locks at most for [`FIRST_STATEMENTS`]' time.
pub(super) const HUNG: Duration = Duration::from_secs(30);

/// A session that changes rows of the replica, and of nothing else.
pub(super) struct Writer(Connection);

impl Writer {
    /// Connects. It needs the privilege to write without the binary log.
    pub(super) fn open(options: &ConnectOptions, cancel: &Cancel) -> Result<Self> {
        let mut connection = Connection::open(options, cancel)?;
        connection.set_silence(HUNG);
        for statement in FIRST_STATEMENTS {
            connection.run(statement)?;
        }
        let mut writer = Self(connection);
        let logs = writer.rows("SELECT @@SESSION.sql_log_bin")?;
        let logs = logs.first().and_then(|row| row.first()).cloned().flatten();
        match logs.as_deref() {
            Some("0") => Ok(writer),
            _ => Err(Error::refused(
                "the replica would write the repair into its binary log",
            )),
        }
    }

    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<RowValues>> {
        let senseless = || Error::failed("the server sends a row that makes no sense");
        let mut found = Vec::new();
        let mut rows = self.0.query(sql)?;
        while let Some(row) = rows.next()? {
            let mut values = Vec::new();
            let mut cells = row.cells();
            while !cells.is_empty() {
                let cell = cells.next().map_err(|_| senseless())?;
                let text = cell.map(|cell| String::from_utf8(cell.to_vec()));
                values.push(text.transpose().map_err(|_| senseless())?);
            }
            found.push(values);
        }
        Ok(found)
    }

    pub(super) fn begin(&mut self) -> Result<()> {
        // Rows are locked from here on: not for hours, if this host loses power.
        self.0.run("SET SESSION wait_timeout = 60")?;
        self.0.run("START TRANSACTION").map(|_| ())
    }

    /// Returns a row as it is now; it stays so until the transaction ends.
    pub(super) fn locked(
        &mut self,
        change: &Change<'_>,
        row: &PlannedRow,
    ) -> Result<Option<RowValues>> {
        let rows = self.rows(&change.statements.select(&row.key, true)?)?;
        change.statements.found(&row.key, rows)
    }

    /// Makes all rows what they should be. All that go, go first: rows may swap what only one of them may have.
    pub(super) fn write(&mut self, changes: &[Change<'_>]) -> Result<()> {
        let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
        for change in changes {
            let (gone, new) = change.sql()?;
            deletes.extend(gone);
            inserts.extend(new);
        }
        for sql in &deletes {
            self.one(sql)?;
        }
        fail::fail_point!("repair::deleted");
        for sql in &inserts {
            self.one(sql)?;
        }
        fail::fail_point!("repair::written");
        Ok(())
    }

    fn one(&mut self, sql: &str) -> Result<()> {
        match self.0.run(sql)?.affected {
            1 => Ok(()),
            other => Err(Error::failed(format!(
                "a statement for one row changed {other}"
            ))),
        }
    }

    /// Fails if a row is not what it should be.
    pub(super) fn read_back(&mut self, changes: &[Change<'_>]) -> Result<()> {
        for change in changes {
            for row in &change.table.rows {
                if self.locked(change, row)? != row.source {
                    return Err(Error::failed(format!(
                        "the replica does not keep {} as it was written",
                        change.named(row)
                    )));
                }
            }
        }
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        self.0.run("COMMIT AND NO CHAIN NO RELEASE").map(|_| ())
    }

    pub(super) fn roll_back(&mut self) {
        // Without the connection, the server does it.
        let _ = self.0.run("ROLLBACK AND NO CHAIN NO RELEASE");
    }
}
