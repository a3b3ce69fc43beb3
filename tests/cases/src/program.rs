//! `evenkeel` as a process of its own: started, killed, and asked what it said.

use crate::Site;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program under test.
#[derive(Debug, Clone)]
pub struct Evenkeel {
    program: PathBuf,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` when a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The JSON document that it printed; null when it printed none.
    pub answer: Value,
    /// What it printed on standard error.
    pub said: String,
}

impl Evenkeel {
    /// Takes the program at `program`: `env!("CARGO_BIN_EXE_evenkeel-under-test")`.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// Plans a run with these arguments, answering in JSON.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_remove("EVENKEEL_KILL_AT")
            .arg("--json")
            .args(args);
        command
    }

    /// Plans a backup of a site's server into its repository.
    #[must_use]
    pub fn backup(&self, site: &Site, flags: &[&str]) -> Command {
        let mut command =
            self.command(&["backup", "--no-defaults", "-u", "root", "--max-impact=100"]);
        command
            .arg("-S")
            .arg(site.running().socket())
            .args(flags)
            .arg(site.repository());
        command
    }

    /// Plans a restore of the newest generation of a repository.
    #[must_use]
    pub fn restore(&self, repository: &Path, target: &Path, flags: &[&str]) -> Command {
        let mut command = self.command(&["restore"]);
        command
            .arg(repository)
            .arg("--target")
            .arg(target)
            .args(flags);
        command
    }
}

/// Returns the library with the functions for URLs that was built for the test that runs: it lies beside its program.
#[must_use]
pub fn url_library() -> PathBuf {
    let program = std::env::current_exe().expect("this program's path");
    let path = program.with_file_name("libevenkeel_url.so");
    assert!(path.is_file(), "{} was not built", path.display());
    path
}

/// Makes a run kill itself at a fail point: `name`, or `name#3` for the third time.
#[must_use]
pub fn killed_at(mut command: Command, point: &str) -> Command {
    command.env("EVENKEEL_KILL_AT", point);
    command
}

/// Runs a command to its end.
#[must_use]
pub fn run(mut command: Command) -> Ended {
    Ended::of(&command.output().expect("the program runs"))
}

/// Runs a command, and returns how much memory it had at most, in bytes.
#[must_use]
pub fn peak(mut command: Command) -> (Ended, u64) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) * 1024);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    (
        Ended::of(&child.wait_with_output().expect("its output")),
        most,
    )
}

impl Ended {
    /// Reads what a run left.
    #[must_use]
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            signal: output.status.signal(),
            answer: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Returns the message of the error that it ended with, or its whole standard error.
    #[must_use]
    pub fn message(&self) -> &str {
        self.answer["message"].as_str().unwrap_or(&self.said)
    }

    /// Returns the generation that a backup made. Panics when it made none.
    #[track_caller]
    #[must_use]
    pub fn generation(&self) -> u32 {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.answer["generation"].as_u64().expect("a generation") as u32
    }
}
