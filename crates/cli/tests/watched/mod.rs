//! A view of running servers in the background, read line by line.

use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::TestServer;
use evenkeel_testkit::{Scratch, until};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel");

/// A server that can go away and come back at the same place.
pub(crate) struct Watched {
    server: TestServer,
    room: Scratch,
    pub(crate) running: Option<Running>,
}

impl Watched {
    pub(crate) fn new(server: &TestServer, options: &[&str]) -> Self {
        let room = Scratch::new();
        let running = server.start(&room.path().join("data"), options);
        let watched = Self {
            server: server.clone(),
            room,
            running: Some(running),
        };
        watched.link();
        watched
    }

    fn link(&self) {
        let place = self.socket();
        let _ = std::fs::remove_file(&place);
        symlink(self.running().socket(), place).unwrap();
    }

    /// Where its socket always is.
    pub(crate) fn socket(&self) -> PathBuf {
        self.room.path().join("socket")
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.running().session().unwrap().run(sql).unwrap();
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    pub(crate) fn start_again(&mut self) {
        let plan = self.server.plan(&self.room.path().join("data"), &[]);
        self.running = Some(self.server.run(&plan));
        self.link();
    }
}

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

    /// Reads on until a server is in this state, and returns that interval.
    pub(crate) fn until(&mut self, server: usize, state: &str) -> Value {
        let mut found = Value::Null;
        until("the server is in that state", || {
            found = self.next();
            found["servers"][server]["state"] == state
        });
        found
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
