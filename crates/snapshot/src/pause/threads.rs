//! What `/proc` says of a process and its threads.

use evenkeel_op::{Context, Error, Result};
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Two fields of a `stat` file.
pub(super) struct Stat {
    /// `T` stopped by a signal, `t` by a debugger, `Z` and `X` ended.
    pub(super) state: char,
    /// In clock ticks since boot.
    pub(super) start_time: u64,
}

impl Stat {
    /// Reads those of a process.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat"))?)
    }

    fn parse(text: &str) -> io::Result<Self> {
        // The second field is the program's name in parentheses, which may hold anything.
        let fields = text
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace());
        let mut fields = fields.ok_or(io::ErrorKind::InvalidData)?;
        let state = fields.next().and_then(|field| field.chars().next());
        // The state is field 3, the start time field 22.
        let start_time = fields.nth(18).and_then(|field| field.parse().ok());
        match (state, start_time) {
            (Some(state), Some(start_time)) => Ok(Self { state, start_time }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// What would differ if a process had run in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standstill {
    /// Whether all threads are stopped.
    pub(super) stopped: bool,
    pub(super) threads: u64,
    /// How often a thread was taken off a processor, in all.
    pub(super) switches: u64,
}

impl Standstill {
    /// Looks at all threads of a process.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        let mut found = Self {
            stopped: true,
            threads: 0,
            switches: 0,
        };
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let status = match fs::read_to_string(thread?.path().join("status")) {
                Ok(status) => status,
                // It ended between being listed and being looked at.
                Err(error) if ended(&error) => continue,
                Err(error) => return Err(error),
            };
            let state = field(&status, "State:").and_then(|state| state.chars().next());
            found.stopped &= matches!(state, Some('T' | 't' | 'Z' | 'X'));
            found.threads += 1;
            for name in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"] {
                found.switches += field(&status, name)
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0);
            }
        }
        Ok(found)
    }
}

/// Returns the effective user of a process.
pub(super) fn user_of(pid: i32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    field(&status, "Uid:")
        .and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// Waits until all threads of a process are stopped, and returns what must not change from then on.
pub(super) fn stopped(pid: i32, deadline: Instant) -> Result<Standstill> {
    let failed = || format!("failed to look at the threads of process {pid}");
    let mut last = None;
    loop {
        let found = Standstill::of(pid).context(failed)?;
        // Twice the same: a thread that was just being made while the others were looked at shows.
        if found.stopped && found.threads > 0 && last == Some(found) {
            return Ok(found);
        }
        if !found.stopped {
            // A thread in the kernel stops when it comes back from there.
            thread::sleep(Duration::from_micros(100));
        }
        last = Some(found);
        if Instant::now() >= deadline {
            return Err(Error::failed(format!("process {pid} did not stop in time"))
                .hint("its disk may be very slow now; allow a longer pause, or try later"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let text = "12 (a) Z (b)) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.start_time), ('T', 4711));
        assert!(Stat::parse("12 (a) T 1").is_err());
    }

    #[test]
    fn this_process_is_not_stopped() {
        let found = Standstill::of(std::process::id() as i32).unwrap();
        assert!(!found.stopped && found.threads > 0);
    }
}
