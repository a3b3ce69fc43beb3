//! Reads what a server will read when it starts, before it does, many at a time.
//!
//! ```text
//! find (option files, data directory) ─► how it ended (redo log) ─► plan (what this version reads)
//!   ─► budget ─► order (by place on rotating disks) ─► read (io_uring or threads) ─► report
//! ```
//!
//! A server that recovers from a crash reads in a single thread and waits for each read. What the
//! page cache holds by then costs it nothing; here hundreds of reads wait side by side. Nothing is
//! written, nothing is connected to, and what cannot be read is reported and left out: at worst the
//! server reads it itself.

mod buffer_pool;
mod job;
mod memory;
mod order;
mod plan;
mod ramp;
mod read;
mod redo;
mod report;
mod ring;
mod threads;

pub use redo::Redo;
pub use report::{PrewarmReport, Unread, WarmedStep};

use evenkeel_op::{Result, Run};
use evenkeel_server::stopped::StoppedServer;
use plan::Plan;
use read::Reading;
use std::time::{Duration, Instant};

/// How reads are kept under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reader {
    /// By io_uring where the kernel has it, else by threads.
    #[default]
    Auto,
    /// By io_uring.
    IoUring,
    /// By threads.
    Threads,
}

/// What to warm.
#[derive(Debug, Clone)]
pub struct PrewarmRequest {
    /// The server, found.
    pub server: StoppedServer,
    /// Whether to read the pages that `ib_buffer_pool` lists.
    pub buffer_pool: bool,
    /// Within which limits.
    pub limits: Limits,
}

/// How much is read at most, and how.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Memory to fill at most, in bytes; a share of what is available when not given.
    pub memory_bytes: Option<u64>,
    /// How long it may take.
    pub deadline: Option<Duration>,
    /// Reads to keep under way; found by trying when not given.
    pub depth: Option<usize>,
    /// How they are kept under way.
    pub reader: Reader,
}

impl PrewarmRequest {
    /// Asks for what the server's recovery will read, within the usual limits.
    #[must_use]
    pub fn new(server: StoppedServer) -> Self {
        Self {
            server,
            buffer_pool: false,
            limits: Limits::default(),
        }
    }
}

/// Warms the page cache for a server that is about to start.
///
/// Errors: `Refused` when a server runs on the data directory, or it cannot be read. Single files
/// that cannot be read are in the report instead.
pub fn prewarm(request: &PrewarmRequest, run: Run<'_>) -> Result<PrewarmReport> {
    let begun = Instant::now();
    let server = &request.server;
    server.refuse_running()?;
    let mut reading = Reading::within(&request.limits, begun, run)?;
    let found = match request.buffer_pool || plan::may_read_tables(server) {
        true => server.files()?,
        // To look for the others would take longer than there is to gain.
        false => server.system_files()?,
    };
    run.progress
        .note(evenkeel_op::units::count(found.files.len(), "file"));
    let logs = redo::files(&found);
    let state = redo::state(&logs);
    run.cancel.check()?;
    let mut plan = Plan::of(server, &found, state);
    for step in std::mem::take(&mut plan.steps) {
        reading.step(step)?;
    }
    if request.buffer_pool {
        plan.add_buffer_pool(server, &found)?;
        for step in std::mem::take(&mut plan.steps) {
            reading.step(step)?;
        }
    }
    run.cancel.check()?;
    Ok(report::of(server, state, plan.useless, reading, begun))
}
