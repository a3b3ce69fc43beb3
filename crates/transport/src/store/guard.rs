//! What the other side may do to the repository: a database host that was taken over must not be
//! able to spoil the backups that were made before.

use evenkeel_repository::store::{Store, UNFINISHED};
use evenkeel_repository::{
    ARCHIVE_LOCK, BINLOGS, READER_LOCK, Succession, WRITER_LOCK, next_generation,
};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read, and note in the head what was proved.
    Read,
    /// Add generations; those that are complete stay as they are.
    Append,
    /// Add archived binary logs; everything that is there stays as it is.
    Logs,
    /// Send an image, and ask what of it is there; there is nothing else.
    Image,
}

/// Checks each step.
#[derive(Debug)]
pub(super) struct Guard {
    access: Access,
    /// Folders of generations that were complete when the session began, or got the lock.
    complete: Mutex<BTreeSet<String>>,
    /// The number of the next generation then: there is none above it to be made.
    next: Mutex<u32>,
    /// How often the session holds the lock of who changes the repository. Held while the head is
    /// replaced, so that the lock is not given back meanwhile.
    writing: Mutex<u32>,
}

const GENERATIONS: &str = "generations";
const HEAD: &str = "head";
/// Says which archived logs are not missing but forgotten.
const FORGOTTEN: &str = "forgotten";

impl Guard {
    pub(super) fn new(access: Access, store: &dyn Store) -> io::Result<Self> {
        let is_repository = access != Access::Image;
        let complete = || is_repository.then(|| complete(store)).transpose();
        let next = || is_repository.then(|| next(store)).transpose();
        Ok(Self {
            access,
            complete: Mutex::new(complete()?.unwrap_or_default()),
            next: Mutex::new(next()?.unwrap_or_default()),
            writing: Mutex::new(0),
        })
    }

    /// A name that leads nowhere but into the repository.
    pub(super) fn name(&self, name: &str) -> io::Result<()> {
        let clean = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        if name.is_empty() || name.split('/').all(clean) && name.split('/').count() <= 4 {
            Ok(())
        } else {
            Err(denied(name))
        }
    }

    /// Whether an object may be opened.
    pub(super) fn open(&self, name: &str) -> io::Result<()> {
        self.name(name)?;
        allow(self.access != Access::Image || is_asked(name), name)
    }

    /// Whether there is anything of that kind: folders, locks, objects that may go.
    pub(super) fn is_of_a_repository(&self, name: &str) -> io::Result<()> {
        allow(self.access != Access::Image, name)
    }

    /// Whether an object may be made, or replaced.
    pub(super) fn create(&self, name: &str, replace: bool) -> io::Result<()> {
        self.name(name)?;
        self.appends_under_lock()?;
        // A name that the store gives to what is not finished: two would be one file.
        let unfinished = name.ends_with(UNFINISHED);
        let fine = match (self.access, replace) {
            _ if unfinished => false,
            (Access::Read | Access::Append, true) => name == HEAD,
            (Access::Read, false) | (Access::Logs | Access::Image, true) => false,
            (Access::Image, false) => is_sent(name),
            // What was forgotten is not for an archiver to say.
            (Access::Logs, false) => is_log(name) && depth(name) == 4 && leaf(name) != FORGOTTEN,
            (Access::Append, false) => {
                !self.is_complete(name) && !is_log(name) && self.is_numbered(name)
            }
        };
        allow(fine, name)
    }

    /// What the object's content may change, of one whose content is looked at.
    pub(super) fn succession(&self, name: &str) -> Option<Succession> {
        match self.access {
            Access::Read if name == HEAD => Some(Succession::Proofs),
            Access::Append if name == HEAD => Some(Succession::Generation),
            _ => None,
        }
    }

    /// Notes that the session got the lock of who changes the repository. What others completed before is
    /// no longer this session's to change.
    pub(super) fn begin_writing(&self, store: &dyn Store) -> io::Result<()> {
        *lock(&self.complete) = complete(store)?;
        *lock(&self.next) = next(store)?;
        *lock(&self.writing) += 1;
        Ok(())
    }

    /// Notes that it is about to give the lock back.
    pub(super) fn end_writing(&self) {
        *lock(&self.writing) -= 1;
    }

    /// Keeps the lock, without which nobody changes what others rely on, until what is returned is dropped.
    pub(super) fn writing(&self) -> io::Result<MutexGuard<'_, u32>> {
        let writing = lock(&self.writing);
        match *writing > 0 {
            true => Ok(writing),
            false => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the other host tried to change the repository without its lock",
            )),
        }
    }

    /// Who adds generations does so under the lock.
    fn appends_under_lock(&self) -> io::Result<()> {
        match self.access {
            Access::Append => self.writing().map(drop),
            Access::Read | Access::Logs | Access::Image => Ok(()),
        }
    }

    /// Whether there is a lock of this name to take.
    pub(super) fn lock(&self, name: &str) -> io::Result<()> {
        self.name(name)?;
        self.is_of_a_repository(name)?;
        let of_archive = is_log(name) && depth(name) == 3 && leaf(name) == ARCHIVE_LOCK;
        allow(
            [WRITER_LOCK, READER_LOCK].contains(&name) || of_archive,
            name,
        )
    }

    /// Whether an object or folder may be removed.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.name(name)?;
        self.is_of_a_repository(name)?;
        if self.access != Access::Logs {
            drop(self.writing()?);
        }
        let leaf = leaf(name);
        if self.access == Access::Logs {
            let fine = is_log(name) && depth(name) == 4 && leaf.ends_with(".tmp");
            return allow(fine, name);
        }
        let unfinished = leaf == "pending" || leaf.ends_with(".tmp");
        let inside = name.starts_with("generations/");
        let fine =
            self.access == Access::Append && (unfinished || inside && !self.is_complete(name));
        allow((fine || leaf == "head.tmp") && !is_log(name), name)
    }

    pub(super) fn make_folder(&self, name: &str) -> io::Result<()> {
        self.name(name)?;
        if !name.is_empty() {
            self.appends_under_lock()?;
        }
        let fine = match self.access {
            Access::Read | Access::Image => false,
            Access::Append => !is_log(name) && self.is_numbered(name),
            Access::Logs => is_log(name) && depth(name) <= 3,
        };
        allow(fine, name)
    }

    /// Whether it is not in the folder of a generation, or in that of one that there is or comes next: whoever
    /// takes the highest number leaves none for anybody.
    fn is_numbered(&self, name: &str) -> bool {
        let mut parts = name.split('/');
        if parts.next() != Some(GENERATIONS) {
            return true;
        }
        let Some(folder) = parts.next() else {
            return true;
        };
        let number = folder.parse::<u32>().ok();
        number.is_some_and(|number| number.to_string() == folder && number <= *lock(&self.next))
    }

    fn is_complete(&self, name: &str) -> bool {
        let folder: Vec<&str> = name.splitn(3, '/').take(2).collect();
        lock(&self.complete).contains(&folder.join("/"))
    }
}

/// What another thread was at when it panicked counts all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of the next generation.
fn next(store: &dyn Store) -> io::Result<u32> {
    let next = next_generation(store).map_err(|error| io::Error::other(error.chain()))?;
    Ok(next.unwrap_or(0))
}

/// Returns the folders of generations that are complete.
fn complete(store: &dyn Store) -> io::Result<BTreeSet<String>> {
    let mut complete = BTreeSet::new();
    let folders = match store.list(GENERATIONS) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let folders = folders.into_iter().filter(|one| one.is_folder);
    let paths: Vec<_> = folders
        .map(|folder| format!("{GENERATIONS}/{}", folder.name))
        .collect();
    for (listed, path) in store.list_all(&paths).into_iter().zip(paths) {
        let inside = match listed {
            // Object stores may continue listing a folder when nothing is in it any more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        if inside.iter().any(|one| one.name == "manifest") {
            complete.insert(path);
        }
    }
    Ok(complete)
}

fn leaf(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

fn depth(name: &str) -> usize {
    name.split('/').count()
}

/// Archived binary logs come from an archiver, never with a backup.
fn is_log(name: &str) -> bool {
    name.split('/').next() == Some(BINLOGS)
}

/// What a sender makes of an image.
fn is_sent(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let pack = name.strip_prefix("put/");
    ["list", "end"].contains(&name) || pack.is_some_and(is_number)
}

/// What it asks.
fn is_asked(name: &str) -> bool {
    let is_numbers = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    name == "here" || name.strip_prefix("have/").is_some_and(is_numbers)
}

fn allow(fine: bool, name: &str) -> io::Result<()> {
    if fine { Ok(()) } else { Err(denied(name)) }
}

fn denied(name: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the other host may not do that to '{name}' of this repository"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_repository::store::{Existing, LocalStore};

    fn guard(access: Access) -> (tempfile::TempDir, Guard) {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        for folder in ["generations", "generations/1", "generations/2"] {
            store.make_folder(folder).unwrap();
        }
        let made = store
            .create("generations/1/manifest", Existing::Refuse)
            .unwrap();
        made.finish().unwrap();
        let guard = Guard::new(access, &store).unwrap();
        guard.begin_writing(&store).unwrap();
        (dir, guard)
    }

    #[test]
    fn nothing_is_added_or_removed_without_the_lock() {
        let (dir, guard) = guard(Access::Append);
        assert!(guard.create("generations/3/maps", false).is_ok());
        assert!(guard.remove("generations/2/maps").is_ok());
        assert!(guard.make_folder("generations/3").is_ok());
        guard.end_writing();
        assert!(guard.create("generations/3/maps", false).is_err());
        assert!(guard.remove("generations/2/maps").is_err());
        assert!(guard.make_folder("generations/3").is_err());
        assert!(guard.make_folder("").is_ok());
        // What somebody else completed meanwhile.
        let store = LocalStore::new(dir.path());
        let made = store.create("generations/2/manifest", Existing::Refuse);
        made.unwrap().finish().unwrap();
        guard.begin_writing(&store).unwrap();
        assert!(guard.remove("generations/2/maps").is_err());
    }

    #[test]
    fn names_of_what_is_not_finished_are_the_stores() {
        for access in [Access::Read, Access::Append, Access::Logs] {
            let (_dir, guard) = guard(access);
            for name in ["head.tmp", "generations/3/maps.tmp", "binlogs/s/t/x.tmp"] {
                assert!(guard.create(name, false).is_err(), "{name}");
                assert!(guard.create(name, true).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn a_complete_generation_stays_and_a_pending_one_may_go() {
        let (_dir, guard) = guard(Access::Append);
        assert!(guard.create("generations/2/pack-0000", false).is_ok());
        assert!(guard.create("generations/3/pending", false).is_ok());
        assert!(guard.remove("generations/2/pack-0000").is_ok());
        assert!(guard.remove("generations/1/pending").is_ok());
        assert!(guard.create("head", true).is_ok());
        assert!(guard.create("generations/1/pack-0009", false).is_err());
        assert!(guard.create("generations/2/manifest", true).is_err());
        for name in [
            "generations/1/manifest",
            "generations/1/pack-0000",
            "generations/1",
            "repository",
            "head",
        ] {
            assert!(guard.remove(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_generation_has_the_next_number_and_no_other() {
        let (dir, guard) = guard(Access::Append);
        for fine in ["generations/3", "generations"] {
            assert!(guard.make_folder(fine).is_ok(), "{fine}");
        }
        let wrong = [
            "4",
            "4294967295",
            "18446744073709551615",
            "03",
            "+3",
            "x",
            "",
        ];
        for number in wrong {
            let folder = format!("generations/{number}");
            assert!(guard.make_folder(&folder).is_err(), "{folder}");
            // Some stores make folders of the names of what is in them.
            assert!(
                guard.create(&format!("{folder}/pending"), false).is_err(),
                "{folder}"
            );
        }
        // One that somebody made before stands in nobody's way, and does not make room.
        std::fs::create_dir(dir.path().join("generations/4294967295")).unwrap();
        let store = LocalStore::new(dir.path());
        guard.begin_writing(&store).unwrap();
        assert!(guard.make_folder("generations/3").is_ok());
        assert!(guard.make_folder("generations/4").is_err());
    }

    #[test]
    fn binary_logs_do_not_come_with_a_backup() {
        let (_dir, guard) = guard(Access::Append);
        assert!(guard.name("binlogs/s/t/binlog.000001.0-9").is_ok());
        for name in ["binlogs/s/t/binlog.000001.0-9", "binlogs/s/t/x.tmp"] {
            assert!(guard.create(name, false).is_err(), "{name}");
            assert!(guard.remove(name).is_err(), "{name}");
            assert!(guard.make_folder(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_archiver_adds_binary_logs_and_nothing_else() {
        let (_dir, guard) = guard(Access::Logs);
        let segment = "binlogs/s/t/binlog.000001.0-9";
        assert!(guard.create(segment, false).is_ok());
        assert!(guard.remove(&format!("{segment}.tmp")).is_ok());
        for folder in ["binlogs", "binlogs/s", "binlogs/s/t"] {
            assert!(guard.make_folder(folder).is_ok(), "{folder}");
            assert!(guard.remove(folder).is_err(), "{folder}");
        }
        assert!(guard.create(segment, true).is_err());
        assert!(guard.remove(segment).is_err());
        for name in [
            "binlogs/s/t/forgotten",
            "binlogs/s/archive",
            "generations/3/pending",
            "generations/1/pack-0009",
            "head",
            "head.tmp",
            "repository",
            "keys",
        ] {
            assert!(guard.create(name, false).is_err(), "{name}");
            assert!(guard.create(name, true).is_err(), "{name}");
            assert!(guard.remove(name).is_err(), "{name}");
        }
        assert!(guard.make_folder("generations/3").is_err());
    }

    #[test]
    fn a_reader_changes_nothing_but_the_head() {
        let (_dir, guard) = guard(Access::Read);
        assert!(guard.create("head", true).is_ok());
        assert!(guard.create("generations/3/pending", false).is_err());
        assert!(guard.remove("generations/2/pack-0000").is_err());
        assert!(guard.make_folder("generations/3").is_err());
    }

    #[test]
    fn who_sends_an_image_does_that_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let guard = Guard::new(Access::Image, &LocalStore::new(dir.path())).unwrap();
        for name in ["list", "end", "put/0", "put/18446744073709551615"] {
            assert!(guard.create(name, false).is_ok(), "{name}");
            assert!(guard.create(name, true).is_err(), "{name}");
            assert!(guard.open(name).is_err(), "{name}");
        }
        for name in ["here", "have/0-0", "have/12-345"] {
            assert!(guard.open(name).is_ok(), "{name}");
            assert!(guard.create(name, false).is_err(), "{name}");
        }
        for name in [
            "put",
            "put/",
            "put/x",
            "put/1/2",
            "put/1.tmp",
            "have/a-b",
            "have/../x",
            "head",
            "",
        ] {
            assert!(guard.create(name, false).is_err(), "{name}");
            assert!(guard.open(name).is_err(), "{name}");
            assert!(guard.remove(name).is_err(), "{name}");
            assert!(guard.make_folder(name).is_err(), "{name}");
            assert!(guard.lock(name).is_err(), "{name}");
            assert!(guard.is_of_a_repository(name).is_err(), "{name}");
        }
        assert!(guard.lock("writer.lock").is_err());
    }

    #[test]
    fn locks_are_those_that_there_are() {
        for access in [Access::Read, Access::Append, Access::Logs] {
            let (_dir, guard) = guard(access);
            for name in ["writer.lock", "reader.lock", "binlogs/s/archive.lock"] {
                assert!(guard.lock(name).is_ok(), "{name}");
            }
            for name in [
                "lock",
                "generations/1/removing",
                "binlogs/archive.lock",
                "head",
                "",
            ] {
                assert!(guard.lock(name).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn no_name_leads_out_of_the_repository() {
        let (_dir, guard) = guard(Access::Append);
        for name in [
            "/etc/passwd",
            "../x",
            "generations/../../x",
            "a//b",
            "a/b/c/d/e",
            "a\0b",
            "generations/1\n",
        ] {
            assert!(guard.name(name).is_err(), "{name}");
        }
        assert!(guard.name("generations/12/pack-0002.1.tmp").is_ok());
    }
}
