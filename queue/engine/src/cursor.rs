//! What one statement does to one table: rows gathered, a scan, removals.

use crate::connection::{AtHand, Connection};
use crate::fault::Fault;
use crate::tables::Tables;
use evenkeel_queue::{Copied, Queue};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of one statement are written when they are as many bytes; fewer are one unit.
const GATHERED: usize = 8 << 20;

/// A table as one handler has it open.
#[derive(Debug)]
pub struct Cursor {
    path: PathBuf,
    table: Arc<Queue>,
    /// Rows of a statement of many; `None` where each is written at once.
    gathered: Option<Vec<Vec<u8>>>,
    /// Rows that are copied, under their ids.
    copied: Vec<Copied>,
    bytes: usize,
    next: u64,
    only: Option<u64>,
    /// All rows are read, for a copy; here it is said which is at hand.
    copies: Option<Arc<AtHand>>,
    /// The row at hand.
    row: Vec<u8>,
    id: u64,
    /// Rows to be removed when the statement ends.
    doomed: Vec<u64>,
}

impl Cursor {
    /// Opens a table.
    ///
    /// # Errors
    ///
    /// As with [`Tables::table`].
    pub fn open(tables: &Tables, path: &Path) -> Result<Self, Fault> {
        Ok(Self {
            path: path.to_owned(),
            table: tables.table(path)?,
            gathered: None,
            copied: Vec::new(),
            bytes: 0,
            next: 0,
            only: None,
            copies: None,
            row: Vec::new(),
            id: 0,
            doomed: Vec::new(),
        })
    }

    /// Closes it, and the table if nobody else has it.
    ///
    /// # Errors
    ///
    /// As with [`Tables::release`].
    pub fn close(self, tables: &Tables) -> Result<(), Fault> {
        let Self { path, table, .. } = self;
        drop(table);
        tables.release(&path)
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Queue> {
        &self.table
    }

    /// Says that many rows come, which are to be there together.
    pub fn gather(&mut self) {
        self.gathered = Some(Vec::new());
        self.bytes = 0;
    }

    /// Writes a row, or keeps it with those that come together.
    ///
    /// # Errors
    ///
    /// It cannot be written: nor are the others that were kept.
    pub fn insert(&mut self, connection: &mut Connection, row: &[u8]) -> Result<(), Fault> {
        if let Some(at_hand) = connection.copied_row(&self.path) {
            self.copied.push(at_hand.copied(row));
            self.bytes += row.len();
            return match self.bytes < GATHERED {
                true => Ok(()),
                false => self.write(connection),
            };
        }
        let Some(rows) = &mut self.gathered else {
            self.table
                .append(vec![row.to_vec()], connection.take_source())?;
            return Ok(());
        };
        rows.push(row.to_vec());
        self.bytes += row.len();
        match self.bytes < GATHERED {
            true => Ok(()),
            false => self.write(connection),
        }
    }

    fn write(&mut self, connection: &mut Connection) -> Result<(), Fault> {
        self.bytes = 0;
        let copied = std::mem::take(&mut self.copied);
        if !copied.is_empty() {
            self.table.adopt(copied)?;
        }
        let rows = self.gathered.as_mut().map(std::mem::take);
        let rows = rows.unwrap_or_default();
        if !rows.is_empty() {
            self.table.append(rows, connection.take_source())?;
        }
        Ok(())
    }

    /// Writes what was kept; with `drops` it is dropped, because the statement has failed.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn gathered(&mut self, connection: &mut Connection, drops: bool) -> Result<(), Fault> {
        let done = match drops {
            true => Ok(()),
            false => self.write(connection),
        };
        self.gathered = None;
        self.copied.clear();
        done
    }

    /// Begins a scan of what this connection sees.
    pub fn scan(&mut self, connection: &Connection) {
        self.next = 0;
        self.only = connection.sees_only();
        self.copies = None;
    }

    /// Begins a scan of all rows, whoever owns them, for the table that this connection copies to.
    ///
    /// # Errors
    ///
    /// `Misuse` where that is no queue; or the file system refuses.
    pub fn copy(&mut self, tables: &Tables, connection: &mut Connection) -> Result<(), Fault> {
        self.scan(connection);
        match connection
            .begin_copy()
            .filter(|(to, _)| tables.is_there(to))
        {
            Some((to, row)) => {
                tables.begin_copy(to, &self.table)?;
                self.copies = Some(row);
                Ok(())
            }
            None => Err(Fault::misuse(
                "ALTER TABLE cannot give a queue's rows to another engine, because consumers keep running meanwhile. Stop them, \
                 CREATE TABLE the other one, INSERT INTO it SELECT * FROM the queue in a connection that has called no \
                 queue_wait(), then DROP TABLE the queue",
            )),
        }
    }

    fn following(&self) -> Option<u64> {
        match &self.copies {
            Some(_) => self.table.next_row(self.next),
            None => self.table.next_visible(self.next, self.only),
        }
    }

    /// Reads the next row. Returns its id; `None` at the end.
    ///
    /// # Errors
    ///
    /// The row cannot be read.
    pub fn advance(&mut self) -> Result<Option<u64>, Fault> {
        while let Some(id) = self.following() {
            self.next = id + 1;
            // Somebody may have removed it in this moment.
            if self.read(id)? {
                if let Some(copies) = &self.copies {
                    copies.set(id, self.table.came(id));
                }
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Reads a row. Returns whether it is there.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(&mut self, id: u64) -> Result<bool, Fault> {
        let Some(row) = self.table.read(id)? else {
            return Ok(false);
        };
        (self.row, self.id) = (row, id);
        Ok(true)
    }

    /// Reads all rows, whoever owns them, and keeps none. Whoever is killed ends early.
    ///
    /// # Errors
    ///
    /// A row cannot be read, or is not what was written.
    pub fn check(&self, is_killed: &dyn Fn() -> bool) -> Result<(), Fault> {
        let mut next = 0;
        while let Some(id) = self.table.next_row(next).filter(|_| !is_killed()) {
            self.table.read(id)?;
            next = id + 1;
        }
        Ok(())
    }

    /// The row at hand.
    #[must_use]
    pub fn row(&self) -> &[u8] {
        &self.row
    }

    /// Which row is at hand.
    #[must_use]
    pub fn row_id(&self) -> u64 {
        self.id
    }

    /// Has the row at hand removed when the statement ends. Returns false when somebody else has it.
    pub fn doom(&mut self, connection: &Connection) -> bool {
        let is_ours =
            connection.sees_only().is_some() || self.table.own(self.id, connection.owner());
        if is_ours {
            self.doomed.push(self.id);
        }
        is_ours
    }

    /// Ends a statement: what was to be removed is, in one step.
    ///
    /// # Errors
    ///
    /// It cannot be written: the rows are there still.
    pub fn settle(&mut self, connection: &mut Connection) -> Result<(), Fault> {
        if !self.copied.is_empty() {
            self.write(connection)?;
        }
        if self.doomed.is_empty() {
            return Ok(());
        }
        let ids = std::mem::take(&mut self.doomed);
        let done = connection.remove(&self.table, &ids);
        if done.is_err() && connection.sees_only().is_none() {
            self.table.give_back(connection.owner(), &ids);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Asked, Ended};
    use std::time::Duration;

    fn scene() -> (tempfile::TempDir, Tables, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("shop")).unwrap();
        let path = dir.path().join("shop/mails");
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&path, b"0\0").unwrap();
        (dir, tables, path)
    }

    fn all(cursor: &mut Cursor, connection: &Connection) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        cursor.scan(connection);
        while cursor.advance().unwrap().is_some() {
            rows.push(cursor.row().to_vec());
        }
        rows
    }

    fn wait(connection: &mut Connection, tables: &Tables, path: &Path) -> Ended {
        let asked = [Asked {
            path: path.to_owned(),
            condition: None,
        }];
        let none = Duration::ZERO;
        connection.wait(tables, &asked, 1, none, &|| false).unwrap()
    }

    #[test]
    fn an_owner_sees_its_row_and_others_see_the_rest() {
        let (_dir, tables, path) = scene();
        let (mut one, mut other) = (Connection::new(0), Connection::new(0));
        let mut cursor = Cursor::open(&tables, &path).unwrap();
        cursor.gather();
        for row in [b"a", b"b", b"c"] {
            cursor.insert(&mut one, row).unwrap();
        }
        assert!(all(&mut cursor, &one).is_empty(), "all come together");
        cursor.gathered(&mut one, false).unwrap();
        assert_eq!(wait(&mut one, &tables, &path), Ended::Rows(0));
        assert_eq!(all(&mut cursor, &one), [b"a"]);
        assert_eq!(all(&mut cursor, &other), [b"b", b"c"]);
        one.abort().unwrap();
        assert_eq!(all(&mut cursor, &other), [b"a", b"b", b"c"]);
        assert_eq!(one.abort().unwrap_err().code, crate::Code::Misuse);
        assert_eq!(wait(&mut other, &tables, &path), Ended::Rows(0));
        other.end().unwrap();
        assert_eq!(all(&mut cursor, &one), [b"b", b"c"]);
        drop(other);
        let gone = path.with_file_name("none");
        assert_eq!(wait(&mut one, &tables, &gone), Ended::Missing);
    }

    #[test]
    fn rows_are_removed_when_the_statement_ends_and_not_before() {
        let (_dir, tables, path) = scene();
        let mut one = Connection::new(0);
        let other = Connection::new(0);
        let mut cursor = Cursor::open(&tables, &path).unwrap();
        for row in [b"a", b"b"] {
            cursor.insert(&mut one, row).unwrap();
        }
        cursor.scan(&one);
        cursor.advance().unwrap();
        assert!(cursor.doom(&one));
        assert_eq!(cursor.table().stats().rows, 2);
        assert!(!cursor.doom(&other), "it is about to be removed");
        cursor.settle(&mut one).unwrap();
        assert_eq!(all(&mut cursor, &other), [b"b"]);
        // The owner of a row removes it so, and owns nothing then.
        assert_eq!(wait(&mut one, &tables, &path), Ended::Rows(0));
        cursor.scan(&one);
        cursor.advance().unwrap();
        assert!(cursor.doom(&one));
        cursor.settle(&mut one).unwrap();
        assert!(all(&mut cursor, &one).is_empty());
        one.abort().unwrap();
        assert!(all(&mut cursor, &other).is_empty());
    }
}
