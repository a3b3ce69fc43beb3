//! How far a rollback is: what lets any other run finish it, or undo it.
//!
//! | phase | what is whole | whoever finds it |
//! |---|---|---|
//! | preparing | what was there | throws away what was prepared; starts the server, if it was stopped |
//! | swapping | the baseline | swaps on, from wherever it was |
//! | swapped | the baseline, in its place | starts the server; throws away what was replaced |

use super::Method;
use super::store::{BaselineDirectory, sync_directory, write_json};
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::service::Service;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const JOURNAL: &str = "rollback.json";

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// Nothing of the data directory was touched; the server may have been stopped.
    Preparing,
    /// All that is needed is there and on disk, and the server does not run.
    Swapping,
    /// The baseline is in its place.
    Swapped,
}

/// A rollback.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) phase: Phase,
    /// The baseline.
    pub(super) name: String,
    pub(super) method: Method,
    /// What the file that tells the new data directory from the old one holds.
    pub(super) token: String,
    /// The server that was running.
    pub(super) server: Option<Server>,
    /// Keep what is replaced under this name.
    pub(super) keep_replaced: Option<String>,
    /// The server's logs for people, which stay.
    pub(super) logs: Vec<OsString>,
    /// In a mount point: the names that leave it.
    pub(super) leaving: Vec<OsString>,
}

/// A server to start again, and where it answers then. No password is noted: that it lets nobody in
/// without one is an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Server {
    pub(super) service: Service,
    /// Whether it should be started when all is done.
    pub(super) start: bool,
    pub(super) start_deadline: Duration,
    socket: Option<PathBuf>,
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
}

impl Server {
    pub(super) fn new(
        service: Service,
        start: bool,
        start_deadline: Duration,
        options: &ConnectOptions,
    ) -> Self {
        Self {
            service,
            start,
            start_deadline,
            socket: options.socket.clone(),
            host: options.host.clone(),
            port: options.port,
            user: options.user.clone(),
        }
    }

    /// Returns where it answers.
    pub(super) fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::over_socket(
            self.socket.clone().unwrap_or_default(),
            self.user.as_deref().unwrap_or_default(),
        );
        options.socket.clone_from(&self.socket);
        options.host.clone_from(&self.host);
        options.port = self.port;
        options
    }
}

impl Journal {
    /// Reads the journal; `None` when no rollback is in progress.
    pub(super) fn read(place: &BaselineDirectory) -> Result<Option<Self>> {
        if !place.exists() {
            return Ok(None);
        }
        let path = place.dir().join(JOURNAL);
        let failed = || format!("failed to read {}", shown(&path).display());
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context(failed),
            Ok(text) => serde_json::from_slice(&text).map(Some).context(failed),
        }
    }

    /// Writes it, on disk when it returns.
    pub(super) fn write(&self, place: &BaselineDirectory) -> Result<()> {
        write_json(&place.dir().join(JOURNAL), self)
    }

    /// Continues to another phase.
    pub(super) fn enter(&mut self, phase: Phase, place: &BaselineDirectory) -> Result<()> {
        self.phase = phase;
        self.write(place)
    }

    /// Removes it: the rollback is over.
    pub(super) fn end(place: &BaselineDirectory) -> Result<()> {
        let path = place.dir().join(JOURNAL);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context(|| format!("failed to remove {}", shown(&path).display()))
            }
            _ => sync_directory(&place.dir()),
        }
    }

    /// Says in a sentence what is interrupted.
    pub(super) fn describe(&self) -> String {
        let name = &self.name;
        match self.phase {
            Phase::Preparing => {
                format!("a rollback to '{name}' was interrupted before it changed anything")
            }
            Phase::Swapping => format!("a rollback to '{name}' was interrupted halfway"),
            Phase::Swapped => format!("a rollback to '{name}' was interrupted at its end"),
        }
    }
}
