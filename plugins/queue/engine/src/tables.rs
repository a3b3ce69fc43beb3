//! The tables of a server that are open. A table is meant by its path without a suffix, as servers
//! name them: `./shop/mails`.

use crate::fault::{Code, Fault};
use evenkeel_queue::{Options, Store, Table, io::Disk};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an anchor file's name ends with.
const SUFFIX: &str = "QUE";
/// Where the rows of all tables are, below the data directory. `#` keeps servers from taking it for a
/// database.
const ROOT: &str = "#queue";

/// All tables of a server.
#[derive(Debug)]
pub struct Tables {
    store: Store,
    open: Mutex<HashMap<PathBuf, Arc<Table>>>,
    options: Mutex<Options>,
}

fn anchor(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(SUFFIX);
    name.into()
}

impl Tables {
    /// The tables below a data directory. What a crash left half made is removed.
    ///
    /// # Errors
    ///
    /// The directory cannot be read, or an anchor in it.
    pub fn start(datadir: &Path) -> Result<Self, Fault> {
        let store = Store::new(Arc::new(Disk), &datadir.join(ROOT))?;
        let mut known = Vec::new();
        // An anchor that cannot be read may name anything: then nothing is removed.
        let mut is_whole = true;
        for path in anchors(datadir).map_err(|error| unread(datadir, &error))? {
            match store.anchor(&path) {
                Ok(anchor) => known.push(anchor.id),
                Err(_) => is_whole = false,
            }
        }
        if is_whole {
            store.sweep(&known)?;
        }
        Ok(Self {
            store,
            open: Mutex::default(),
            options: Mutex::default(),
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Table>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how tables are kept that are opened from now on.
    pub fn set_options(&self, options: Options) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    fn options(&self) -> Options {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a table.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub fn create(&self, path: &Path, layout: &[u8]) -> Result<(), Fault> {
        Ok(self.store.create(&anchor(path), layout)?)
    }

    /// The table at a path, opened if it is not.
    ///
    /// # Errors
    ///
    /// `Missing`, or it cannot be opened.
    pub fn table(&self, path: &Path) -> Result<Arc<Table>, Fault> {
        let mut open = self.open();
        if let Some(table) = open.get(path) {
            return Ok(table.clone());
        }
        let anchor = anchor(path);
        if !anchor.exists() {
            return Err(missing(path));
        }
        let (table, _report) = self.store.open(&anchor, self.options())?;
        open.insert(path.to_owned(), table.clone());
        Ok(table)
    }

    /// Closes a table that nobody has in hand.
    ///
    /// # Errors
    ///
    /// What it still had to write could not be written.
    pub fn release(&self, path: &Path) -> Result<(), Fault> {
        let mut open = self.open();
        // Nobody comes by another one than through this lock.
        let is_idle = |table: &Arc<Table>| Arc::strong_count(table) == 1;
        match open.get(path).is_some_and(is_idle) {
            true => match open.remove(path) {
                Some(table) => Ok(table.close()?),
                None => Ok(()),
            },
            false => Ok(()),
        }
    }

    /// Closes all tables.
    ///
    /// # Errors
    ///
    /// The first that could not be closed; the others are.
    pub fn close(&self) -> Result<(), Fault> {
        let tables: Vec<Arc<Table>> = self.open().drain().map(|(_, table)| table).collect();
        let mut outcome = Ok(());
        for table in tables {
            outcome = outcome.and(table.close().map_err(Fault::from));
        }
        outcome
    }

    /// Gives a table another path, with those who own its rows and wait for them.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), Fault> {
        let mut open = self.open();
        self.store.rename(&anchor(from), &anchor(to))?;
        if let Some(table) = open.remove(from) {
            open.insert(to.to_owned(), table);
        }
        Ok(())
    }

    /// Drops a table. Those who wait for it are told.
    ///
    /// # Errors
    ///
    /// `Missing`, or the file system refuses.
    pub fn drop_table(&self, path: &Path) -> Result<(), Fault> {
        let mut open = self.open();
        let anchor = anchor(path);
        if !anchor.exists() {
            return Err(missing(path));
        }
        let table = open.get(path).cloned();
        self.store.drop_table(&anchor, table.as_deref())?;
        open.remove(path);
        Ok(())
    }

    /// Those that are open now.
    #[must_use]
    pub fn all(&self) -> Vec<(PathBuf, Arc<Table>)> {
        let open = self.open();
        let mut all: Vec<_> = open.iter().map(|(p, t)| (p.clone(), t.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

fn missing(path: &Path) -> Fault {
    Fault {
        code: Code::Missing,
        text: format!("there is no queue {}", path.display()),
    }
}

fn unread(path: &Path, error: &std::io::Error) -> Fault {
    Fault {
        code: Code::Io,
        text: format!("failed to read {}: {error}", path.display()),
    }
}

/// The anchors of all databases.
fn anchors(datadir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(datadir)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(entry.path())? {
            let path = file?.path();
            if path.extension() == Some(OsStr::new(SUFFIX)) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_queue::Append;

    #[test]
    fn tables_keep_their_rows_under_another_name_and_after_a_start() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let (one, two) = (dir.path().join("shop/one"), dir.path().join("shop/two"));
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&one, b"layout").unwrap();
        let table = tables.table(&one).unwrap();
        assert_eq!(
            table.append(vec![b"row".to_vec()], None),
            Ok(Append::First(1))
        );
        tables.rename(&one, &two).unwrap();
        assert!(Arc::ptr_eq(&table, &tables.table(&two).unwrap()));
        assert_eq!(tables.table(&one).unwrap_err().code, Code::Missing);
        tables.release(&two).unwrap();
        assert_eq!(tables.all().len(), 1, "somebody has it in hand");
        drop(table);
        tables.release(&two).unwrap();
        assert!(tables.all().is_empty());
        drop(tables);
        let tables = Tables::start(dir.path()).unwrap();
        let table = tables.table(&two).unwrap();
        assert_eq!(table.read(1), Ok(Some(b"row".to_vec())));
        tables.drop_table(&two).unwrap();
        assert_eq!(tables.drop_table(&two).unwrap_err().code, Code::Missing);
        assert_eq!(fs::read_dir(dir.path().join(ROOT)).unwrap().count(), 0);
    }

    #[test]
    fn rows_without_an_anchor_are_swept_but_not_beside_one_that_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let one = dir.path().join("shop/one");
        Tables::start(dir.path())
            .unwrap()
            .create(&one, b"")
            .unwrap();
        fs::write(dir.path().join("shop/bad.QUE"), "nonsense").unwrap();
        fs::remove_file(anchor(&one)).unwrap();
        let count = || fs::read_dir(dir.path().join(ROOT)).unwrap().count();
        Tables::start(dir.path()).unwrap();
        assert_eq!(count(), 1);
        fs::remove_file(dir.path().join("shop/bad.QUE")).unwrap();
        Tables::start(dir.path()).unwrap();
        assert_eq!(count(), 0);
    }
}
