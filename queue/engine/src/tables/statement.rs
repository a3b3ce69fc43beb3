//! Servers that keep names in a dictionary of their own: what a statement does to a queue's name holds when the
//! dictionary has it.
//!
//! A statement makes, renames and drops tables, and is done when the server commits its dictionary, or is taken back.
//! Of that the engine hears afterwards, or never, in a crash. So each step leaves a note in the table's anchor, and can
//! be taken back: a table that is dropped is put aside under its id, and its rows stay. When the statement has ended, or
//! the server goes on after a crash, the dictionary is asked, by the table's number in it, where each noted table
//! is: there it goes. One that the dictionary has not is removed if its note says that it was being made, or
//! dropped, and in no other case.
//!
//! A copy takes the place of its table in that moment, and not with its rename: until then consumers go on in the old
//! one, which is whole if the statement is taken back.

use super::names::Copy;
use super::{Tables, anchor, missing};
use crate::fault::Fault;
use crate::head::{Head, Note, Verb};
use evenkeel_queue::{Error, place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// A statement as it works on one table.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// All names that it has touched, for [`Tables::settle`].
    pub names: &'a mut BTreeSet<PathBuf>,
    /// The table's number in the server's dictionary; 0 before it has one.
    pub table: u64,
}

/// Asks the dictionary for the table of this number, or, of number 0, for the one at this path. Returns where it is, or
/// `None` where it has none.
pub(crate) type LookUp<'a> = dyn Fn(u64, &Path) -> Result<Option<PathBuf>, Fault> + 'a;

/// A table whose name is not settled.
#[derive(Debug)]
struct Unsettled {
    at: PathBuf,
    id: u128,
    verb: Verb,
    /// Where the dictionary has it.
    place: Option<PathBuf>,
}

impl Tables {
    /// Makes a table, as [`create`](Self::create) does, but takes no other one's place.
    ///
    /// # Errors
    ///
    /// A queue has that name, or the file system refuses.
    pub(crate) fn create_in(
        &self,
        statement: &mut Statement<'_>,
        path: &Path,
        layout: &[u8],
    ) -> Result<(), Fault> {
        self.must_be_free(path)?;
        statement.names.insert(path.to_owned());
        let note = Some(Note {
            verb: Verb::Make,
            table: statement.table,
        });
        let head = Head { note, origin: None };
        self.create(path, &head.before(layout))
    }

    /// Gives a table another name. It is a copy's last moment to fail: the rows that it lacks are lost otherwise.
    ///
    /// # Errors
    ///
    /// The file system refuses, a queue has that name, or a copy lacks rows.
    pub(crate) fn rename_in(
        &self,
        statement: &mut Statement<'_>,
        from: &Path,
        to: &Path,
    ) -> Result<(), Fault> {
        if !self.is_there(from) {
            return Err(missing(from));
        }
        if let Some(Copy { old, new }) = self.copy_at(from)? {
            old.must_be_in(&new)?;
        }
        self.must_be_free(to)?;
        self.remember_unsayable(from);
        statement.names.extend([from.to_owned(), to.to_owned()]);
        let _claim = self.claim_now(&[from, to])?;
        self.set_head(from, |head| {
            let verb = head.note.map_or(Verb::Move, |note| note.verb);
            head.note = Some(statement.note(verb, head));
        })?;
        self.go(from, to)
    }

    /// Drops a table: it has no name then, and is there for its owners until the statement is settled.
    ///
    /// # Errors
    ///
    /// `Missing`, or the file system refuses.
    pub(crate) fn drop_in(&self, statement: &mut Statement<'_>, path: &Path) -> Result<(), Fault> {
        if !self.is_there(path) {
            return Err(missing(path));
        }
        let aside = self.aside(self.store.anchor(&anchor(path))?.id);
        statement.names.extend([path.to_owned(), aside.clone()]);
        let _claim = self.claim_now(&[path, &aside])?;
        self.set_head(path, |head| {
            head.note = Some(statement.note(Verb::Drop, head));
        })?;
        self.go(path, &aside)
    }

    /// What is noted in an anchor is there, under another name.
    fn go(&self, from: &Path, to: &Path) -> Result<(), Fault> {
        self.store.rename(&anchor(from), &anchor(to))?;
        self.known().rename(from, to);
        Ok(())
    }

    /// Where a table is that has no name. A schema's directory has to be empty when a server drops it.
    fn aside(&self, id: u128) -> PathBuf {
        self.datadir.join(place::ROOT).join(format!("{id:032x}"))
    }

    /// Whether no statement has left names, as a crash does.
    #[must_use]
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Acquire)
    }

    /// Says that statements have ended, and with them who settles these names does it for them.
    pub(crate) fn leave(&self, names: BTreeSet<PathBuf>) {
        if !names.is_empty() {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_settled.store(false, Ordering::Release);
            left.extend(names);
        }
    }

    /// Does with all tables that were left what the dictionary says. Who comes meanwhile waits.
    ///
    /// # Errors
    ///
    /// It cannot be asked, or the file system refuses: nothing is lost, and it goes on the next time.
    pub(crate) fn settle(&self, look_up: &LookUp<'_>) -> Result<(), Fault> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for path in left.iter().filter(|path| self.is_there(path)) {
            all.extend(self.unsettled(path, look_up)?);
        }
        // What a table is a copy of is needed first, and a name has to be free before another table gets it.
        for one in all.iter().filter(|one| one.place.is_some()) {
            self.succeed(one)?;
        }
        let is_gone = |one: &&Unsettled| one.place.is_none() && one.verb != Verb::Move;
        for one in all.iter().filter(is_gone) {
            let _claim = self.claim_now(&[&one.at])?;
            self.store.remove_rows(self.unname(&one.at)?);
        }
        for one in &mut all {
            if one.place.as_ref().is_some_and(|place| *place != one.at) {
                let aside = self.aside(one.id);
                self.step(&mut left, &mut one.at, &aside)?;
            }
        }
        for one in &mut all {
            if let Some(place) = one.place.take() {
                self.step(&mut left, &mut one.at, &place)?;
                self.set_head(&place, |head| head.note = None)?;
            }
        }
        self.known().leaving.retain(|name, _| !left.contains(name));
        left.clear();
        self.is_settled.store(true, Ordering::Release);
        drop(left);
        self.changed.notify_all();
        Ok(())
    }

    fn unsettled(&self, path: &Path, look_up: &LookUp<'_>) -> Result<Option<Unsettled>, Fault> {
        let found = self.store.anchor(&anchor(path))?;
        let Some(Note { verb, table }) = Head::of(&found.layout).note else {
            return Ok(None);
        };
        Ok(Some(Unsettled {
            at: path.to_owned(),
            id: found.id,
            verb,
            place: look_up(table, path)?,
        }))
    }

    /// If a table that stays is a copy, it takes over: what was removed in the old one since is removed, and owners
    /// own what they owned.
    fn succeed(&self, one: &Unsettled) -> Result<(), Fault> {
        if let Some(Copy { old, new }) = self.copy_at(&one.at)? {
            let done = old.hand_over(&new, || self.forget_origin(&one.at));
            // It was whole when it was renamed.
            if !matches!(done, Err(Error::NotCopied(_))) {
                done?;
            }
        }
        self.known().copies.remove(&one.at);
        Ok(())
    }

    /// Moves a table nearer to where it belongs.
    fn step(&self, left: &mut BTreeSet<PathBuf>, at: &mut PathBuf, to: &Path) -> Result<(), Fault> {
        if at == to {
            return Ok(());
        }
        let _claim = self.claim_now(&[at, to])?;
        self.must_be_free(to)?;
        left.insert(to.to_owned());
        self.go(at, to)?;
        *at = to.to_owned();
        Ok(())
    }

    /// Makes sure that a name which the dictionary gives to a queue is no other queue's, as may be where somebody has copied
    /// files: its rows would be lost.
    fn must_be_free(&self, path: &Path) -> Result<(), Fault> {
        match self.is_there(path) {
            false => Ok(()),
            true => Err(Fault::misuse(format!(
                "{} is a queue that the server's dictionary does not know: move that file elsewhere",
                anchor(path).display()
            ))),
        }
    }
}

impl Statement<'_> {
    /// A number that is known stays so.
    fn note(&self, verb: Verb, head: &Head) -> Note {
        let before = head.note.map_or(0, |note| note.table);
        let table = if self.table == 0 { before } else { self.table };
        Note { verb, table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        tables: Tables,
        names: BTreeSet<PathBuf>,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("shop")).unwrap();
        let tables = Tables::start(dir.path()).unwrap();
        Scene {
            dir,
            tables,
            names: BTreeSet::new(),
        }
    }

    impl Scene {
        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().join("shop").join(name)
        }

        /// A queue with a row, which the dictionary has had for long.
        fn filled(&self, name: &str) {
            self.tables.create(&self.at(name), b"0\0").unwrap();
            let table = self.tables.table(&self.at(name)).unwrap();
            table.append(vec![b"a".to_vec()], None).unwrap();
        }

        /// What a server does to the queue of number 31.
        fn does(&mut self, step: impl FnOnce(&Tables, &mut Statement<'_>)) {
            let mut names = std::mem::take(&mut self.names);
            let names_of = &mut names;
            step(
                &self.tables,
                &mut Statement {
                    names: names_of,
                    table: 31,
                },
            );
            self.names = names;
        }

        /// The statement has ended, or, `crashed`, a new server has begun. Then this is the name in the dictionary.
        fn ends(&mut self, is_crashed: bool, name: Option<&str>) {
            let names = std::mem::take(&mut self.names);
            if is_crashed {
                self.tables.close().unwrap();
                self.tables = Tables::start(self.dir.path()).unwrap();
            } else {
                self.tables.leave(names);
            }
            assert!(!self.tables.is_settled());
            let place = name.map(|name| self.at(name));
            let look_up = |table: u64, _: &Path| {
                assert_eq!(table, 31);
                Ok(place.clone())
            };
            self.tables.settle(&look_up).unwrap();
            assert!(self.tables.is_settled());
        }

        fn rows(&self, name: &str) -> Option<usize> {
            let table = self.tables.table(&self.at(name)).ok()?;
            Some(table.stats().rows)
        }

        /// Directories of rows, and anchors of tables without a name.
        fn kept(&self) -> usize {
            let root = self.dir.path().join(place::ROOT);
            std::fs::read_dir(root).unwrap().count()
        }
    }

    #[test]
    fn a_name_is_what_the_dictionary_says() {
        for is_crashed in [false, true] {
            for name in ["old", "new"] {
                let mut scene = scene();
                scene.filled("old");
                let (old, new) = (scene.at("old"), scene.at("new"));
                scene.does(|tables, statement| tables.rename_in(statement, &old, &new).unwrap());
                scene.ends(is_crashed, Some(name));
                assert_eq!(scene.rows(name), Some(1), "crashed: {is_crashed}");
                let other = if name == "old" { "new" } else { "old" };
                assert_eq!(scene.rows(other), None, "crashed: {is_crashed}");
                assert_eq!(scene.kept(), 1);
            }
        }
    }

    #[test]
    fn what_is_dropped_is_whole_until_the_dictionary_has_it_no_more() {
        for is_crashed in [false, true] {
            for (name, rows, kept) in [(Some("old"), Some(1), 1), (None, None, 0)] {
                let mut scene = scene();
                scene.filled("old");
                let old = scene.at("old");
                scene.does(|tables, statement| tables.drop_in(statement, &old).unwrap());
                assert!(!scene.tables.is_there(&old));
                scene.ends(is_crashed, name);
                assert_eq!(scene.rows("old"), rows, "crashed: {is_crashed}");
                assert_eq!(scene.kept(), kept, "crashed: {is_crashed}");
            }
        }
    }

    #[test]
    fn what_is_made_is_there_if_the_dictionary_has_it() {
        for is_crashed in [false, true] {
            for (name, rows, kept) in [(Some("new"), Some(0), 1), (None, None, 0)] {
                let mut scene = scene();
                let new = scene.at("new");
                scene.does(|tables, statement| {
                    tables.create_in(statement, &new, b"0\0").unwrap();
                });
                scene.ends(is_crashed, name);
                assert_eq!(scene.rows("new"), rows, "crashed: {is_crashed}");
                assert_eq!(scene.kept(), kept, "crashed: {is_crashed}");
            }
        }
    }

    #[test]
    fn what_was_only_moved_is_never_removed() {
        let mut scene = scene();
        scene.filled("old");
        let (old, new) = (scene.at("old"), scene.at("new"));
        scene.does(|tables, statement| tables.rename_in(statement, &old, &new).unwrap());
        scene.ends(true, None);
        assert_eq!(scene.rows("new"), Some(1));
    }

    #[test]
    fn what_the_dictionary_does_not_know_is_never_replaced() {
        let mut scene = scene();
        scene.filled("old");
        scene.filled("copied");
        let (old, copied) = (scene.at("old"), scene.at("copied"));
        scene.does(|tables, statement| {
            assert!(tables.create_in(statement, &copied, b"0\0").is_err());
            assert!(tables.rename_in(statement, &old, &copied).is_err());
            assert!(statement.names.is_empty());
        });
        assert_eq!(scene.rows("copied"), Some(1));
        assert_eq!(scene.rows("old"), Some(1));
    }

    #[test]
    fn a_dictionary_that_cannot_be_asked_is_asked_again() {
        let mut scene = scene();
        scene.filled("old");
        let old = scene.at("old");
        scene.does(|tables, statement| tables.drop_in(statement, &old).unwrap());
        let names = std::mem::take(&mut scene.names);
        scene.tables.leave(names);
        let refuses = |_: u64, _: &Path| Err(Fault::misuse("not now"));
        assert!(scene.tables.settle(&refuses).is_err());
        assert!(!scene.tables.is_settled());
        scene.ends(false, Some("old"));
        assert_eq!(scene.rows("old"), Some(1));
    }
}
