//! How a running server was started, so that it can be stopped, and started again the same way.
//!
//! | who started it | it is stopped | it is started |
//! |---|---|---|
//! | a systemd unit, whose main process it is or descends from | `systemctl stop` | `systemctl start` |
//! | the user's own commands know how | the one command | the other |
//! | somebody by hand | SIGTERM | with the words, environment and account that it had |
//!
//! Whatever else stands above it (`mysqld_safe`, a container, a supervisor) would start it again by
//! itself, or miss it: such a server is refused, unless the commands are given.

mod by_hand;
mod command;
mod owner;

pub use by_hand::ByHand;

use crate::connect::Session;
use crate::options::ConnectOptions;
use evenkeel_op::{Cancel, Error, ErrorKind, Result, units};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// How often is asked whether a server answers, and whether somebody wants to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Commands of the user's that stop and start a server; given to `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Stops it: when this ends, the server must end soon.
    pub stop: String,
    /// Starts it: when this ends, the server must answer soon.
    pub start: String,
}

/// How a server is stopped and started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// By this unit of systemd.
    Unit(String),
    /// By commands of the user's.
    Commands(Commands),
    /// By a signal, and again as it was started.
    ByHand(ByHand),
}

/// A process, held so that its number cannot come to mean another one.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    /// In clock ticks since the system's start.
    start_time: u64,
    handle: OwnedFd,
}

impl Service {
    /// Finds out how the server on `datadir`, whose process is `pid`, was started. `Refused` when that is
    /// not known, something above it would start it again by itself, or it is another's process;
    /// `commands` go before all that.
    pub fn of(pid: i32, datadir: &Path, commands: Option<Commands>) -> Result<Self> {
        if let Some(commands) = commands {
            return Ok(Self::Commands(commands));
        }
        if let Some(unit) = owner::unit_of(pid) {
            return Ok(Self::Unit(unit));
        }
        if let Some(owner) = owner::supervisor_of(pid) {
            return Err(Error::refused(format!(
                "{owner} supervises the server's process {pid}, and would restart it or not \
                 start it at all"
            ))
            .hint(
                "give the commands that stop and start it: --stop-with COMMAND --start-with \
                 COMMAND",
            ));
        }
        ByHand::of(pid, datadir).map(Self::ByHand)
    }

    /// Describes in a few words how the server is stopped and started.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Unit(unit) => format!("systemctl stop and start {unit}"),
            Self::Commands(commands) => format!("'{}', then '{}'", commands.stop, commands.start),
            Self::ByHand(how) => format!("SIGTERM, then {}", how.program.display()),
        }
    }

    /// Stops the server and waits until its process has ended.
    pub fn stop(&self, process: &Process, deadline: Duration, cancel: &Cancel) -> Result<()> {
        let until = Instant::now() + deadline;
        match self {
            Self::Unit(unit) => command::run("systemctl", &["stop", unit], until)?,
            Self::Commands(commands) => command::run("/bin/sh", &["-c", &commands.stop], until)?,
            Self::ByHand(_) => process.signal(Signal::TERM)?,
        }
        if process.wait(until, cancel)? {
            return Ok(());
        }
        Err(Error::failed(format!(
            "the server's process {} did not end within {}",
            process.pid,
            units::duration(deadline)
        ))
        .hint("allow it more time, or stop it yourself"))
    }

    /// Starts the server and waits until it answers at `options`. An account that it does not let in
    /// is an answer: it may be one that came later.
    pub fn start(
        &self,
        options: &ConnectOptions,
        deadline: Duration,
        cancel: &Cancel,
    ) -> Result<()> {
        let until = Instant::now() + deadline;
        let mut child = match self {
            Self::Unit(unit) => {
                command::run("systemctl", &["start", unit], until)?;
                None
            }
            Self::Commands(commands) => {
                command::run("/bin/sh", &["-c", &commands.start], until)?;
                None
            }
            Self::ByHand(how) => Some(how.start()?),
        };
        loop {
            match Session::open(options) {
                Err(error) if error.kind() == ErrorKind::Unreachable => {
                    is_still_there(child.as_mut())?;
                    if Instant::now() >= until {
                        return Err(Error::failed(format!(
                            "the server did not answer within {} after its start",
                            units::duration(deadline)
                        ))
                        .because(error)
                        .hint("its error log shows what it is doing"));
                    }
                }
                _ => return Ok(()),
            }
            cancel.check()?;
            std::thread::sleep(LOOK);
        }
    }
}

fn is_still_there(child: Option<&mut Child>) -> Result<()> {
    match child.map(Child::try_wait) {
        Some(Ok(Some(status))) => Err(Error::failed(format!(
            "the server did not start: it ended with {status}"
        ))
        .hint("its error log shows why")),
        _ => Ok(()),
    }
}

impl Process {
    /// Takes hold of the process `pid` as it is now. `Failed` when there is none.
    pub fn now(pid: i32) -> Result<Self> {
        let gone = || Error::failed(format!("there is no process {pid} to stop"));
        let handle = Pid::from_raw(pid)
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
            .map_err(|errno| gone().because(std::io::Error::from(errno)))?;
        // Read after the handle was opened: both are of one process then.
        let (_, start_time) = owner::state_of(pid).ok_or_else(gone)?;
        Ok(Self {
            pid,
            start_time,
            handle,
        })
    }

    /// Returns its number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        match rustix::process::pidfd_send_signal(self.handle.as_fd(), signal) {
            // It has ended by itself.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(Error::refused(format!(
                "process {} could not be signaled",
                self.pid
            ))
            .hint("run as root or as the server's own user")
            .because(std::io::Error::from(errno))),
        }
    }

    /// Waits until it has ended, also when nobody has taken notice of its end yet. Returns whether
    /// it has, when `until` has passed.
    pub fn wait(&self, until: Instant, cancel: &Cancel) -> Result<bool> {
        loop {
            if self.has_ended() {
                return Ok(true);
            }
            cancel.check()?;
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether nothing of it runs any more. Its first thread may be gone before the others are.
    fn has_ended(&self) -> bool {
        match owner::state_of(self.pid) {
            Some((state, start)) if start == self.start_time => {
                let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid));
                matches!(state, 'Z' | 'X') && threads.map_or(0, Iterator::count) <= 1
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_end_is_noticed_though_nobody_reaps() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::now(child.id() as i32).unwrap();
        let soon = || Instant::now() + Duration::from_millis(60);
        assert!(!process.wait(soon(), &Cancel::new()).unwrap());
        process.signal(Signal::KILL).unwrap();
        let later = Instant::now() + Duration::from_secs(30);
        assert!(process.wait(later, &Cancel::new()).unwrap());
        child.wait().unwrap();
        process.signal(Signal::TERM).unwrap();
    }

    #[test]
    fn own_commands_go_before_what_is_found() {
        let commands = Commands {
            stop: "a".into(),
            start: "b".into(),
        };
        let service = Service::of(1, Path::new("/"), Some(commands)).unwrap();
        assert_eq!(service.describe(), "'a', then 'b'");
    }
}
