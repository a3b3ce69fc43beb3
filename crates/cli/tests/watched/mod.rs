//! A view of running servers in the background, read line by line.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../probed/mod.rs"]
mod probed;

pub(crate) use probed::{PROGRAM, Probed as Watched};

/// A run of `evenkeel VERB --json` that writes a document for each interval.
pub(crate) struct View {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
}

impl View {
    pub(crate) fn start(verb: &str, sockets: &[&Path], options: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args([
            verb,
            "--json",
            "--no-defaults",
            "-u",
            "root",
            "--interval",
            "300ms",
        ]);
        command.args(options).args(sockets);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Returns the next interval.
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads on until an interval is as it is wanted, and returns that. A server that has refused a login while it
    /// started is left alone for half a minute.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let found = self.next();
            if wanted(&found) {
                return found;
            }
            assert!(Instant::now() < end, "not as wanted: {found}");
        }
    }

    /// Asks it to end, and returns its exit code and what it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        // A reader that went away would end it, too.
        std::io::copy(&mut self.lines, &mut std::io::sink()).unwrap();
        let mut said = String::new();
        let mut err = self.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut err, &mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

/// Returns whether a server is in this state.
pub(crate) fn is(frame: &Value, server: usize, state: &str) -> bool {
    frame["servers"][server]["state"] == state
}

/// Returns whether a server has counts. On a busy host it may be late: then they are in a later interval.
pub(crate) fn is_counted(server: &Value) -> bool {
    let state = server["state"].as_str().unwrap();
    assert!(
        ["starting", "first", "slow", "up"].contains(&state),
        "{server}"
    );
    state == "up"
}

/// Runs a verb to its end, and returns exit code, standard output and standard error.
pub(crate) fn run(verb: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(PROGRAM);
    let output = command
        .args([verb, "--no-defaults"])
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}
