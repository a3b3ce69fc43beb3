//! What every measurement is asked for: the server, and the way in which messages are taken out.

use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// The server.
#[derive(clap::Args, Clone)]
pub(crate) struct Server {
    /// Its socket.
    #[arg(long)]
    pub(crate) socket: PathBuf,
    /// Its process, whose processor time is counted.
    #[arg(long)]
    pub(crate) pid: u32,
}

/// How messages are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// `SELECT … WHERE queue_wait(…)`: waits, takes and consumes what was taken before.
    Queue,
    /// `SELECT queue_wait(…)`, then `SELECT …`.
    QueueTwo,
    /// `SELECT … FOR UPDATE SKIP LOCKED`, `DELETE`, `COMMIT`; sleeps when there is nothing.
    SkipLocked,
}

/// How long a consumer that found nothing sleeps before it asks again, where it has to.
pub(crate) const POLL: Duration = Duration::from_millis(2);
