//! What is left of a pause when everybody who could end it was killed: a note of whom it stopped.
//!
//! The note lies in a directory that does not outlive the machine's uptime, is written before the
//! stop and removed after it. Whoever pauses holds a lock on it, so a note that nobody holds is one
//! of a run that died. It says
//!
//! ```text
//! evenkeel pause 1
//! boot 6ff5…             /proc/sys/kernel/random/boot_id
//! process 4711 98765     its number and start time
//! stopped 38 12345       its threads, and how often they had been taken off a processor
//! ```
//!
//! The last line is added as soon as the process stands. A process that has run since has other
//! numbers: then somebody else stopped it, whatever the note says, and it stays stopped.

use super::Target;
use super::threads::{self, Standstill, Stat};
use evenkeel_op::claim::{claim, is_at};
use evenkeel_op::{Context, Error, Result};
use rustix::process::{Signal, geteuid};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &str = "evenkeel pause 1";
/// Where root's notes are; everybody may read them.
const OF_ROOT: &str = "/run/evenkeel";
/// Where everybody else's are, each in a directory of their own.
const OF_OTHERS: &str = "/tmp";
const OF_OTHERS_PREFIX: &str = "evenkeel-pause-";
/// More than any note is long.
const LENGTH_MAX: u64 = 4096;

/// The note of a pause that lasts. Removed when dropped.
#[derive(Debug)]
pub(super) struct Note {
    path: PathBuf,
    /// Open for the lock on it.
    file: File,
}

impl Note {
    /// Notes that `target` is about to be stopped. `Busy` when another run pauses it now.
    pub(super) fn write(target: &Target) -> Result<Self> {
        let directory = own_directory()?;
        let path = directory.join(format!("{}-{}", target.pid, target.start_time));
        let failed = || format!("failed to write {}", path.display());
        let busy = format!("another run of evenkeel pauses process {} now", target.pid);
        let file = claim(&path, 0o644, &busy)?;
        let boot = boot_id().context(failed)?;
        let text = format!(
            "{MAGIC}\nboot {boot}\nprocess {} {}\n",
            target.pid, target.start_time
        );
        file.set_len(0)
            .and_then(|()| (&file).write_all(text.as_bytes()))
            .context(failed)?;
        Ok(Self { path, file })
    }

    /// Adds how the process stands. Without it a later run can only go by the process's number.
    pub(super) fn stands(&self, standstill: Standstill) {
        let line = format!("stopped {} {}\n", standstill.threads, standstill.switches);
        let _ = (&self.file).write_all(line.as_bytes());
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A server that a killed run left stopped.
#[derive(Debug)]
pub struct LeftStopped {
    /// Its process.
    pub pid: i32,
    /// Whether it was let run on.
    pub resumed: Result<()>,
}

/// Lets processes run on that a run of evenkeel stopped and did not live to resume, as far as
/// `is_meant` says of their number. Leaves alone what somebody else stopped, and pauses that last.
pub fn heal(mut is_meant: impl FnMut(i32) -> bool) -> Vec<LeftStopped> {
    let notes = directories()
        .into_iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flatten()
        .flatten();
    notes
        .filter_map(|note| heal_one(&note.path(), &mut is_meant))
        .collect()
}

fn heal_one(path: &Path, is_meant: &mut impl FnMut(i32) -> bool) -> Option<LeftStopped> {
    let mut file = OpenOptions::new()
        .read(true)
        // Nothing here may be waited for, and no link followed: others may write in the directory.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
    // Not locked before it is known whom it is about: the command that it concerns could not have it then.
    if let Some(noted) = read(&mut file).filter(Noted::is_there)
        && !is_meant(noted.pid)
    {
        return None;
    }
    // Locked: its writer lives, and ends the pause itself.
    file.try_lock().ok()?;
    if !is_at(&file, path) {
        return None;
    }
    let left = match read(&mut file).filter(Noted::is_there) {
        Some(noted) if noted.stands_still(meta.uid()) => Some(LeftStopped {
            pid: noted.pid,
            resumed: Target::started_at(noted.pid, noted.start_time)
                .and_then(|target| target.signal(Signal::CONT)),
        }),
        // It ended, runs again, or was stopped by somebody else since.
        _ => None,
    };
    // What could not be resumed is to be tried again.
    if left.as_ref().is_none_or(|left| left.resumed.is_ok()) {
        let _ = fs::remove_file(path);
    }
    left
}

fn read(file: &mut File) -> Option<Noted> {
    file.rewind().ok()?;
    let mut text = String::new();
    file.take(LENGTH_MAX).read_to_string(&mut text).ok()?;
    Noted::parse(&text)
}

/// What a note says.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    boot: String,
    pid: i32,
    start_time: u64,
    /// Threads and switches.
    stopped: Option<(u64, u64)>,
}

impl Noted {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == MAGIC)?;
        let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
        let (pid, start_time) = pair(lines.next()?, "process ")?;
        Some(Self {
            boot,
            pid: i32::try_from(pid).ok()?,
            start_time,
            stopped: lines.next().and_then(|line| pair(line, "stopped ")),
        })
    }

    /// Whether the process that was noted is there.
    fn is_there(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot)
            && Stat::of(self.pid).is_ok_and(|stat| stat.start_time == self.start_time)
    }

    /// Whether the process is still in the stop that was noted by the user `writer`.
    fn stands_still(&self, writer: u32) -> bool {
        // Nobody may have us resume a process that they could not have stopped.
        let may = writer == 0
            || writer == geteuid().as_raw()
            || threads::user_of(self.pid).is_ok_and(|user| user == writer);
        may && Standstill::of(self.pid).is_ok_and(|now| {
            let as_then = |then| then == (now.threads, now.switches);
            now.stopped && self.stopped.is_none_or(as_then)
        })
    }
}

fn pair(line: &str, name: &str) -> Option<(u64, u64)> {
    let (first, second) = line.strip_prefix(name)?.split_once(' ')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Makes the directory for this user's notes.
fn own_directory() -> Result<PathBuf> {
    let user = geteuid();
    let (directory, mode) = if user.is_root() {
        (PathBuf::from(OF_ROOT), 0o755)
    } else {
        let name = format!("{OF_OTHERS_PREFIX}{}", user.as_raw());
        (Path::new(OF_OTHERS).join(name), 0o700)
    };
    let failed = || format!("failed to make {}", directory.display());
    match DirBuilder::new().mode(mode).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).context(failed).map_err(|error| {
                error.hint("a stop of the server is noted there, so that the next command can end it if this one is killed")
            });
        }
        _ => {}
    }
    let meta = fs::symlink_metadata(&directory).context(failed)?;
    if !meta.is_dir() || meta.uid() != user.as_raw() {
        return Err(
            Error::refused(format!("{} is somebody else's", directory.display()))
                .hint("move it away"),
        );
    }
    Ok(directory)
}

/// Returns every directory that may hold notes.
fn directories() -> Vec<PathBuf> {
    let mut all = vec![PathBuf::from(OF_ROOT)];
    let others = fs::read_dir(OF_OTHERS).into_iter().flatten().flatten();
    all.extend(
        others
            .filter(|entry| {
                let name = entry.file_name();
                name.to_string_lossy().starts_with(OF_OTHERS_PREFIX)
                    && entry.file_type().is_ok_and(|kind| kind.is_dir())
            })
            .map(|entry| entry.path()),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_read_back_with_and_without_their_last_line() {
        let begin = format!("{MAGIC}\nboot abc\nprocess 12 34\n");
        let noted = Noted::parse(&begin).unwrap();
        assert_eq!((noted.pid, noted.start_time, noted.stopped), (12, 34, None));
        let noted = Noted::parse(&format!("{begin}stopped 5 6\n")).unwrap();
        assert_eq!(noted.stopped, Some((5, 6)));
        for other in ["", "evenkeel pause 2\nboot abc\nprocess 12 34\n", MAGIC] {
            assert_eq!(Noted::parse(other), None, "{other}");
        }
    }
}
