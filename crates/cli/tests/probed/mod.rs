//! A server that can go away and come back at the same place.

use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::TestServer;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel");

/// The server, and where it is.
pub(crate) struct Probed {
    room: Scratch,
    pub(crate) running: Option<Running>,
}

impl Probed {
    pub(crate) fn new(server: &TestServer, options: &[&str]) -> Self {
        let room = Scratch::new();
        let mut probed = Self {
            room,
            running: None,
        };
        probed.running = Some(server.start(&probed.datadir(), options));
        probed.link();
        probed
    }

    /// Has the place lead to the server that runs.
    pub(crate) fn link(&self) {
        let place = self.socket();
        let _ = std::fs::remove_file(&place);
        symlink(self.running().socket(), place).unwrap();
    }

    /// Where its socket always is.
    pub(crate) fn socket(&self) -> PathBuf {
        self.room.path().join("socket")
    }

    /// Where its files are.
    pub(crate) fn datadir(&self) -> PathBuf {
        self.room.path().join("data")
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.running().session().unwrap().run(sql).unwrap();
    }
}
