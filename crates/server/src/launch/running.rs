//! A private server that runs.

use super::run_dir::RunDir;
use super::spawn::{POLL, kill_group, wait};
use super::{complaints, tail};
use crate::connect::Session;
use crate::options::ConnectOptions;
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use rustix::process::{Pid, Signal};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// How many lines of its log an error shows.
const LOG_LINES: usize = 15;

/// A private server. Dropping it kills it with SIGKILL and removes its socket, pid file and log.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Holds socket, pid file and log; removed after the server is gone.
    _run_dir: RunDir,
    socket: PathBuf,
    port: Option<u16>,
    log_path: PathBuf,
    user: String,
}

impl Running {
    pub(super) fn new(
        child: Child,
        run_dir: RunDir,
        socket: PathBuf,
        port: Option<u16>,
        log_path: PathBuf,
        user: String,
    ) -> Self {
        Self {
            child,
            _run_dir: run_dir,
            socket,
            port,
            log_path,
            user,
        }
    }

    /// Returns the server's process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Returns the path of its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns its port on 127.0.0.1, if it has networking.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the path of its error log (all that it prints), which goes when this value goes.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log_path
    }

    /// Returns the last `lines` lines of its error log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log_path, lines)
    }

    /// Returns how to reach it: over its socket, as the launch's user, without a password.
    #[must_use]
    pub fn connect_options(&self) -> ConnectOptions {
        ConnectOptions::over_socket(&self.socket, &self.user)
    }

    /// Opens a session.
    pub fn session(&self) -> Result<Session> {
        Session::open(&self.connect_options())
    }

    /// Returns whether the process still exists.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Shuts it down with SIGTERM and waits; after `deadline`, kills it and fails.
    pub fn stop(mut self, deadline: Duration) -> Result<()> {
        let until = Instant::now() + deadline;
        if self.is_running()
            && let Some(pid) = Pid::from_raw(self.pid())
        {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        match wait(&mut self.child, until, &Cancel::new())? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Error::failed(format!(
                "the server failed ({status}):\n{}",
                complaints(&self.log_path, LOG_LINES)
            ))),
            None => {
                let log = complaints(&self.log_path, LOG_LINES);
                self.kill();
                Err(Error::failed(format!(
                    "the server did not shut down within {} and was killed:\n{log}",
                    evenkeel_op::units::duration(deadline)
                )))
            }
        }
    }

    /// Kills it with SIGKILL and reaps it: what a power cut leaves, as far as files go.
    pub fn kill(mut self) {
        kill_group(&mut self.child);
    }

    /// Waits until a client that connects is greeted. A server listens before its crash recovery
    /// is through, but greets only when it is ready.
    pub(super) fn wait_until_it_greets(&mut self, until: Instant, cancel: &Cancel) -> Result<()> {
        loop {
            if !self.is_running() {
                let log = complaints(&self.log_path, LOG_LINES);
                return Err(Error::failed(format!("the server did not start:\n{log}")));
            }
            if self.greets() {
                return Ok(());
            }
            cancel.check()?;
            if Instant::now() >= until {
                let log = complaints(&self.log_path, LOG_LINES);
                return Err(Error::new(
                    ErrorKind::Unreachable,
                    format!("the server was not ready in time:\n{log}"),
                )
                .hint("give it more time, or find out why its recovery takes so long"));
            }
            std::thread::sleep(POLL);
        }
    }

    fn greets(&self) -> bool {
        let Ok(mut stream) = UnixStream::connect(&self.socket) else {
            return false;
        };
        // A short wait only: the caller looks at the process, the deadline and the cancel flag
        // between two tries.
        let mut greeting = [0u8; 5];
        stream
            .set_read_timeout(Some(Duration::from_millis(250)))
            .is_ok()
            && stream.read_exact(&mut greeting).is_ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}
