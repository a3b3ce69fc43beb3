//! Stops a server for a moment, so that file-by-file clones are point-in-time consistent.
//!
//! **Why the image is sound.** SIGSTOP stops every thread, the workers that the kernel runs for
//! io_uring included (`iou-wrk-*`: they are threads of the process, and are waited for like the
//! rest), so no write is submitted from then on. Writes submitted before may still be
//! on their way to the disk, and it does not matter which of them an image holds: a server submits
//! a write only when those it depends on are complete (page after redo, page after doublewrite),
//! and nothing more is submitted, so whichever of these last writes are in and whichever are not
//! is a state that a power cut at this moment could have left. One thing must not happen: that a
//! file is seen half before and half after such a write. `FICLONE` takes the file's I/O lock and
//! waits for direct I/O in flight, and sees what was written through the page cache, so a clone
//! even holds all of them. Work that reads the files in some other way may see a torn page, which
//! the doublewrite buffer repairs, as after a power cut.
//!
//! **Why the server always runs again.** Before the stop, a watchdog process is forked that does
//! nothing but wait for the first of three: a message, this process's end (a closed pipe: also
//! `kill -9`), the deadline; then it sends SIGCONT. It has a session of its own, no open files and
//! every signal but SIGKILL blocked. What it cannot survive is being killed with SIGKILL together
//! with this process in the middle of a pause (a whole control group, say): for that, whom the
//! pause stops is noted first, and [`heal`] lets it run on.
//!
//! **Why it is the right process.** Signals go to a pidfd, which cannot come to mean another
//! process, and its start time is compared after it was opened.

mod note;
mod threads;
mod watchdog;

pub use note::{LeftStopped, heal};

use evenkeel_op::{Error, Result, units};
use note::Note;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use watchdog::{Ending, Watchdog};

/// A process that may be stopped for a moment.
#[derive(Debug)]
pub struct Target {
    pid: i32,
    start_time: u64,
    handle: OwnedFd,
}

/// What was done during a pause, and how long it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paused<T> {
    /// What the work returned.
    pub value: T,
    /// From just before SIGSTOP to just after SIGCONT.
    pub lasted: Duration,
}

impl Target {
    /// Takes hold of the process `pid` as it is now; it must be the one meant at this moment.
    /// `Refused` when it may not be signalled, is stopped already or is this very process.
    pub fn now(pid: i32) -> Result<Self> {
        let start = threads::Stat::of(pid)
            .map_err(|error| gone(pid).because(error))?
            .start_time;
        Self::started_at(pid, start)
    }

    /// Takes hold of the process `pid` if it is the one that started at `start_time` (field 22 of
    /// `/proc/PID/stat`, clock ticks since boot). `Failed` when it is another one by now.
    pub fn started_at(pid: i32, start_time: u64) -> Result<Self> {
        if pid <= 1 || u32::try_from(pid) == Ok(std::process::id()) {
            return Err(Error::refused(format!(
                "evenkeel does not stop process {pid}"
            )));
        }
        let id = Pid::from_raw(pid).ok_or_else(|| gone(pid))?;
        let handle = rustix::process::pidfd_open(id, PidfdFlags::empty()).map_err(|errno| {
            let error = match errno {
                rustix::io::Errno::NOSYS => {
                    Error::refused("this kernel has no pidfd, so stopping a process is not safe")
                        .hint("use Linux 5.3 or later, or another snapshot method")
                }
                _ => gone(pid),
            };
            error.because(std::io::Error::from(errno))
        })?;
        // Read after the handle was opened: if it is right now, the handle is right for good.
        let stat = threads::Stat::of(pid).map_err(|error| gone(pid).because(error))?;
        if stat.start_time != start_time {
            return Err(Error::failed(format!(
                "process {pid} is a different process now"
            )));
        }
        Ok(Self {
            pid,
            start_time,
            handle,
        })
    }

    /// Returns the process number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::pidfd_send_signal(self.handle.as_fd(), signal).map_err(|errno| {
            Error::refused(format!("process {} could not be signaled", self.pid))
                .hint("run as root or as the server's own user")
                .because(std::io::Error::from(errno))
        })
    }
}

fn gone(pid: i32) -> Error {
    Error::failed(format!("there is no process {pid} to stop"))
}

/// Stops `target`, waits until all of its threads are stopped, does `work`, and lets it run on,
/// whatever happens meanwhile. `work` must not wait for the server. Fails when the whole took until
/// `limit` (the server ran on by then) or the server was not paused throughout: in both cases
/// what `work` made may not be point-in-time consistent.
pub fn paused<T>(
    target: &Target,
    limit: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<Paused<T>> {
    let stat = threads::Stat::of(target.pid).map_err(|error| gone(target.pid).because(error))?;
    if matches!(stat.state, 'T' | 't') {
        return Err(
            Error::refused(format!("process {} is stopped already", target.pid)).hint(format!(
                "if that is not intended, resume it: kill -CONT {}",
                target.pid
            )),
        );
    }
    let note = Note::write(target)?;
    let deadline = Instant::now() + limit;
    let watchdog = Watchdog::start(target.handle.as_fd(), limit)?;
    let begun = Instant::now();
    let resume = Resume {
        target,
        watchdog: Some(watchdog),
        note,
    };
    target.signal(Signal::STOP)?;
    let before = threads::stopped(target.pid, deadline)?;
    resume.note.stands(before);
    let outcome = work();
    let after = threads::Standstill::of(target.pid);
    let ending = resume.now();
    let lasted = begun.elapsed();
    // The work's own failure says more than what follows from it.
    let value = outcome?;
    if ending == Ending::Deadline || begun.elapsed() >= limit {
        return Err(Error::failed(format!(
            "the pause exceeded its deadline of {}, so the image may not be consistent",
            units::duration(limit)
        ))
        .hint("allow a longer pause, or use a snapshot method that does not need one"));
    }
    if !after.is_ok_and(|after| after.stopped && after == before) {
        return Err(Error::failed(format!(
            "process {} ran during the pause, so the image may not be consistent",
            target.pid
        ))
        .hint("another program sent it SIGCONT, or it ended: run again"));
    }
    Ok(Paused { value, lasted })
}

/// Lets the server run on when dropped, also by a panic in the work.
struct Resume<'a> {
    target: &'a Target,
    watchdog: Option<Watchdog>,
    /// Removed when the rest is done.
    note: Note,
}

impl Resume<'_> {
    fn now(mut self) -> Ending {
        self.resume()
    }

    fn resume(&mut self) -> Ending {
        // The quick way; the watchdog sends it once more, which does no harm.
        let _ = self.target.signal(Signal::CONT);
        self.watchdog
            .take()
            .map_or(Ending::Reported, Watchdog::dismiss)
    }
}

impl Drop for Resume<'_> {
    fn drop(&mut self) {
        if self.watchdog.is_some() {
            self.resume();
        }
    }
}
