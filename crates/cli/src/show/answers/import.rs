//! What `import` says when it is done.

use super::Answer;
use evenkeel_logical::import::Report;
use evenkeel_op::units;
use serde::Serialize;
use std::time::Duration;

/// What was imported.
#[derive(Debug, Clone, Serialize)]
pub struct ImportAnswer {
    /// The file.
    pub file: String,
    /// Its bytes, packed as it is.
    pub bytes: u64,
    /// Statements of the file that were run.
    pub statements: u64,
    /// Statements of rows as they went to the server.
    pub inserts_sent: u64,
    /// Rows that were spread over the connections.
    pub rows: u64,
    /// Statements whose rows were there already, as after an interruption.
    pub already_there: u64,
    /// Tables that got rows so.
    pub tables: u64,
    /// Wall clock time.
    pub seconds: f64,
}

impl ImportAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(file: String, report: &Report) -> Self {
        Self {
            file,
            bytes: report.bytes,
            statements: report.statements,
            inserts_sent: report.inserts_sent,
            rows: report.rows,
            already_there: report.already_there,
            tables: report.tables,
            seconds: report.seconds,
        }
    }
}

impl Answer for ImportAnswer {
    const SCHEMA: &'static str = "evenkeel/import/1";

    fn text(&self) -> String {
        let there = match self.already_there {
            0 => String::new(),
            some => format!(
                "; of {} the rows were there already",
                units::count(some, "statement")
            ),
        };
        format!(
            "{}: {}, {}, {} of {} in {}, in {}{there}\n",
            self.file,
            units::bytes(self.bytes),
            units::count(self.statements, "statement"),
            units::count(self.rows, "row"),
            units::count(self.tables, "table"),
            units::count(self.inserts_sent, "insert"),
            units::duration(Duration::from_secs_f64(self.seconds)),
        )
    }
}
