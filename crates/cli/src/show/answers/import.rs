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
    /// Statements, and commands of the clients, that failed, with `--force`.
    pub failed: u64,
    /// The first thousand of them.
    pub failures: Vec<ImportFailure>,
    /// Wall clock time.
    pub seconds: f64,
}

/// A statement that failed.
#[derive(Debug, Clone, Serialize)]
pub struct ImportFailure {
    /// The file that it is in.
    pub file: String,
    /// Its line there.
    pub line: u64,
    /// The character of the line that it begins with; 0 where it is not known.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

impl ImportAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(file: String, report: Report) -> Self {
        let failures = report.failures.into_iter().map(|one| ImportFailure {
            file: one.file,
            line: one.line,
            column: one.column,
            message: one.message,
        });
        Self {
            file,
            bytes: report.bytes,
            statements: report.statements,
            inserts_sent: report.inserts_sent,
            rows: report.rows,
            already_there: report.already_there,
            tables: report.tables,
            failed: report.failed,
            failures: failures.collect(),
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
        let failed = match self.failed {
            0 => String::new(),
            some => format!("; {} failed", units::count(some, "statement")),
        };
        format!(
            "{}: {}, {}, {} of {} in {}, in {}{there}{failed}\n",
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
