//! What `dump` says when it is done.

use super::Answer;
use evenkeel_logical::dump::{Report, Request};
use evenkeel_op::units;
use evenkeel_server::coordinates::Coordinates;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What was dumped.
#[derive(Debug, Clone, Serialize)]
pub struct DumpAnswer {
    /// The directory.
    pub output: PathBuf,
    /// Tables.
    pub tables: u64,
    /// Rows.
    pub rows: u64,
    /// Files of rows.
    pub chunks: u64,
    /// Bytes of rows before they were packed.
    pub bytes: u64,
    /// Bytes of the files of rows.
    pub bytes_stored: u64,
    /// Wall clock time.
    pub seconds: f64,
    /// From the first lock to the release of the last.
    pub lock_ms: f64,
    /// Of it, how long writes or commits stood still.
    pub write_pause_ms: f64,
    /// Where in the binary log the dump's instant is.
    pub coordinates: Coordinates,
}

impl DumpAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(request: &Request, report: Report) -> Self {
        Self {
            output: request.output.clone(),
            tables: report.tables,
            rows: report.rows,
            chunks: report.chunks,
            bytes: report.bytes,
            bytes_stored: report.bytes_stored,
            seconds: report.seconds,
            lock_ms: report.held.lock.as_secs_f64() * 1000.0,
            write_pause_ms: report.held.writes_stopped.as_secs_f64() * 1000.0,
            coordinates: report.coordinates,
        }
    }
}

impl Answer for DumpAnswer {
    const SCHEMA: &'static str = "evenkeel/dump/1";

    fn text(&self) -> String {
        format!(
            "{}: {} rows of {} tables, {} in {} files of {}, in {}; writes stood still for {}\n",
            self.output.display(),
            self.rows,
            self.tables,
            units::bytes(self.bytes),
            self.chunks,
            units::bytes(self.bytes_stored),
            units::duration(Duration::from_secs_f64(self.seconds)),
            units::duration(Duration::from_secs_f64(self.write_pause_ms / 1000.0)),
        )
    }
}
