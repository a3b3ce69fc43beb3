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
use evenkeel_op::boot::boot_id;
use evenkeel_op::notes::Notes;
use evenkeel_op::{Context, Result};
use rustix::process::{Signal, geteuid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MAGIC: &str = "evenkeel pause 1";
/// Where root's notes are. Nobody else reads them: with an open note comes the lock on it.
const OF_ROOT: &str = "/run/evenkeel";
/// Where everybody else's are, each in a directory of their own, which nobody else looks into.
const OF_OTHERS: &str = "/tmp/evenkeel-pause-";
/// More than any note is long.
const LENGTH_MAX: u64 = 4096;

/// The note of a pause that lasts. Removed when dropped.
#[derive(Debug)]
pub(super) struct Note {
    notes: Notes,
    name: OsString,
    /// Open for the lock on it.
    file: File,
}

impl Note {
    /// Notes that `target` is about to be stopped. `Busy` when another run pauses it now.
    pub(super) fn write(target: &Target) -> Result<Self> {
        let notes = own_notes()?;
        let name = OsString::from(format!("{}-{}", target.pid, target.start_time));
        let failed = || format!("failed to write {}", notes.path(&name).display());
        let busy = format!("another run of evenkeel is pausing process {}", target.pid);
        let file = notes.claim(&name, &busy)?;
        let boot = boot_id().context(failed)?;
        let text = format!(
            "{MAGIC}\nboot {boot}\nprocess {} {}\n",
            target.pid, target.start_time
        );
        file.set_len(0)
            .and_then(|()| (&file).write_all(text.as_bytes()))
            .context(failed)?;
        Ok(Self { notes, name, file })
    }

    /// Adds how the process stands. Without it a later run can only go by the process's number.
    pub(super) fn stands(&self, standstill: Standstill) {
        let line = format!("stopped {} {}\n", standstill.threads, standstill.switches);
        let _ = (&self.file).write_all(line.as_bytes());
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.notes.remove(&self.name);
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
    let places = [Some(PathBuf::from(OF_ROOT)), own_directory()];
    let mut left = Vec::new();
    for notes in places
        .into_iter()
        .flatten()
        .filter_map(|path| Notes::open(&path))
    {
        for name in notes.names() {
            left.extend(heal_one(&notes, &name, &mut is_meant));
        }
    }
    left
}

fn heal_one(
    notes: &Notes,
    name: &OsStr,
    is_meant: &mut impl FnMut(i32) -> bool,
) -> Option<LeftStopped> {
    let mut file = notes.read(name)?;
    let writer = file.metadata().ok()?.uid();
    if is_name(name) {
        notes.remove_empty(&file, name);
    }
    // Not locked before it is known whom it is about: the command that it concerns could not have it then.
    if let Some(noted) = read(&mut file).filter(Noted::is_there)
        && !is_meant(noted.pid)
    {
        return None;
    }
    // Locked: its writer lives, and ends the pause itself.
    file.try_lock().ok()?;
    // What is no note is not ours to remove.
    let noted = read(&mut file).filter(|_| notes.has(&file, name))?;
    let left = (noted.is_there() && noted.stands_still(writer)).then(|| LeftStopped {
        pid: noted.pid,
        resumed: Target::started_at(noted.pid, noted.start_time)
            .and_then(|target| target.signal(Signal::CONT)),
    });
    // Else it ended, runs again, or was stopped by somebody else since. What could not be resumed should be
    // tried again.
    if left.as_ref().is_none_or(|left| left.resumed.is_ok()) {
        notes.remove(name);
    }
    left
}

/// Whether a note is called as one of a pause is. Other files of root's are in the directory too.
fn is_name(name: &OsStr) -> bool {
    let numbers = name.to_str().and_then(|name| name.split_once('-'));
    numbers.is_some_and(|(pid, start)| pid.parse::<i32>().is_ok() && start.parse::<u64>().is_ok())
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

/// The directory of a user's own notes who is not root.
fn own_directory() -> Option<PathBuf> {
    let user = geteuid();
    (!user.is_root()).then(|| PathBuf::from(format!("{OF_OTHERS}{}", user.as_raw())))
}

/// Makes the directory for this user's notes.
fn own_notes() -> Result<Notes> {
    let made = match own_directory() {
        Some(directory) => Notes::make(&directory, 0o700),
        None => Notes::make(Path::new(OF_ROOT), 0o755),
    };
    made.map_err(|error| {
        error.hint(
            "evenkeel notes there that it stopped the server, so that the next command can \
             resume it if this one is killed",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use std::fs;

    #[test]
    fn a_note_that_was_never_written_goes_and_other_files_stay() {
        let room = tempfile::tempdir().unwrap();
        let notes = Notes::make(room.path(), 0o700).unwrap();
        for name in ["4711-98765", "pool-vg", "12"] {
            fs::write(room.path().join(name), "").unwrap();
        }
        for name in notes.names() {
            assert!(heal_one(&notes, &name, &mut |_| true).is_none());
        }
        let mut names = notes.names();
        names.sort();
        assert_eq!(names, ["12", "pool-vg"]);
    }

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
    /// What is done to a note.
    #[derive(Debug, Clone)]
    enum Forgery {
        Write(Index, Vec<u8>),
        Cut(Index),
        Grow(usize),
    }

    fn forgery() -> impl Strategy<Value = Forgery> {
        let bytes = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..20),
            "[0-9 \n]{1,24}".prop_map(String::into_bytes),
        ];
        prop_oneof![
            (any::<Index>(), bytes).prop_map(|(at, bytes)| Forgery::Write(at, bytes)),
            any::<Index>().prop_map(Forgery::Cut),
            (0usize..100_000).prop_map(Forgery::Grow),
        ]
    }

    proptest! {
        #[test]
        fn a_forged_note_moves_nothing_and_only_a_note_goes(forgeries in proptest::collection::vec(forgery(), 1..4)) {
            // No boot has this name, so no process is meant.
            let mut bytes = format!("{MAGIC}\nboot abc\nprocess 12 34\nstopped 5 6\n").into_bytes();
            for forgery in forgeries {
                match forgery {
                    Forgery::Write(at, new) => {
                        let at = at.index(bytes.len() + 1);
                        let end = bytes.len().min(at + new.len());
                        bytes.splice(at..end, new);
                    }
                    Forgery::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
                    Forgery::Grow(more) => bytes.resize(bytes.len() + more, b'7'),
                }
            }
            let room = tempfile::tempdir().unwrap();
            let path = room.path().join("notes");
            let notes = Notes::make(&path, 0o700).unwrap();
            fs::write(path.join("12-34"), &bytes).unwrap();
            fs::write(path.join("other"), "stays").unwrap();
            fs::write(room.path().join("outside"), "stays").unwrap();
            let start = &bytes[..bytes.len().min(LENGTH_MAX as usize)];
            let is_note = std::str::from_utf8(start).is_ok_and(|text| Noted::parse(text).is_some());
            let left = heal_one(&notes, OsStr::new("12-34"), &mut |_| true);
            prop_assert!(left.is_none());
            // An empty one was left by a run that was killed before it wrote.
            let goes = is_note || bytes.is_empty();
            prop_assert_eq!(path.join("12-34").exists(), !goes);
            for other in [path.join("other"), room.path().join("outside")] {
                prop_assert_eq!(fs::read_to_string(other).unwrap(), "stays");
            }
        }
    }
}
