//! `evenkeel mount` as a process of its own, and what it says as it goes on.

use crate::program::Evenkeel;
use evenkeel_testkit::wait::until_within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Only hangs take that long.
const LONG: Duration = Duration::from_secs(120);

/// A mount that is being served. Dropped, it is ended, whoever uses it.
#[derive(Debug)]
pub struct Mounting {
    child: Child,
    lines: Receiver<Value>,
    /// Where it is.
    pub mountpoint: PathBuf,
    /// What it said when it was ready.
    pub ready: Value,
}

impl Mounting {
    /// Mounts a repository and waits until it is there. Panics with what was said if it fails.
    #[must_use]
    pub fn start(
        evenkeel: &Evenkeel,
        repository: &Path,
        mountpoint: &Path,
        flags: &[&str],
    ) -> Self {
        let mut command = evenkeel.command(&["mount"]);
        command.arg(repository).arg(mountpoint).args(flags);
        Self::run(command, mountpoint)
    }

    /// Runs a command that mounts at a place, and waits until it is there.
    #[must_use]
    pub fn run(mut command: Command, mountpoint: &Path) -> Self {
        if !std::fs::symlink_metadata(mountpoint).is_ok_and(|found| found.is_dir()) {
            // A dead mount cannot be looked at, and is there.
            let _ = std::fs::create_dir(mountpoint);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("its output");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // What failed is said in several lines.
                let _ = send.send(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
        });
        let mut mounting = Self {
            child,
            lines,
            mountpoint: mountpoint.to_owned(),
            ready: Value::Null,
        };
        mounting.ready = mounting.next();
        if mounting.ready["state"] != "mounted" {
            let rest: Vec<Value> = mounting.lines.iter().collect();
            panic!("it is not mounted: {rest:?}");
        }
        mounting
    }

    /// Returns what it says next.
    #[must_use]
    pub fn next(&self) -> Value {
        self.lines.recv_timeout(LONG).expect("it says something")
    }

    /// Returns the options of a server on it.
    #[must_use]
    pub fn start_options(&self) -> Vec<String> {
        let options = self.ready["start_options"].as_array().expect("options");
        let word = |option: &Value| option.as_str().expect("a word").to_owned();
        options.iter().map(word).collect()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }

    /// Asks it to end, and returns what it said then and its exit code.
    #[must_use]
    pub fn end(self) -> (Value, Option<i32>) {
        self.ask();
        self.finish()
    }

    /// Asks it to end.
    pub fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until it has ended, and returns what it said then and its exit code.
    #[must_use]
    pub fn finish(mut self) -> (Value, Option<i32>) {
        let code = self.code();
        let last = self.lines.iter().last().expect("what became of it");
        (last, code)
    }

    /// Waits for its exit code.
    pub fn code(&mut self) -> Option<i32> {
        let mut ended = None;
        until_within(LONG, "the mount has ended", || {
            ended = self.child.try_wait().expect("a process");
            ended.is_some()
        });
        ended.and_then(|status| status.code())
    }

    /// Kills it: the mount stays, dead.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Mounting {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Somebody may still use it, if a test failed: without its process it lets go.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            let mut unmount = Command::new("umount");
            let _ = unmount.arg("-l").arg(&self.mountpoint).output();
        }
    }
}
