//! What `dump` says when it is done.

use super::Answer;
use evenkeel_logical::dump::{Masked, Report, Resumed};
use evenkeel_op::units;
use evenkeel_server::coordinates::Coordinates;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was dumped.
#[derive(Debug, Clone, Serialize)]
pub struct DumpAnswer {
    /// The directory; null for a script on standard output.
    pub output: Option<PathBuf>,
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
    /// Of it, how long readers rested because of --max-threads-running or --max-lag.
    pub rested_s: f64,
    /// From the first lock to the release of the last.
    pub lock_ms: f64,
    /// Of it, how long writes or commits were paused.
    pub write_pause_ms: f64,
    /// Where in the binary log the dump's point in time is.
    pub coordinates: Coordinates,
    /// System-versioned tables of which only the rows of today were dumped, by schema and name.
    pub history_left_out: Vec<String>,
    /// What became of the files that were there; null where none were.
    pub resumed: Option<ResumedDump>,
    /// What was masked; null: nothing.
    pub masked: Option<MaskedDump>,
}

/// What was masked.
#[derive(Debug, Clone, Serialize)]
pub struct MaskedDump {
    /// The columns.
    pub columns: Vec<MaskedColumn>,
    /// Where the key came from: `file`, or `random`, which nobody has any more; null where none was needed.
    pub key: Option<&'static str>,
}

/// A column that was masked.
#[derive(Debug, Clone, Serialize)]
pub struct MaskedColumn {
    /// `schema.table.column`.
    pub column: String,
    /// How.
    pub way: &'static str,
}

/// What became of the files of a dump that was resumed.
#[derive(Debug, Clone, Serialize)]
pub struct ResumedDump {
    /// Files of rows that were kept.
    pub chunks_kept: u64,
    /// Rows in them.
    pub rows_kept: u64,
    /// Bytes of rows in them before they were packed.
    pub bytes_kept: u64,
    /// Those that were read again, by why.
    pub again: Vec<Again>,
}

/// Files of rows that were read again.
#[derive(Debug, Clone, Serialize)]
pub struct Again {
    /// In words.
    pub why: String,
    /// How many.
    pub chunks: u64,
}

impl DumpAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(output: Option<&Path>, report: Report) -> Self {
        Self {
            output: output.map(Path::to_owned),
            tables: report.tables,
            rows: report.rows,
            chunks: report.chunks,
            bytes: report.bytes,
            bytes_stored: report.bytes_stored,
            seconds: report.seconds,
            rested_s: report.rested,
            lock_ms: report.held.lock.as_secs_f64() * 1000.0,
            write_pause_ms: report.held.writes_stopped.as_secs_f64() * 1000.0,
            coordinates: report.coordinates,
            history_left_out: report.history_left_out,
            resumed: report.resumed.map(ResumedDump::from),
            masked: report.masked.map(MaskedDump::from),
        }
    }
}

impl DumpAnswer {
    fn history_text(&self) -> String {
        match &self.history_left_out[..] {
            [] => String::new(),
            names => format!(
                "without the old rows of {}: {}\n",
                units::count(names.len(), "system-versioned table"),
                names.join(", ")
            ),
        }
    }
}

impl From<Resumed> for ResumedDump {
    fn from(resumed: Resumed) -> Self {
        let again = resumed.again.into_iter();
        Self {
            chunks_kept: resumed.chunks,
            rows_kept: resumed.rows,
            bytes_kept: resumed.bytes,
            again: again.map(|(why, chunks)| Again { why, chunks }).collect(),
        }
    }
}

impl From<Masked> for MaskedDump {
    fn from(masked: Masked) -> Self {
        let columns = masked.columns.into_iter();
        Self {
            columns: columns
                .map(|(column, way)| MaskedColumn { column, way })
                .collect(),
            key: masked.key_lasts.map(|lasts| match lasts {
                true => "file",
                false => "random",
            }),
        }
    }
}

impl MaskedDump {
    fn text(&self) -> String {
        let key = match self.key {
            Some("random") => ", with a key that was discarded",
            Some(_) => ", with the key of the file",
            None => "",
        };
        format!(
            "masked: {}{key}\n",
            units::count(self.columns.len(), "column")
        )
    }
}

impl ResumedDump {
    fn text(&self) -> String {
        let mut text = format!(
            "kept: {} with {}\n",
            units::count(self.chunks_kept, "file"),
            units::count(self.rows_kept, "row")
        );
        for again in &self.again {
            text.push_str(&format!(
                "read again: {}: {}\n",
                units::count(again.chunks, "file"),
                again.why
            ));
        }
        text
    }
}

impl Answer for DumpAnswer {
    const SCHEMA: &'static str = "evenkeel/dump/1";

    fn text(&self) -> String {
        let rested = match self.rested_s {
            0.0 => String::new(),
            rested => format!(
                "; connections waited for {}",
                units::duration(Duration::from_secs_f64(rested))
            ),
        };
        let place = match &self.output {
            Some(output) => output.display().to_string(),
            None => "standard output".to_owned(),
        };
        let resumed = self
            .resumed
            .as_ref()
            .map_or_else(String::new, ResumedDump::text);
        let history = self.history_text();
        let masked = self
            .masked
            .as_ref()
            .map_or_else(String::new, MaskedDump::text);
        format!(
            "{place}: {} of {}, {} in {} of {}, in {}; writes paused for {}{rested}\n{resumed}{masked}{history}",
            units::count(self.rows, "row"),
            units::count(self.tables, "table"),
            units::bytes(self.bytes),
            units::count(
                self.chunks,
                match self.output.is_some() {
                    true => "file",
                    false => "piece",
                }
            ),
            units::bytes(self.bytes_stored),
            units::duration(Duration::from_secs_f64(self.seconds)),
            units::duration(Duration::from_secs_f64(self.write_pause_ms / 1000.0)),
        )
    }
}
