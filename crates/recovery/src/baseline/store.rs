//! The directory in which the baselines of one data directory are kept.
//!
//! ```text
//! .evenkeel-baselines-0123456789abcdef/   beside the data directory, on its filesystem;
//! .evenkeel-baselines/                    inside it, when it is a mount point
//!     EVENKEEL-BASELINES                  says whose it is, and of which data directory
//!     lock                                held (flock) by the one run there may be
//!     rollback.json                       a rollback that is continuing: see `journal`
//!     kept/NAME/baseline.json             what is known of it
//!     kept/NAME/files/                    its files: a tree or a subvolume
//!     kept/NAME/stamps                    of a copy: see `stamps`
//!     work/                               what is being made or thrown away
//! ```
//!
//! A baseline gets its name in one rename when it is whole and on disk, and loses it in one. What is
//! in `work` belongs to the run that has the lock, or to one that died.

use super::{Method, tree};
use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::{Context, Error, ErrorKind, Result, disk};
use evenkeel_snapshot::filesystem::{Identity, stable_hash};
use jiff::Timestamp;
use rustix::fs::{CWD, RenameFlags};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MARKER: &str = "EVENKEEL-BASELINES";
const MAGIC: &str = "evenkeel baselines, format 1\n";
const LOCK: &str = "lock";
const KEPT: &str = "kept";
const WORK: &str = "work";
const FACTS: &str = "baseline.json";
/// The files of a baseline.
pub(super) const FILES: &str = "files";
const FORMAT: u32 = 1;
const NAME_MAX: usize = 64;

/// A baseline, as it is listed and kept in `baseline.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Always 1 so far.
    pub format: u32,
    /// Its name.
    pub name: String,
    /// When it was saved.
    pub saved: Timestamp,
    /// How it is kept.
    pub method: Method,
    /// How many files it has; 0 of a snapshot, which nobody counted.
    pub files: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Whether a server ran on them: then one that starts on them recovers as after a crash.
    pub hot: bool,
    /// The server's version, when it ran.
    pub server_version: Option<String>,
    /// Whether the names of its files have a mark.
    pub marked: bool,
}

/// Where the baselines of a data directory are.
#[derive(Debug)]
pub(super) struct BaselineDirectory {
    /// As it is shown; what is in it is reached through `dir`.
    pub(super) path: PathBuf,
    /// Inside the data directory.
    pub(super) inside: bool,
    /// When it is there, and nobody else's: whoever could write into it could have us run statements.
    door: Option<OwnDirectory>,
}

/// That directory, locked.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) place: BaselineDirectory,
    pub(super) datadir: PathBuf,
    lock: File,
}

impl BaselineDirectory {
    /// Finds it. `datadir` is without symbolic links.
    pub(super) fn of(datadir: &Path) -> Result<Self> {
        let parent = datadir.parent().ok_or_else(|| {
            Error::refused("the root directory is not a data directory to roll back")
        })?;
        let inside = Identity::of(parent)? != Identity::of(datadir)? || is_mount_point(datadir)?;
        let path = match inside {
            true => datadir.join(".evenkeel-baselines"),
            false => parent.join(format!(
                ".evenkeel-baselines-{:016x}",
                stable_hash(datadir.as_os_str().as_bytes())
            )),
        };
        // One that is there and not ours must not pass for none: a rollback may be half done in it.
        let is_there = path.symlink_metadata().is_ok();
        let door = is_there.then(|| OwnDirectory::open(&path)).transpose()?;
        Ok(Self { path, inside, door })
    }

    /// Returns whether there is one.
    pub(super) fn exists(&self) -> bool {
        self.door.is_some()
            && fs::read(self.dir().join(MARKER))
                .is_ok_and(|text| text.starts_with(MAGIC.as_bytes()))
    }

    /// Returns what leads into it, whatever is at its path by now.
    pub(super) fn dir(&self) -> PathBuf {
        match &self.door {
            Some(door) => door.anchor(),
            None => self.path.clone(),
        }
    }

    /// Returns the baselines, the oldest first; those that cannot be read are left out.
    pub(super) fn list(&self) -> Result<Vec<Baseline>> {
        let kept = self.dir().join(KEPT);
        if !self.exists() || !kept.exists() {
            return Ok(Vec::new());
        }
        let entries = tree::entries(&kept)?;
        let mut found: Vec<Baseline> = entries
            .iter()
            .filter_map(|entry| read_facts(&entry.path()))
            .collect();
        found.sort_by(|a, b| (a.saved, &a.name).cmp(&(b.saved, &b.name)));
        Ok(found)
    }

    /// Returns the baseline of that name.
    pub(super) fn find(&self, name: &str) -> Result<Baseline> {
        check_name(name)?;
        if let Some(found) = read_facts(&self.kept(name)).filter(|_| self.exists()) {
            return Ok(found);
        }
        let names: Vec<String> = self.list()?.into_iter().map(|one| one.name).collect();
        let error = Error::refused(format!("there is no baseline '{name}'"));
        Err(match names.is_empty() {
            true => error.hint(format!("create one: evenkeel baseline save {name}")),
            false => error.hint(format!("there are: {}", names.join(", "))),
        })
    }

    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.dir().join(KEPT).join(name)
    }

    /// Where something that is being made or thrown away is.
    pub(super) fn work(&self, name: &str) -> PathBuf {
        self.dir().join(WORK).join(name)
    }
}

impl Store {
    /// Makes it if needed, and locks it. `Busy` when another run has it.
    pub(super) fn open(datadir: &Path) -> Result<Self> {
        let mut place = BaselineDirectory::of(datadir)?;
        place.door = Some(make(&place.path, datadir)?);
        let path = place.dir().join(LOCK);
        let failed = || format!("failed to lock {}", shown(&path).display());
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .context(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!(
                        "another run is using the baselines of {}",
                        datadir.display()
                    ),
                )
                .hint("wait until it is done"));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error).context(failed),
        }
        for name in [KEPT, WORK] {
            make_directory(&place.dir().join(name))?;
        }
        Ok(Self {
            place,
            datadir: datadir.to_owned(),
            lock,
        })
    }

    /// Deletes all that is in `work`.
    pub(super) fn clear_work(&self) -> Result<()> {
        for entry in tree::entries(&self.place.dir().join(WORK))? {
            let path = entry.path();
            // A baseline on its way in or out may hold a subvolume.
            if path.join(FILES).exists() {
                tree::remove(&path.join(FILES))?;
            }
            tree::remove(&path)?;
        }
        Ok(())
    }

    /// Writes what is known of a baseline that is being made.
    pub(super) fn write_facts(&self, unfinished: &Path, facts: &Baseline) -> Result<()> {
        write_json(&unfinished.join(FACTS), facts)
    }

    /// Gives what is whole its name; one that had it before is deleted.
    pub(super) fn name(&self, unfinished: &Path, name: &str) -> Result<()> {
        let path = self.place.kept(name);
        let failed = || format!("failed to move the new files to {}", shown(&path).display());
        let swap = |flags| rustix::fs::renameat_with(CWD, unfinished, CWD, &path, flags);
        match swap(RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => fs::rename(unfinished, &path).context(failed)?,
            Err(errno) => return Err(io::Error::from(errno)).context(failed),
        }
        self.settle()?;
        fail::fail_point!("baseline::named");
        self.clear_work()
    }

    /// Takes a baseline's name away, then deletes it.
    pub(super) fn unname(&self, name: &str) -> Result<()> {
        let path = self.place.kept(name);
        fs::rename(&path, self.place.work("dropped"))
            .context(|| format!("failed to drop {}", shown(&path).display()))?;
        self.settle()?;
        fail::fail_point!("baseline::unnamed");
        self.clear_work()
    }

    fn settle(&self) -> Result<()> {
        [KEPT, WORK]
            .iter()
            .try_for_each(|name| sync_directory(&self.place.dir().join(name)))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Said aloud: closing is not enough while a child that is just starting has a copy of it.
        let _ = self.lock.unlock();
    }
}

impl Baseline {
    /// Describes a baseline that is saved now.
    pub(super) fn now(name: &str, method: Method, marked: bool) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            saved: Timestamp::now(),
            method,
            files: 0,
            bytes: 0,
            hot: false,
            server_version: None,
            marked,
        }
    }
}

/// Refuses names that could lead astray.
pub(super) fn check_name(name: &str) -> Result<()> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('.');
    if fits && name.bytes().all(sound) {
        return Ok(());
    }
    Err(
        Error::usage(format!("'{name}' is not a name for a baseline")).hint(
            "use up to 64 letters, digits, dashes, underscores and dots, and do not start with a dot",
        ),
    )
}

fn make(dir: &Path, datadir: &Path) -> Result<OwnDirectory> {
    make_directory(dir).map_err(|error| {
        error.hint("run as root: baselines lie on the data directory's own filesystem")
    })?;
    let door = OwnDirectory::open(dir)?;
    let anchor = door.anchor();
    let marker = anchor.join(MARKER);
    let mut text = MAGIC.as_bytes().to_vec();
    if fs::read(&marker).is_ok_and(|found| found.starts_with(&text)) {
        return Ok(door);
    }
    let others = tree::entries(&anchor)?;
    if others.iter().any(|entry| entry.path() != marker) {
        return Err(Error::refused(format!(
            "evenkeel did not create the directory {}",
            dir.display()
        ))
        .hint("move it away"));
    }
    text.extend_from_slice(datadir.as_os_str().as_bytes());
    text.push(b'\n');
    write_synced(&marker, &text)
        .context(|| format!("failed to write {}", dir.join(MARKER).display()))?;
    sync_directory(&anchor)?;
    Ok(door)
}

fn make_directory(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(error).context(|| format!("failed to create {}", shown(path).display()))
        }
        _ => Ok(()),
    }
}

fn read_facts(baseline: &Path) -> Option<Baseline> {
    let text = fs::read(baseline.join(FACTS)).ok()?;
    serde_json::from_slice(&text)
        .ok()
        .filter(|facts: &Baseline| facts.format == FORMAT)
}

/// Writes a document in one step, on disk when it returns. Only its owner can read it.
pub(super) fn write_json<T: Serialize>(path: &Path, document: &T) -> Result<()> {
    let failed = || format!("failed to write {}", shown(path).display());
    let unfinished = path.with_extension("new");
    let text = serde_json::to_vec_pretty(document).context(failed)?;
    write_synced(&unfinished, &text)
        .and_then(|()| fs::rename(&unfinished, path))
        .context(failed)?;
    path.parent().map_or(Ok(()), sync_directory)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Brings the names in a directory to disk.
pub(super) fn sync_directory(directory: &Path) -> Result<()> {
    disk::sync_directory(directory)
        .context(|| format!("failed to sync {}", shown(directory).display()))
}

/// Whether something is mounted on a directory, be it another directory of the same filesystem.
fn is_mount_point(directory: &Path) -> Result<bool> {
    let mounts = fs::read("/proc/self/mountinfo").context(|| "failed to read the mounts")?;
    Ok(mounts
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .any(|mount| unescaped(mount) == directory.as_os_str()))
}

/// Turns `\040` and the like into what they stand for.
fn unescaped(text: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for name in ["before-upgrade", "a", "2026.11_x"] {
            check_name(name).unwrap();
        }
        for name in ["", ".", "..", ".x", "a/b", "a b", "ä"] {
            assert_eq!(check_name(name).unwrap_err().kind(), ErrorKind::Usage);
        }
        assert!(check_name(&"x".repeat(65)).is_err());
    }

    #[test]
    fn mount_points_are_known_by_their_escaped_names() {
        assert_eq!(unescaped(b"/a\\040b\\134c"), OsString::from("/a b\\c"));
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        assert!(!is_mount_point(Path::new("/proc/self")).unwrap());
    }

    #[test]
    fn one_run_at_a_time_and_what_it_left_goes() {
        let dir = tempfile::tempdir().unwrap();
        let datadir = dir.path().canonicalize().unwrap().join("data");
        fs::create_dir(&datadir).unwrap();
        let store = Store::open(&datadir).unwrap();
        assert_eq!(Store::open(&datadir).unwrap_err().kind(), ErrorKind::Busy);
        let work = store.place.work("new");
        fs::create_dir(&work).unwrap();
        store
            .write_facts(&work, &Baseline::now("one", Method::Copy, false))
            .unwrap();
        store.name(&work, "one").unwrap();
        fs::create_dir_all(work.join("files/x")).unwrap();
        store.clear_work().unwrap();
        assert!(!work.exists());
        assert_eq!(store.place.list().unwrap().len(), 1);
        assert!(store.place.find("two").unwrap_err().hints()[0].contains("one"));
        store.unname("one").unwrap();
        assert_eq!(store.place.list().unwrap(), []);
    }

    /// A journal of a rollback names statements to run and a server to stop.
    #[test]
    fn what_another_user_made_is_refused() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give a directory away"
        );
        let dir = tempfile::tempdir().unwrap();
        let datadir = dir.path().canonicalize().unwrap().join("data");
        fs::create_dir(&datadir).unwrap();
        drop(Store::open(&datadir).unwrap());
        let place = BaselineDirectory::of(&datadir).unwrap();
        assert!(place.exists());
        std::os::unix::fs::chown(&place.path, Some(4242), None).unwrap();
        for error in [
            BaselineDirectory::of(&datadir).unwrap_err(),
            Store::open(&datadir).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains("another user"), "{error}");
        }
    }

    #[test]
    fn a_strangers_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let datadir = dir.path().canonicalize().unwrap().join("data");
        fs::create_dir(&datadir).unwrap();
        let place = BaselineDirectory::of(&datadir).unwrap();
        assert!(!place.inside);
        fs::create_dir_all(place.dir().join("precious")).unwrap();
        assert_eq!(
            Store::open(&datadir).unwrap_err().kind(),
            ErrorKind::Refused
        );
        assert!(place.dir().join("precious").exists());
    }
}
