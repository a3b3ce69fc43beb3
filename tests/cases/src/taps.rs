//! A tap that runs: `capture --tap`, with what it shows and says in files.

use evenkeel_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A tap, killed when dropped.
#[derive(Debug)]
pub struct Tap {
    child: Child,
    shown: PathBuf,
    said: PathBuf,
    place: String,
}

impl Drop for Tap {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tap {
    /// Begins one in a directory, and waits until it listens. What it shows goes to a file there.
    #[must_use]
    pub fn begin(program: &str, dir: &Path, listen: &str, to: &str, more: &[&str]) -> Self {
        let shown = dir.join("shown");
        let file = fs::File::create(&shown).unwrap();
        Self::begin_into(program, dir, listen, to, more, file.into())
    }

    /// The same, showing statements elsewhere.
    #[must_use]
    pub fn begin_into(
        program: &str,
        dir: &Path,
        listen: &str,
        to: &str,
        more: &[&str],
        out: Stdio,
    ) -> Self {
        let said = dir.join("said");
        let child = Command::new(program)
            .current_dir(dir)
            .args(["capture", "--json", "--tap", listen, "--to", to])
            .args(more)
            .stdout(out)
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let mut tap = Self {
            child,
            shown: dir.join("shown"),
            said,
            place: String::new(),
        };
        until("the tap listens", || {
            let said = tap.said();
            let place = said.split("tapping ").nth(1);
            let place = place.and_then(|rest| rest.split_once(" to "));
            tap.place = place.map_or("", |(place, _)| place).to_owned();
            !tap.place.is_empty()
        });
        tap
    }

    /// Returns the port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        let (_, port) = self.place.rsplit_once(':').unwrap();
        port.parse().unwrap()
    }

    /// Returns its process's number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it has said so far.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Returns what it has shown so far.
    #[must_use]
    pub fn shown(&self) -> String {
        fs::read_to_string(&self.shown).unwrap()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended; returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Ends it as a service is ended; returns what it says of all.
    pub fn end(&mut self) -> Value {
        self.signal(Signal::TERM);
        assert_eq!(self.wait(), Some(143), "{}", self.said());
        self.answer()
    }

    /// Returns what it said of all at its end.
    #[must_use]
    pub fn answer(&self) -> Value {
        let said = self.said();
        let begin = said.find('{').unwrap_or_else(|| panic!("{said}"));
        let answer = serde_json::Deserializer::from_str(&said[begin..]);
        answer.into_iter().next().unwrap().unwrap()
    }

    /// Returns the statements that it has shown.
    #[must_use]
    pub fn statements(&self) -> Vec<Value> {
        let text = self.shown();
        let parsed = |line: &str| serde_json::from_str(line).unwrap();
        text.lines().map(parsed).collect()
    }
}
