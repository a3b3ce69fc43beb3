//! Whose a scratch directory is: claimed before anything is put there, and recognized by a marker
//! afterwards.

use super::map;
use evenkeel_op::boot::boot_id;
use evenkeel_op::disk::remove_any;
use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, Mode};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything of ours is below this.
const CONTROL: &str = ".evenkeel-mount";
/// What the mount shows has the modes that it had; the way there is closed.
const CLOSED: u32 = 0o700;
const SHOWN: Mode = Mode::from_raw_mode(0o755);
const TITLE: &str = "evenkeel mount scratch 1";

/// Whose a scratch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// What its files stand for: no other origin may complete them.
    pub of: String,
    /// Whether it stays when it is not shown any more.
    pub kept: bool,
}

/// How far a scratch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScratchState {
    /// Files are being laid out.
    Making,
    /// It is shown, or was when its process was killed.
    Shown,
    /// It was put away, everything synced.
    Rests,
    /// It is whole, and is becoming an ordinary directory.
    Settling,
}

const STATES: [(ScratchState, &str); 4] = [
    (ScratchState::Making, "making"),
    (ScratchState::Shown, "shown"),
    (ScratchState::Rests, "rests"),
    (ScratchState::Settling, "settling"),
];

/// A scratch directory that is ours alone.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
    /// What is in it is the server's account's: nobody gets there but through the mount.
    control: Arc<OwnDirectory>,
    owner: Owner,
    table: Arc<File>,
    /// How long the table is.
    table_end: u64,
    _lock: File,
}

/// What was found in a directory that was claimed.
#[derive(Debug)]
pub enum Claim {
    /// Nothing, or what may go: files must be laid out.
    Fresh(Scratch),
    /// The scratch of the same owner, to resume.
    Resumed(Scratch),
}

impl Scratch {
    /// Claims a directory, which is empty or was a scratch; it is made if need be. A scratch that
    /// should be thrown away is. One that should be kept is only given to its owner.
    pub fn claim(dir: &Path, owner: Owner) -> Result<Claim> {
        let dir =
            std::path::absolute(dir).context(|| format!("failed to resolve {}", dir.display()))?;
        fs::create_dir_all(&dir).context(|| format!("failed to create {}", dir.display()))?;
        if !dir.join(CONTROL).exists() {
            refuse_strangers(&dir)?;
        }
        let opened = OwnDirectory::make(&dir.join(CONTROL), CLOSED)?;
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(CLOSED))
            .context(|| format!("failed to close {}", opened.path().display()))?;
        let control = opened.anchor();
        let lock = take_lock(&control)?;
        let found = read_marker(&control);
        let resumed = match &found {
            Some((_, ScratchState::Settling, _)) => {
                settle_files(&dir, &control)?;
                return Err(full_already(&dir));
            }
            Some((was, state, boot)) if was.kept && *state != ScratchState::Making => {
                refuse_others(&dir, was, &owner, *state, boot)?;
                true
            }
            _ => false,
        };
        if !resumed {
            clear(&control)?;
            // The top of what is shown: to be entered by all, whatever the umask is.
            fs::create_dir_all(control.join("files"))
                .and_then(|()| rustix::fs::chmod(control.join("files"), SHOWN).map_err(Into::into))
                .context(|| "failed to create a scratch")?;
        }
        let table = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(control.join("maps"))
            .context(|| format!("failed to write in {}", shown(&control).display()))?;
        let table_end = table.metadata().context(|| "failed to size a map")?.len();
        let scratch = Self {
            dir,
            control: Arc::new(opened),
            owner,
            table: Arc::new(table),
            table_end,
            _lock: lock,
        };
        Ok(match resumed {
            true => {
                scratch.mark(ScratchState::Shown)?;
                Claim::Resumed(scratch)
            }
            false => {
                scratch.mark(ScratchState::Making)?;
                Claim::Fresh(scratch)
            }
        })
    }

    /// The way there, whatever is put in its place.
    fn control(&self) -> PathBuf {
        self.control.anchor()
    }

    /// Returns the directory in which the files should be laid out.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.control().join("files")
    }

    /// Keeps the way to the files open.
    pub(super) fn open(&self) -> Arc<OwnDirectory> {
        Arc::clone(&self.control)
    }

    /// Returns the directory that was claimed.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn table(&self) -> Arc<File> {
        Arc::clone(&self.table)
    }

    /// Says that the file at `path`, which has its length already and nothing else, stands for a
    /// file of the origin of `size` bytes.
    pub fn adopt(&mut self, path: &Path, origin: u64, size: u64) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let at = self.table_end;
        self.table_end += map::granules(size);
        self.table
            .set_len(self.table_end)
            .context(|| "failed to create a map")?;
        map::adopt(path, at, origin, size).map_err(|error| {
            let place = path.display();
            let failed = Error::failed(format!("failed to mark {place} as missing"));
            failed.because(error).hint(
                "a scratch needs a filesystem with extended attributes: ext4, XFS, btrfs, tmpfs",
            )
        })
    }

    /// Says that all files are laid out: from now on what is in them may be precious.
    pub fn ready(&self) -> Result<()> {
        self.mark(ScratchState::Shown)
    }

    /// Puts it away: throws it away, or keeps it until it is claimed again.
    pub fn put_away(self) -> Result<()> {
        if self.owner.kept {
            sync(&self.dir)?;
            return self.mark(ScratchState::Rests);
        }
        remove_control(&self.dir, &self.control())?;
        // A directory that was there before, or that holds anything else, stays.
        let _ = fs::remove_dir(&self.dir);
        Ok(())
    }

    /// Makes a scratch that is whole an ordinary directory: its files move up, `data` last.
    pub fn settle(self) -> Result<()> {
        sync(&self.dir)?;
        self.mark(ScratchState::Settling)?;
        settle_files(&self.dir, &self.control())
    }

    fn mark(&self, state: ScratchState) -> Result<()> {
        let Owner { of, kept } = &self.owner;
        let name = STATES.iter().find(|(one, _)| *one == state);
        let name = name.map_or("", |(_, name)| name);
        let boot = boot_id().unwrap_or_default();
        let text = format!("{TITLE}\n{of}\n{kept}\n{name}\n{boot}\n");
        let control = self.control();
        let write = || -> io::Result<()> {
            let new = control.join("marker.new");
            fs::write(&new, text)?;
            File::open(&new)?.sync_all()?;
            fs::rename(new, control.join("marker"))
        };
        write().context(|| format!("failed to write in {}", shown(&control).display()))
    }
}

fn read_marker(control: &Path) -> Option<(Owner, ScratchState, String)> {
    let text = fs::read_to_string(control.join("marker")).ok()?;
    let mut lines = text.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let of = lines.next()?.to_owned();
    let kept = lines.next()? == "true";
    let name = lines.next()?;
    let state = STATES.iter().find(|(_, known)| *known == name)?.0;
    Some((Owner { of, kept }, state, lines.next()?.to_owned()))
}

fn take_lock(control: &Path) -> Result<File> {
    let path = control.join("lock");
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .context(|| format!("failed to write in {}", shown(control).display()))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
            ErrorKind::Busy,
            format!("{} is in use by another mount", shown(control).display()),
        )
        .hint("name another scratch directory")),
        Err(error) => Err(error).context(|| format!("failed to lock {}", shown(&path).display())),
    }
}

fn refuse_strangers(dir: &Path) -> Result<()> {
    let entries = fs::read_dir(dir).context(|| format!("failed to read {}", dir.display()))?;
    for entry in entries.flatten() {
        if entry.file_name() != "lost+found" {
            let place = dir.display();
            let name = entry.file_name();
            return Err(Error::usage(format!(
                "{place} is not empty (it holds {})",
                name.display()
            ))
            .hint("give a directory that does not exist, or an empty one"));
        }
    }
    Ok(())
}

/// What somebody wrote into a scratch that should be kept is not thrown away because of another.
fn refuse_others(
    dir: &Path,
    was: &Owner,
    now: &Owner,
    state: ScratchState,
    boot: &str,
) -> Result<()> {
    let place = dir.display();
    let away = format!("if it is not needed any more: rm -r {place}");
    if was.of != now.of || !now.kept {
        return Err(Error::refused(format!(
            "{place} holds writes to {}, and must be kept",
            was.of
        ))
        .hint("name another scratch directory, or mount that one again with the same options")
        .hint(away));
    }
    if state != ScratchState::Rests && boot != boot_id().unwrap_or_default() {
        return Err(Error::refused(format!(
            "the host went down while {place} was mounted: it is not known which writes reached \
             the disk"
        ))
        .hint(away));
    }
    Ok(())
}

fn full_already(dir: &Path) -> Error {
    Error::refused(format!(
        "{} is already a full restore and needs no mount",
        dir.display()
    ))
    .hint("start a server on it")
}

/// Removes everything of ours but the lock.
fn clear(control: &Path) -> Result<()> {
    for name in ["marker", "marker.new", "maps", "files"] {
        remove_any(&control.join(name))?;
    }
    Ok(())
}

/// Moves the files up, the data directory last, and takes away the rest.
fn settle_files(dir: &Path, control: &Path) -> Result<()> {
    let failed = || format!("failed to move the files up in {}", dir.display());
    let files = control.join("files");
    let mut names = Vec::new();
    for entry in fs::read_dir(&files).context(failed)? {
        names.push(entry.context(failed)?.file_name());
    }
    names.sort_by_key(|name| name == "data");
    for name in names {
        fs::rename(files.join(&name), dir.join(&name)).context(failed)?;
    }
    sync(dir)?;
    remove_control(dir, control)
}

/// Removes what is ours in a directory.
fn remove_control(dir: &Path, control: &Path) -> Result<()> {
    let path = dir.join(CONTROL);
    let failed = || format!("failed to remove {}", path.display());
    for entry in fs::read_dir(control).context(failed)? {
        remove_any(&entry.context(failed)?.path())?;
    }
    fs::remove_dir(&path).context(failed)
}

fn sync(dir: &Path) -> Result<()> {
    let opened = File::open(dir).context(|| format!("failed to open {}", dir.display()))?;
    rustix::fs::syncfs(&opened).context(|| format!("failed to sync {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn owner(of: &str, kept: bool) -> Owner {
        Owner {
            of: of.to_owned(),
            kept,
        }
    }

    fn fresh(dir: &Path, owner: Owner) -> Scratch {
        match Scratch::claim(dir, owner).unwrap() {
            Claim::Fresh(scratch) => scratch,
            Claim::Resumed(_) => panic!("it is not fresh"),
        }
    }

    #[test]
    fn strangers_are_kept_and_the_lock_is_one() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("precious"), "x").unwrap();
        let error = Scratch::claim(top.path(), owner("a", false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let dir = top.path().join("s");
        let first = fresh(&dir, owner("a", false));
        let error = Scratch::claim(&dir, owner("a", false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        first.put_away().unwrap();
        assert!(!dir.exists());
    }

    /// What is in it belongs to the server's account, and root writes there.
    #[test]
    fn nobody_else_gets_at_the_files_but_through_the_mount() {
        let top = tempfile::tempdir().unwrap();
        let scratch = fresh(top.path(), owner("a", false));
        let control = top.path().join(CONTROL);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&control), 0o700);
        fs::rename(&control, top.path().join("moved")).unwrap();
        fs::create_dir(&control).unwrap();
        fs::write(scratch.files().join("a"), "x").unwrap();
        assert!(top.path().join("moved/files/a").exists());
        drop(scratch);
        std::os::unix::fs::chown(&control, Some(4242), None).unwrap();
        let error = Scratch::claim(top.path(), owner("a", false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
    }

    #[test]
    fn what_was_to_be_thrown_away_is_after_a_kill() {
        let top = tempfile::tempdir().unwrap();
        let first = fresh(top.path(), owner("a", false));
        fs::write(first.files().join("old"), "x").unwrap();
        first.ready().unwrap();
        drop(first);
        let second = fresh(top.path(), owner("b", true));
        assert!(!second.files().join("old").exists());
    }

    #[test]
    fn what_is_kept_is_resumed_by_its_owner_alone() {
        let top = tempfile::tempdir().unwrap();
        let first = fresh(top.path(), owner("a", true));
        fs::write(first.files().join("written"), "x").unwrap();
        first.ready().unwrap();
        drop(first);
        for other in [owner("b", true), owner("a", false)] {
            let error = Scratch::claim(top.path(), other).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
        }
        let Claim::Resumed(again) = Scratch::claim(top.path(), owner("a", true)).unwrap() else {
            panic!("it is there");
        };
        assert!(again.files().join("written").exists());
    }

    #[test]
    fn what_a_host_that_went_down_left_is_not_trusted_unless_it_was_put_away() {
        let top = tempfile::tempdir().unwrap();
        let first = fresh(top.path(), owner("a", true));
        first.ready().unwrap();
        drop(first);
        let marker = top.path().join(CONTROL).join("marker");
        let other_boot = |text: String| text.replace(&boot_id().unwrap(), "another");
        fs::write(&marker, other_boot(fs::read_to_string(&marker).unwrap())).unwrap();
        let error = Scratch::claim(top.path(), owner("a", true)).unwrap_err();
        assert!(error.to_string().contains("went down"), "{error}");
        fs::remove_dir_all(top.path().join(CONTROL)).unwrap();
        let second = fresh(top.path(), owner("a", true));
        second.ready().unwrap();
        second.put_away().unwrap();
        fs::write(&marker, other_boot(fs::read_to_string(&marker).unwrap())).unwrap();
        assert!(matches!(
            Scratch::claim(top.path(), owner("a", true)).unwrap(),
            Claim::Resumed(_)
        ));
    }

    #[test]
    fn settling_that_was_cut_short_ends_with_the_next_claim() {
        let top = tempfile::tempdir().unwrap();
        let scratch = fresh(top.path(), owner("a", true));
        fs::create_dir(scratch.files().join("data")).unwrap();
        scratch.mark(ScratchState::Settling).unwrap();
        drop(scratch);
        let error = Scratch::claim(top.path(), owner("a", true)).unwrap_err();
        assert!(error.to_string().contains("full restore"), "{error}");
        assert!(top.path().join("data").is_dir());
        assert!(!top.path().join(CONTROL).exists());
    }
}
