//! `evenkeel lock` on a server of its own.

use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::{Scratch, TestServer};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A server with a table to write to.
pub(crate) struct Scene {
    // Stopped before its directory goes.
    pub(crate) server: Running,
    scratch: Scratch,
}

impl Scene {
    /// Starts the server.
    pub(crate) fn on(server: &TestServer) -> Self {
        let scratch = Scratch::new();
        let args = ["--log-bin=binlog", "--server-id=1"];
        let server = server.start(&scratch.join("data"), &args);
        let scene = Self { server, scratch };
        let mut session = scene.session();
        session.run("CREATE DATABASE shop").unwrap();
        session
            .run("CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB")
            .unwrap();
        scene
    }

    /// Opens a session that waits a second at most for any lock.
    pub(crate) fn session(&self) -> Session {
        let mut session = self.server.session().unwrap();
        session.run("SET SESSION lock_wait_timeout = 1").unwrap();
        session
    }

    /// Returns a path for the command and the test to meet at.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Plans `lock` with options and a shell script.
    pub(crate) fn lock(&self, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.args(["lock", "--no-defaults", "--user", "root", "--socket"]);
        command.arg(self.server.socket()).args(options);
        command.env("MYSQL_TEST_LOGIN_FILE", "/nonexistent");
        command
            .args(["--", "sh", "-c", script])
            .stdin(Stdio::null());
        command
    }

    /// Returns a script that says it runs, and ends with code 0 once the test says so.
    pub(crate) fn until_reported(&self) -> String {
        let (runs, go) = (self.path("runs"), self.path("go"));
        let runs = runs.display();
        // It also ends when the test is over, however that ended.
        format!(
            "touch {runs}; while [ ! -e {} ] && [ -e {runs} ]; do sleep 0.01; done",
            go.display()
        )
    }
}

/// Returns whether a row can be written now.
pub(crate) fn can_write(session: &mut Session) -> bool {
    session.run("REPLACE INTO shop.orders VALUES (1)").is_ok()
}
