//! Tables get other names, and copies take the place of what they are copies of.
//!
//! ALTER TABLE of a server makes an empty table with a name for the moment, copies the rows, gives the old
//! one a name for the moment and the new one the old one's, and drops the old one. Owners and waiters know
//! nothing of it.

use super::forgotten::own_file;
use super::{Known, Tables, anchor, anchors, missing, unread};
use crate::fault::Fault;
use crate::head::Head;
use evenkeel_queue::{Error, Options, Queue, place};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A table and what it is a copy of.
pub(super) struct Copy {
    pub old: Arc<Queue>,
    pub new: Arc<Queue>,
}

/// How servers call a table whose name is about to be another's: MariaDB, MySQL.
const MEANWHILE: [&str; 2] = ["#sql-backup", "#sql2-"];

/// Whether a table has this name only until it has another, or is dropped.
fn is_meanwhile(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_aside = path.parent().is_some_and(|dir| dir.ends_with(place::ROOT));
    is_aside || MEANWHILE.iter().any(|begin| name.starts_with(begin))
}

/// Whether a file belongs to a table that a server is about to rename.
pub(super) fn is_for_now(anchor: &Path) -> bool {
    let name = anchor.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("#sql")
}

impl Tables {
    /// Whether a table has this name.
    #[must_use]
    pub(crate) fn is_there(&self, path: &Path) -> bool {
        anchor(path).exists()
    }

    /// Whether a server is still about to forget a table that the engine has dropped: MariaDB asks the engine first, and
    /// lists the table until its own file is gone.
    pub(crate) fn is_going(&self, path: &Path) -> bool {
        !self.is_there(path) && own_file(path).exists()
    }

    /// Says that the table at a path is about to be a copy of another one. It is remembered beyond a
    /// crash: whoever goes on then has to bring it up to date.
    ///
    /// # Errors
    ///
    /// The file system refuses.
    pub(crate) fn begin_copy(&self, to: &Path, of: &Arc<Queue>) -> Result<(), Fault> {
        self.set_head(to, |head| head.origin = Some(of.id()))?;
        self.known().copies.insert(to.to_owned(), of.clone());
        Ok(())
    }

    /// Changes what a table's anchor says before the columns.
    pub(super) fn set_head(
        &self,
        path: &Path,
        change: impl FnOnce(&mut Head),
    ) -> Result<(), Error> {
        let anchor = anchor(path);
        let layout = self.store.anchor(&anchor)?.layout;
        let mut head = Head::of(&layout);
        change(&mut head);
        self.store.set_layout(&anchor, &head.before(&layout))
    }

    /// Gives a table another name, with those who own its rows and wait for them. A copy takes over what
    /// it is a copy of: rows that were removed since are removed, owners own what they owned.
    ///
    /// # Errors
    ///
    /// `Missing`, the file system refuses, or a copy lacks rows: nothing has changed then.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), Fault> {
        if !self.is_there(from) {
            return Err(missing(from));
        }
        self.remember_unsayable(from);
        let copy = self.copy_at(from)?;
        let _claim = self.claim(from, Some(to))?;
        let publish = || self.store.rename(&anchor(from), &anchor(to));
        match &copy {
            Some(Copy { old, new }) => old.hand_over(new, publish)?,
            None => publish()?,
        }
        let mut known = self.known();
        known.rename(from, to);
        known.leaving.remove(to);
        if copy.is_some() {
            known.copies.remove(to);
            drop(known);
            // If that is not written it is found out later that what it is a copy of is gone.
            let _ = self.forget_origin(to);
        }
        Ok(())
    }

    /// Says that a table is a copy of nothing any more.
    pub(super) fn forget_origin(&self, path: &Path) -> Result<(), Error> {
        self.set_head(path, |head| head.origin = None)
    }

    /// What the table at a path is a copy of, if that is still there, and the table.
    pub(super) fn copy_at(&self, path: &Path) -> Result<Option<Copy>, Fault> {
        let copied = self.known().copies.get(path).cloned();
        let origin = match copied {
            Some(table) => Some(table),
            None => self.origin_on_disk(path)?,
        };
        let copy = |old| {
            let new = self.table(path)?;
            Ok(Copy { old, new })
        };
        origin.map(copy).transpose()
    }

    /// Brings a copy up to date that a crash left, when what it is a copy of is about to be dropped: a
    /// server may do that before it gives the copy its name.
    pub(super) fn bequeath(&self, path: &Path) -> Result<(), Fault> {
        let id = self.store.anchor(&anchor(path))?.id;
        let all = anchors(&self.datadir).map_err(|error| unread(&self.datadir, &error))?;
        let is_copy = |anchor: &PathBuf| {
            let content = is_for_now(anchor).then(|| self.store.anchor(anchor).ok());
            content
                .flatten()
                .and_then(|content| Head::of(&content.layout).origin)
                == Some(id)
        };
        let Some(copy) = all.files.into_iter().find(is_copy) else {
            return Ok(());
        };
        let copy = copy.with_extension("");
        let (old, new) = (self.table(path)?, self.table(&copy)?);
        match old.hand_over(&new, || Ok(())) {
            Ok(()) => Ok(self.forget_origin(&copy)?),
            // It was never whole: nobody will want it.
            Err(Error::NotCopied(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What a table is a copy of that a crash left, if that is still there. No one uses either: the server
    /// goes on where it was before it lets anybody in.
    fn origin_on_disk(&self, from: &Path) -> Result<Option<Arc<Queue>>, Fault> {
        let layout = self.store.anchor(&anchor(from))?.layout;
        let Some(origin) = Head::of(&layout).origin else {
            return Ok(None);
        };
        let all = anchors(&self.datadir).map_err(|error| unread(&self.datadir, &error))?;
        let is_it = |path: &PathBuf| {
            let anchor = self.store.anchor(path);
            anchor.is_ok_and(|anchor| anchor.id == origin)
        };
        let Some(found) = all.files.into_iter().find(is_it) else {
            return Ok(None);
        };
        let of = |known: &Known| {
            let mut tables = known.open.values().map(|open| &open.table);
            tables.find(|table| table.id() == origin).cloned()
        };
        match of(&self.known()) {
            Some(open) => Ok(Some(open)),
            None => Ok(Some(self.store.open(&found, self.options())?.0)),
        }
    }
}

impl Known {
    /// Has all tables kept so that are in use.
    pub(super) fn keep_as(&self, options: Options) {
        let open = self.open.values().map(|open| &open.table);
        open.chain(self.copies.values())
            .for_each(|table| table.set_options(options));
    }

    /// Keeps nothing of a table but what was counted.
    pub(super) fn forget(&mut self, path: &Path) {
        if let Some(open) = self.open.remove(path) {
            self.remember(&open.table);
        }
    }

    /// A table has another name, and who gets its old one is not known yet if its own is one for the moment.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        // Had there been another one, its anchor is gone.
        self.forget(to);
        if let Some(open) = self.open.remove(from) {
            // One whose rows went to a copy that failed all the same is reopened.
            if !open.table.is_gone() || is_meanwhile(to) {
                self.open.insert(to.to_owned(), open);
            }
        }
        if let Some(old) = self.copies.remove(from) {
            self.copies.insert(to.to_owned(), old);
        }
        if is_meanwhile(to) {
            self.leaving.insert(from.to_owned(), to.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Asked, Connection, Ended};
    use crate::cursor::Cursor;
    use std::time::Duration;

    struct Scene {
        dir: tempfile::TempDir,
        tables: Tables,
        mails: PathBuf,
        copy: PathBuf,
        backup: PathBuf,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("shop")).unwrap();
        let at = |name: &str| dir.path().join("shop").join(name);
        let (mails, copy, backup) = (at("mails"), at("#sql-alter-1"), at("#sql-backup-1"));
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&mails, b"0\0").unwrap();
        let table = tables.table(&mails).unwrap();
        for row in [b"a", b"b", b"c", b"d"] {
            table.append(vec![row.to_vec()], None).unwrap();
        }
        Scene {
            dir,
            tables,
            mails,
            copy,
            backup,
        }
    }

    impl Scene {
        /// What a server does first.
        fn copy(&self, connection: &mut Connection) {
            self.tables.create(&self.copy, b"1\0").unwrap();
            connection.copies_to(&self.copy);
            let mut from = Cursor::open(&self.tables, &self.mails).unwrap();
            let mut to = Cursor::open(&self.tables, &self.copy).unwrap();
            to.gather();
            from.copy(&self.tables, connection).unwrap();
            while from.advance().unwrap().is_some() {
                let row = [b"\0", from.row()].concat();
                to.insert(connection, &row).unwrap();
            }
            to.gathered(connection, false).unwrap();
            to.close(&self.tables).unwrap();
            from.close(&self.tables).unwrap();
        }

        fn wait(&self, connection: &mut Connection, seconds: u64) -> Ended {
            let asked = [Asked {
                path: self.mails.clone(),
                condition: None,
            }];
            let time = Duration::from_secs(seconds);
            connection
                .wait(&self.tables, &asked, 1, time, &|| false)
                .unwrap()
        }
    }

    #[test]
    fn owners_and_waiters_know_nothing_of_it() {
        let scene = scene();
        let mut all: Vec<Connection> = (0..3).map(|_| Connection::new(0)).collect();
        let [owner, ends, alters] = &mut all[..] else {
            panic!("three");
        };
        assert_eq!(scene.wait(owner, 0), Ended::Rows(0));
        assert_eq!(scene.wait(ends, 0), Ended::Rows(0));
        scene.copy(alters);
        ends.end().unwrap();
        let mut waits = Connection::new(0);
        scene.tables.rename(&scene.mails, &scene.backup).unwrap();
        assert!(scene.tables.known().leaving.contains_key(&scene.mails));
        std::thread::scope(|scope| {
            // In this moment there is no such table; and yet nobody is told so.
            let waiting = scope.spawn(|| scene.wait(&mut waits, 60));
            scene.tables.rename(&scene.copy, &scene.mails).unwrap();
            scene.tables.drop_table(&scene.backup).unwrap();
            assert_eq!(waiting.join().unwrap(), Ended::Rows(0));
        });
        let table = scene.tables.table(&scene.mails).unwrap();
        assert_eq!(waits.row_id().unwrap(), 3);
        assert_eq!(table.read(3).unwrap().unwrap(), b"\0c");
        assert_eq!(table.stats().rows, 3);
        owner.end().unwrap();
        assert_eq!(table.stats().rows, 2);
        let anchor = scene.tables.store.anchor(&anchor(&scene.mails)).unwrap();
        assert_eq!(anchor.layout, b"1\0");
    }

    /// MariaDB lists a table until its own file is gone; and CREATE OR REPLACE makes another one meanwhile.
    #[test]
    fn who_waits_for_a_dropped_table_is_reported_when_the_server_has_forgotten_it() {
        for is_replaced in [false, true] {
            let scene = scene();
            let own = scene.mails.with_extension("frm");
            std::fs::write(&own, "columns").unwrap();
            let mut waits = Connection::new(0);
            for id in 1..=4 {
                assert_eq!(scene.wait(&mut waits, 0), Ended::Rows(0), "row {id}");
            }
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| scene.wait(&mut waits, 60));
                let table = scene.tables.table(&scene.mails).unwrap();
                while table.stats().waiters == 0 {
                    std::thread::yield_now();
                }
                scene.tables.drop_table(&scene.mails).unwrap();
                std::thread::sleep(Duration::from_millis(50));
                assert!(!waiting.is_finished(), "the server lists it still");
                if is_replaced {
                    scene.tables.create(&scene.mails, b"0\0").unwrap();
                    let table = scene.tables.table(&scene.mails).unwrap();
                    table.append(vec![b"e".to_vec()], None).unwrap();
                    assert_eq!(waiting.join().unwrap(), Ended::Rows(0));
                } else {
                    std::fs::remove_file(&own).unwrap();
                    assert_eq!(waiting.join().unwrap(), Ended::Missing);
                }
            });
        }
    }

    /// Of the two ways in which a server goes on one renames the old table first, the other drops it.
    #[test]
    fn after_a_crash_a_copy_is_brought_up_to_date() {
        for is_renamed in [true, false] {
            let scene = scene();
            let mut connection = Connection::new(0);
            scene.copy(&mut connection);
            assert_eq!(scene.wait(&mut connection, 0), Ended::Rows(0));
            connection.end().unwrap();
            if is_renamed {
                scene.tables.rename(&scene.mails, &scene.backup).unwrap();
            }
            scene.tables.close().unwrap();
            let tables = Tables::start(scene.dir.path()).unwrap();
            if is_renamed {
                tables.rename(&scene.copy, &scene.mails).unwrap();
                tables.drop_table(&scene.backup).unwrap();
            } else {
                tables.drop_table(&scene.mails).unwrap();
                tables.rename(&scene.copy, &scene.mails).unwrap();
            }
            let table = tables.table(&scene.mails).unwrap();
            assert_eq!(table.next_row(0), Some(2), "renamed: {is_renamed}");
            assert_eq!(table.stats().rows, 3);
        }
    }
}
