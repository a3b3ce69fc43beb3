//! The process that lets the server run on.
//!
//! `unsafe` is allowed here because a bare `fork` is the only way to a watchdog that needs no
//! program file, no shell, no argument that could be mistaken, and works in whatever binary this
//! library is part of. The child of a process with threads may only call async-signal-safe
//! functions: no allocation, no locks, no Rust I/O. [`watch`] keeps to that.
#![allow(unsafe_code)]

use evenkeel_op::{Context, Error, Result};
use std::io::{PipeWriter, Write, pipe};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::null_mut;
use std::time::Duration;

/// The child's exit codes.
const TOLD: i32 = 0;
const DEADLINE: i32 = 3;

/// Why the watchdog ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was asked to.
    Reported,
    /// The deadline had passed.
    Deadline,
    /// It was killed, or somebody else waited for it.
    Lost,
}

/// A running watchdog.
pub(super) struct Watchdog {
    child: libc::pid_t,
    line: Option<PipeWriter>,
}

impl Watchdog {
    /// Forks a process that sends SIGCONT to `target` (a pidfd) when `limit` has passed, when
    /// dismissed, or when this process is gone.
    pub(super) fn start(target: BorrowedFd<'_>, limit: Duration) -> Result<Self> {
        let failed = || "failed to start the watchdog for the pause";
        let (reader, line) = pipe().context(failed)?;
        let deadline_ns =
            now_ns().saturating_add(i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX));
        let (own_end, other_end, target) =
            (reader.as_raw_fd(), line.as_raw_fd(), target.as_raw_fd());
        // SAFETY: signal sets are plain values; all-zero is a valid one, and both calls below
        // initialise it. Blocking all signals around the fork gives the child a mask in which no
        // handler of this program can run.
        let mut before: libc::sigset_t = unsafe { zeroed() };
        unsafe {
            let mut all: libc::sigset_t = zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        }
        // SAFETY: the child calls nothing but `watch`, which is async-signal-safe and never returns.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: in the child, on descriptors that it inherited.
            unsafe { watch(own_end, other_end, target, deadline_ns) }
        }
        let error = std::io::Error::last_os_error();
        // SAFETY: puts back the mask read above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut()) };
        if child < 0 {
            return Err(Error::failed(failed()).because(error));
        }
        Ok(Self {
            child,
            line: Some(line),
        })
    }

    /// Tells the watchdog that the pause is over, waits for its end, and returns why it ended.
    pub(super) fn dismiss(mut self) -> Ending {
        self.end()
    }

    fn end(&mut self) -> Ending {
        let Some(mut line) = self.line.take() else {
            return Ending::Lost;
        };
        // It may have ended by itself; its exit code tells.
        let _ = line.write_all(b".");
        drop(line);
        let mut status = 0;
        loop {
            // SAFETY: waits for our own child; `status` is valid for writing.
            let result = unsafe { libc::waitpid(self.child, &mut status, 0) };
            if result == self.child {
                break;
            }
            if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return Ending::Lost;
            }
        }
        match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
            Some(TOLD) => Ending::Reported,
            Some(DEADLINE) => Ending::Deadline,
            _ => Ending::Lost,
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end();
    }
}

/// The whole life of the child.
///
/// # Safety
/// To be called in a fresh child of `fork` only, with all signals blocked. Calls nothing but
/// async-signal-safe functions and system calls.
unsafe fn watch(line: RawFd, other_end: RawFd, target: RawFd, deadline_ns: i64) -> ! {
    // SAFETY: system calls on numbers and on locals, see above.
    unsafe {
        libc::close(other_end);
        close_all_but(line, target);
        // Out of reach of a terminal's Ctrl-C and hang-up; signals stay blocked anyway.
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"evenkeel-pause".as_ptr());
        let mut code = TOLD;
        loop {
            let left_ns = deadline_ns - now_ns();
            if left_ns <= 0 {
                code = DEADLINE;
                break;
            }
            // Rounded up, so that it does not spin in the last millisecond.
            let left_ms = (left_ns / 1_000_000 + 1).min(60_000);
            let mut wait = libc::pollfd {
                fd: line,
                events: libc::POLLIN,
                revents: 0,
            };
            let ready = libc::poll(&mut wait, 1, left_ms as libc::c_int);
            // A byte: told. Closed: the other process is gone. An error: better too early.
            if ready > 0 || (ready < 0 && *libc::__errno_location() != libc::EINTR) {
                break;
            }
        }
        libc::syscall(libc::SYS_pidfd_send_signal, target, libc::SIGCONT, 0, 0);
        libc::_exit(code)
    }
}

/// Closes every descriptor but two: an inherited lock or pipe must not outlive its owner.
///
/// # Safety
/// As for [`watch`].
unsafe fn close_all_but(one: RawFd, other: RawFd) {
    let (low, high) = (
        one.min(other) as libc::c_uint,
        one.max(other) as libc::c_uint,
    );
    for (from, to) in [
        (0, low.wrapping_sub(1)),
        (low + 1, high - 1),
        (high + 1, libc::c_uint::MAX),
    ] {
        // `low` of 0 makes the first range wrap around: nothing to close then.
        if from <= to && !(from == 0 && low == 0) {
            // SAFETY: closes numbers that this child uses nowhere. A kernel older than 5.9 has no
            // such call; they then stay open until the pause is over.
            unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
        }
    }
}

/// Returns the monotonic clock in nanoseconds; async-signal-safe.
fn now_ns() -> i64 {
    // SAFETY: all-zero is a valid `timespec`, and the call writes one.
    let mut now: libc::timespec = unsafe { zeroed() };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as i64 * 1_000_000_000 + now.tv_nsec as i64
}
