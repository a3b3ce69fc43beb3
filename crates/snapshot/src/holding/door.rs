//! How a holding directory is distinguished from others, and the lock that one run has on it.

use crate::failpoints::fail_point;
use evenkeel_op::disk::sync_directory;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

pub(super) const MARKER: &str = "EVENKEEL-HOLDING";
pub(super) const MARKER_UNFINISHED: &str = "EVENKEEL-HOLDING.new";
const MAGIC: &str = "evenkeel holding directory, format 1\n";
pub(super) const LOCK: &str = "lock";

/// Returns whether `directory` is this user's alone and carries the marker.
#[must_use]
pub fn is_ours(directory: &Path) -> bool {
    open(directory).is_some()
}

/// Opens a holding directory. `None` when it is not there or not ours: a marker can be forged, an owner
/// cannot.
pub(super) fn open(directory: &Path) -> Option<OwnDirectory> {
    let door = OwnDirectory::open(directory).ok()?;
    is_marked(&door.anchor()).then_some(door)
}

fn is_marked(anchor: &Path) -> bool {
    read(&anchor.join(MARKER)).is_ok_and(|text| text.starts_with(MAGIC.as_bytes()))
}

/// Makes a directory with a marker, unless it is there already, and opens it.
pub(super) fn make(directory: &Path) -> Result<OwnDirectory> {
    let failed = || format!("failed to create {}", directory.display());
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).context(failed);
        }
        _ => {}
    }
    fail_point!("snapshot::holding::directory_made");
    let door = OwnDirectory::open(directory)
        .map_err(|error| error.hint("or name another place with --snapshot-dir"))?;
    let anchor = door.anchor();
    if !is_marked(&anchor) {
        mark(&anchor).map_err(|error| match error {
            Unmarked::Foreign => Error::refused(format!(
                "evenkeel did not create the directory {}",
                directory.display()
            ))
            .hint("name another place with --snapshot-dir, or move that directory away"),
            Unmarked::Io(error) => Error::failed(failed()).because(error),
        })?;
    }
    Ok(door)
}

/// Why a directory was not given the marker.
enum Unmarked {
    /// There is something of somebody's in it.
    Foreign,
    Io(io::Error),
}

impl From<io::Error> for Unmarked {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn mark(anchor: &Path) -> std::result::Result<(), Unmarked> {
    // Only what an interrupted or simultaneous first run may have made can be in it.
    for entry in fs::read_dir(anchor)? {
        let name = entry?.file_name();
        if ![MARKER, MARKER_UNFINISHED, LOCK]
            .iter()
            .any(|ours| name == *ours)
        {
            return Err(Unmarked::Foreign);
        }
    }
    let unfinished = anchor.join(MARKER_UNFINISHED);
    let text = format!(
        "{MAGIC}Snapshots of a MySQL or MariaDB data directory are kept here between backups.\n\
         It may be deleted when no backup is running; the next one then reads everything.\n"
    );
    write_synced(&unfinished, text.as_bytes())?;
    fail_point!("snapshot::holding::marker_written");
    match fs::rename(&unfinished, anchor.join(MARKER)) {
        // Another first run was quicker: its marker says the same.
        Err(_) if is_marked(anchor) => Ok(()),
        other => Ok(other.and_then(|()| sync_directory(anchor))?),
    }
}

/// The lock of a holding directory.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Said aloud: closing is not enough while a child that another thread is just starting has
        // a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the lock of a holding directory, or returns `None` when somebody else has it.
pub(super) fn lock(door: &OwnDirectory) -> Result<Option<Lock>> {
    let failed = || format!("failed to lock {}", door.path().join(LOCK).display());
    let place = door.anchor().join(LOCK);
    let file = open_file(&place, OFlags::WRONLY | OFlags::CREATE).context(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(file))),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(other) => Err(io::Error::from(other)).context(failed),
    }
}

/// Opens what is a file of its own. A link would lead elsewhere, and a pipe would have us wait forever.
fn open_file(path: &Path, flags: OFlags) -> io::Result<File> {
    let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = File::from(rustix::fs::open(path, flags | always, mode)?);
    let found = file.metadata()?;
    match found.is_file() && found.nlink() == 1 {
        true => Ok(file),
        false => Err(io::Error::other("it is not a separate regular file")),
    }
}

/// No file of ours is longer, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// Reads such a file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = open_file(path, OFlags::RDONLY)?;
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Writes a file and brings it to disk.
pub(super) fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = open_file(path, OFlags::WRONLY | OFlags::CREATE)?;
    file.set_len(0)?;
    file.write_all(text)?;
    file.sync_all()
}
