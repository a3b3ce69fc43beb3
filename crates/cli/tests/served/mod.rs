//! A server with a directory beside it: for logs, and an option file that leads to the server.

use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::TestServer;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The server, and its directory.
pub(crate) struct Served {
    pub(crate) running: Running,
    room: Scratch,
}

impl Served {
    /// Starts a server; `./socket` leads to it.
    pub(crate) fn new(server: &TestServer, options: &[&str], user: &str) -> Self {
        let room = Scratch::new();
        let running = server.start(&room.path().join("data"), options);
        std::os::unix::fs::symlink(running.socket(), room.path().join("socket")).unwrap();
        let file = format!(
            "[client]\nuser={user}\nsocket={}\n",
            running.socket().display()
        );
        fs::write(room.path().join("client.cnf"), file).unwrap();
        Self { running, room }
    }

    pub(crate) fn room(&self) -> &Path {
        self.room.path()
    }

    /// Makes a command that runs in the directory.
    pub(crate) fn command(&self, verb: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.arg(verb).args(words).current_dir(self.room());
        command.env("TZ", "UTC").stdin(Stdio::null());
        command
    }
}
