//! The tables of a server that are open. A table is meant by its path without a suffix, as servers
//! name them: `./shop/mails`.

mod claim;
mod forgotten;
mod names;
mod sayable;
mod statement;
mod totals;

use crate::columns::Columns;
use crate::fault::{Code, Fault};
use crate::head::Head;
use claim::{Claim, PATIENCE, busy};
use evenkeel_queue::place;
use evenkeel_queue::store::SUFFIX;
use evenkeel_queue::{Condition, Options, Queue, Stats, Store, Wanted, io::Disk};
pub(crate) use statement::Statement;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Conditions of a table that are remembered, with how far each has been looked for.
const CONDITIONS: usize = 100;

/// A table that is open.
#[derive(Debug, Clone)]
struct Open {
    table: Arc<Queue>,
    columns: Arc<Columns>,
    conditions: Arc<Mutex<HashMap<String, Condition>>>,
}

/// What is known of names. Its lock is held for moments: nothing is read, written or parsed under it. A thread
/// that does that to a table has its name to itself meanwhile; see [`Claim`].
#[derive(Debug, Default)]
struct Known {
    open: HashMap<PathBuf, Open>,
    /// Names that a thread has to itself: others wait for it, and not for each other.
    claimed: HashSet<PathBuf>,
    /// Names that a table has lost for a moment, because another is about to get them; and what it is
    /// called meanwhile.
    leaving: HashMap<PathBuf, PathBuf>,
    /// Tables that are copies, and of what. What is copied stays open.
    copies: HashMap<PathBuf, Arc<Queue>>,
    /// Names that only a table of an earlier version could have, and has lost.
    unsayable: HashSet<PathBuf>,
    /// What was counted in tables that are not open any more.
    past: Stats,
}

/// All tables of a server.
#[derive(Debug)]
pub struct Tables {
    datadir: PathBuf,
    store: Store,
    known: Mutex<Known>,
    /// Names have changed.
    changed: Condvar,
    options: Mutex<Options>,
    /// Names that statements have left, of which only the server's dictionary knows who has them. Whoever holds its
    /// lock settles them.
    left: Mutex<BTreeSet<PathBuf>>,
    is_settled: AtomicBool,
}

fn anchor(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(SUFFIX);
    name.into()
}

impl Tables {
    /// The tables below a data directory. What a crash left half made is removed, and rows that an earlier
    /// version wrote are moved to where they belong.
    ///
    /// # Errors
    ///
    /// The directory cannot be read, or two places have the same table.
    pub fn start(datadir: &Path) -> Result<Self, Fault> {
        let root = place::settle(&Disk, datadir)?;
        let store = Store::new(Arc::new(Disk), &root)?;
        let (mut known, mut left) = (Vec::new(), BTreeSet::new());
        let anchors = anchors(datadir).map_err(|error| unread(datadir, &error))?;
        // An anchor that cannot be read may name anything, and so may one that cannot be seen: then nothing is
        // removed.
        let mut is_whole = anchors.is_all;
        for path in anchors.files {
            match store.anchor(&path) {
                Ok(anchor) => {
                    known.push(anchor.id);
                    if Head::of(&anchor.layout).note.is_some() {
                        left.insert(path.with_extension(""));
                    }
                }
                Err(_) => is_whole = false,
            }
        }
        if is_whole {
            store.sweep(&known)?;
        }
        // Anchors that were being written. DROP DATABASE would stop at them.
        let halves = files(datadir, &format!(".{SUFFIX}.new"));
        for half in halves.map_err(|error| unread(datadir, &error))?.files {
            let _ = fs::remove_file(half);
        }
        Ok(Self {
            datadir: datadir.to_owned(),
            store,
            known: Mutex::default(),
            changed: Condvar::new(),
            options: Mutex::default(),
            is_settled: AtomicBool::new(left.is_empty()),
            left: Mutex::new(left),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how tables are kept from now on.
    pub fn set_options(&self, options: Options) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
        self.known().keep_as(options);
    }

    fn options(&self) -> Options {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a table. One that a crash of the server left under this name is dropped.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub fn create(&self, path: &Path, layout: &[u8]) -> Result<(), Fault> {
        let claim = self.claim(path, None)?;
        let left = match self.is_there(path) {
            true => Some(self.unname(path)?),
            false => None,
        };
        self.store.create(&anchor(path), layout)?;
        drop(claim);
        if let Some(id) = left {
            self.store.remove_rows(id);
        }
        Ok(())
    }

    /// The table at a path, opened if it is not. Where another table is about to get that name it is whichever has it:
    /// who opens one so has the server's lock on the name, or only looks.
    ///
    /// # Errors
    ///
    /// `Missing`, or it cannot be opened.
    pub fn table(&self, path: &Path) -> Result<Arc<Queue>, Fault> {
        let known = self.free(Instant::now() + PATIENCE, |known| {
            let has_one = !known.leaving.contains_key(path) || self.is_there(path);
            has_one && !known.claimed.contains(path)
        });
        let known = known.ok_or_else(|| busy(path))?;
        Ok(self.opened(path, known)?.table)
    }

    /// An open table, which is opened if it is not. Only those who want the same one wait until that is done.
    fn opened(&self, path: &Path, mut known: MutexGuard<'_, Known>) -> Result<Open, Fault> {
        match known.open.get(path) {
            Some(open) if !open.table.is_gone() => return Ok(open.clone()),
            // It went in a way that left its name.
            Some(_) => known.forget(path),
            None => {}
        }
        let _claim = Claim::new(self, known, &[path]);
        let opened = self.open(path)?;
        let mut known = self.known();
        // They may have been set while it was being opened.
        opened.table.set_options(self.options());
        known.open.insert(path.to_owned(), opened.clone());
        Ok(opened)
    }

    fn open(&self, path: &Path) -> Result<Open, Fault> {
        let anchor = anchor(path);
        if !anchor.exists() {
            return Err(missing(path));
        }
        let found = self.store.anchor(&anchor)?;
        self.must_be_closed(found.id, path)?;
        let columns = Columns::read(&found.layout).ok_or_else(|| Fault {
            code: Code::Corrupt,
            text: format!("{}: its columns cannot be read", anchor.display()),
        })?;
        let (table, _report) = self.store.open(&anchor, self.options())?;
        Ok(Open {
            table,
            columns: Arc::new(columns),
            conditions: Arc::default(),
        })
    }

    /// Makes sure that no table is open under two paths: each of the two would write over what the other has written.
    fn must_be_closed(&self, id: u128, path: &Path) -> Result<(), Fault> {
        let known = self.known();
        let is_it = |(_, open): &(&PathBuf, &Open)| open.table.id() == id && !open.table.is_gone();
        match known.open.iter().find(is_it) {
            None => Ok(()),
            Some((other, _)) => Err(Fault::misuse(format!(
                "the queue {} is open as {}: restart the server, and report this",
                path.display(),
                other.display()
            ))),
        }
    }

    /// What to wait for: rows of the table at a path, of which a condition is true. None: another thread
    /// still had the table's name to itself then.
    ///
    /// # Errors
    ///
    /// As with [`table`](Self::table); `Misuse` where the condition is none.
    pub fn wanted(
        &self,
        path: &Path,
        condition: Option<&str>,
        until: Instant,
    ) -> Result<Option<Wanted>, Fault> {
        let Some(known) = self.settled(path, None, until) else {
            return Ok(None);
        };
        let open = self.opened(path, known)?;
        let condition = condition.map(|text| open.condition(text)).transpose()?;
        Ok(Some(Wanted {
            table: open.table,
            condition,
        }))
    }

    /// Closes a table that nobody has in hand.
    ///
    /// # Errors
    ///
    /// What it still had to write could not be written.
    pub fn release(&self, path: &Path) -> Result<(), Fault> {
        let mut known = self.known();
        // Nobody comes by another one than through this lock.
        let is_idle = |open: &Open| Arc::strong_count(&open.table) == 1;
        if known.claimed.contains(path) || !known.open.get(path).is_some_and(is_idle) {
            return Ok(());
        }
        let Some(open) = known.open.remove(path) else {
            return Ok(());
        };
        known.remember(&open.table);
        let _claim = Claim::new(self, known, &[path]);
        Ok(open.table.close()?)
    }

    /// Closes all tables.
    ///
    /// # Errors
    ///
    /// The first that could not be closed; the others are.
    pub fn close(&self) -> Result<(), Fault> {
        let tables: Vec<Open> = self.known().open.drain().map(|(_, open)| open).collect();
        let mut outcome = Ok(());
        for open in tables {
            outcome = outcome.and(open.table.close().map_err(Fault::from));
        }
        outcome
    }

    /// Drops a table. Those who wait for it are told.
    ///
    /// # Errors
    ///
    /// `Missing`, or the file system refuses.
    pub fn drop_table(&self, path: &Path) -> Result<(), Fault> {
        let anchor = anchor(path);
        if !anchor.exists() {
            return Err(missing(path));
        }
        self.bequeath(path)?;
        let claim = self.claim(path, None)?;
        let id = self.unname(path)?;
        drop(claim);
        self.store.remove_rows(id);
        Ok(())
    }

    /// Takes the name from a table, which is claimed. Returns whose rows may be removed.
    fn unname(&self, path: &Path) -> Result<u128, Fault> {
        let table = self.known().open.get(path).map(|open| open.table.clone());
        let done = self.store.drop_table(&anchor(path), table.as_deref());
        // It can have failed too late for the table to be there.
        if !self.is_there(path) {
            let mut known = self.known();
            known.forget(path);
            known.copies.remove(path);
            known.leaving.retain(|_, meanwhile| meanwhile != path);
        }
        Ok(done?)
    }

    /// Those that are open now.
    #[must_use]
    pub fn all(&self) -> Vec<(PathBuf, Arc<Queue>)> {
        let known = self.known();
        let pairs = known
            .open
            .iter()
            .map(|(path, open)| (path.clone(), open.table.clone()));
        let mut all: Vec<_> = pairs.collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

impl Open {
    /// The condition that a text is. The same text is the same condition, so that who waits for it again goes
    /// on where the last look ended.
    fn condition(&self, text: &str) -> Result<Condition, Fault> {
        let known = || {
            self.conditions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = known().get(text) {
            return Ok(known.clone());
        }
        let columns = self.columns.clone();
        let parsed = evenkeel_queue_condition::parse(text, &|name| columns.place(name))
            .map_err(|wrong| Fault::misuse(wrong.to_string()))?;
        let condition = Condition::new(move |row| {
            evenkeel_queue_condition::holds(&parsed, &|at| columns.value(row, at))
        });
        let mut known = known();
        if known.len() >= CONDITIONS {
            // Those who wait have clones of theirs.
            known.clear();
        }
        Ok(known.entry(text.to_owned()).or_insert(condition).clone())
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
fn anchors(datadir: &Path) -> std::io::Result<Found> {
    files(datadir, &format!(".{SUFFIX}"))
}

/// Files in the directories of databases.
struct Found {
    files: Vec<PathBuf>,
    /// Every directory could be looked into.
    is_all: bool,
}

/// Files in the directories of all databases whose names end so. A database may be a link to a directory elsewhere.
fn files(datadir: &Path, end: &str) -> std::io::Result<Found> {
    let mut found = Found {
        files: Vec::new(),
        is_all: true,
    };
    for entry in fs::read_dir(datadir)? {
        let entry = entry?;
        // A file system's own, and root's.
        if entry.file_name() == "lost+found" {
            continue;
        }
        let database = match fs::metadata(entry.path()) {
            Ok(meta) if !meta.is_dir() => continue,
            found => found.and_then(|_| fs::read_dir(entry.path())),
        };
        let Ok(database) = database else {
            found.is_all = false;
            continue;
        };
        for file in database {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_bytes().ends_with(end.as_bytes()) {
                found.files.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Asked, Connection, Ended};
    use evenkeel_queue::Append;
    use std::time::Duration;

    #[test]
    fn tables_keep_their_rows_under_another_name_and_after_a_start() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let (one, two) = (dir.path().join("shop/one"), dir.path().join("shop/two"));
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&one, b"0\0").unwrap();
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
        assert_eq!(
            fs::read_dir(dir.path().join(place::ROOT)).unwrap().count(),
            0
        );
    }

    #[test]
    fn no_table_is_open_twice() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let [one, same] = ["shop/one", "shop/../shop/one"].map(|name| dir.path().join(name));
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&one, b"0\0").unwrap();
        let table = tables.table(&one).unwrap();
        assert_eq!(tables.table(&same).unwrap_err().code, Code::Misuse);
        drop(table);
        tables.release(&one).unwrap();
        assert!(tables.table(&same).is_ok());
    }

    #[test]
    fn what_cannot_be_seen_is_not_swept() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (shop, gone) = (dir.path().join("shop"), dir.path().join("gone"));
        std::os::unix::fs::symlink(elsewhere.path(), &shop).unwrap();
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&shop.join("one"), b"0\0").unwrap();
        let row = vec![b"row".to_vec()];
        let table = tables.table(&shop.join("one")).unwrap();
        table.append(row, None).unwrap();
        drop((table, tables));
        // A database elsewhere is one; while its place is not mounted, what is in it is not known.
        for is_mounted in [true, false, true] {
            fs::rename(&shop, &gone).unwrap();
            let to = elsewhere
                .path()
                .join(if is_mounted { "" } else { "nowhere" });
            std::os::unix::fs::symlink(to, &shop).unwrap();
            fs::remove_file(&gone).unwrap();
            let tables = Tables::start(dir.path()).unwrap();
            if is_mounted {
                let table = tables.table(&shop.join("one")).unwrap();
                assert_eq!(table.read(1), Ok(Some(b"row".to_vec())));
            }
        }
    }

    #[test]
    fn who_wants_another_table_does_not_wait_for_one_that_is_being_opened() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let (one, two) = (dir.path().join("shop/one"), dir.path().join("shop/two"));
        let tables = Tables::start(dir.path()).unwrap();
        for path in [&one, &two] {
            tables.create(path, b"0\0").unwrap();
        }
        let claim = tables.claim(&one, None).unwrap();
        assert!(tables.table(&two).is_ok());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| tables.table(&one).map(|table| table.stats().rows));
            drop(claim);
            assert_eq!(waiting.join().unwrap(), Ok(0));
        });
    }

    #[test]
    fn a_name_means_the_table_that_has_it_now_and_a_wait_ends() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let one = dir.path().join("shop/one");
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&one, b"0\0").unwrap();
        let old = tables.table(&one).unwrap();
        // As if dropping it had ended half-way.
        tables.store.drop_table(&anchor(&one), Some(&old)).unwrap();
        tables.store.create(&anchor(&one), b"0\0").unwrap();
        let mut connection = Connection::new(0);
        let asked = [Asked {
            path: one.clone(),
            condition: None,
        }];
        let mut wait = || connection.wait(&tables, &asked, 1, Duration::ZERO, &|| false);
        assert_eq!(wait(), Ok(Ended::TimedOut));
        let new = tables.table(&one).unwrap();
        new.append(vec![b"row".to_vec()], None).unwrap();
        assert_eq!(wait(), Ok(Ended::Rows(0)));
        // A server that lost its half of a table makes another one under the name.
        tables.create(&one, b"0\0").unwrap();
        assert!(new.is_gone());
        assert_eq!(tables.table(&one).unwrap().stats().rows, 0);
        let rows = fs::read_dir(dir.path().join(place::ROOT)).unwrap();
        assert_eq!(rows.count(), 2, "one is swept at the next start");
        drop(tables);
        Tables::start(dir.path()).unwrap();
        let rows = fs::read_dir(dir.path().join(place::ROOT)).unwrap();
        assert_eq!(rows.count(), 1);
    }

    #[test]
    fn a_wait_does_not_stay_for_a_name_that_somebody_has_to_himself() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let one = dir.path().join("shop/one");
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&one, b"0\0").unwrap();
        let _claim = tables.claim(&one, None).unwrap();
        let asked = [Asked {
            path: one,
            condition: None,
        }];
        let ended = Connection::new(0).wait(&tables, &asked, 1, Duration::ZERO, &|| false);
        assert_eq!(ended, Ok(Ended::TimedOut));
    }

    #[test]
    fn rows_without_an_anchor_are_swept_but_not_beside_one_that_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let one = dir.path().join("shop/one");
        Tables::start(dir.path())
            .unwrap()
            .create(&one, b"0\0")
            .unwrap();
        fs::write(dir.path().join("shop/bad.QUE"), "nonsense").unwrap();
        fs::write(dir.path().join("shop/two.QUE.new"), "half").unwrap();
        fs::remove_file(anchor(&one)).unwrap();
        let count = || fs::read_dir(dir.path().join(place::ROOT)).unwrap().count();
        Tables::start(dir.path()).unwrap();
        assert_eq!(count(), 1);
        fs::remove_file(dir.path().join("shop/bad.QUE")).unwrap();
        Tables::start(dir.path()).unwrap();
        assert_eq!(count(), 0);
        let left = fs::read_dir(dir.path().join("shop")).unwrap().count();
        assert_eq!(left, 0);
    }
}
