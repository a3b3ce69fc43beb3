//! What `load` says when it is done, and what it would do.

use super::{Answer, Failure};
use evenkeel_logical::load::{Plan, Report, Request};
use evenkeel_op::units;
use evenkeel_server::coordinates::Coordinates;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What was loaded.
#[derive(Debug, Serialize)]
pub struct LoadAnswer {
    /// The dump's directory.
    pub input: PathBuf,
    /// Whether an earlier run was gone on with.
    pub resumed: bool,
    /// Tables.
    pub tables: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of rows before they were packed; of another program's packed files, as they are.
    pub bytes: u64,
    /// Which instant of its server's binary log the dump shows.
    pub coordinates: Coordinates,
    /// Files of rows.
    pub chunks: u64,
    /// Of these, how many this run brought in.
    pub chunks_loaded: u64,
    /// Objects that could not be made.
    pub failed: Vec<Failure>,
    /// Tables whose rows are not those of the dump; null when it was not asked for.
    pub differs: Option<Vec<String>>,
    /// Wall clock time.
    pub seconds: f64,
}

impl LoadAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(request: &Request, report: &Report) -> Self {
        Self {
            input: request.input.clone(),
            resumed: report.resumed,
            tables: report.tables,
            rows: report.rows,
            bytes: report.bytes,
            coordinates: report.coordinates.clone(),
            chunks: report.chunks,
            chunks_loaded: report.chunks_loaded,
            failed: report.failed.iter().map(Failure::of).collect(),
            differs: report.differs.clone(),
            seconds: report.seconds,
        }
    }
}

impl Answer for LoadAnswer {
    const SCHEMA: &'static str = "evenkeel/load/1";

    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} of {}, {}, in {}\n",
            self.input.display(),
            units::count(self.rows, "row"),
            units::count(self.tables, "table"),
            units::bytes(self.bytes),
            units::duration(Duration::from_secs_f64(self.seconds)),
        );
        if self.chunks_loaded < self.chunks {
            text.push_str(&format!(
                "{} of {} of rows were in before this run\n",
                self.chunks - self.chunks_loaded,
                units::count(self.chunks, "file")
            ));
        }
        match self.differs.as_deref() {
            None => {}
            Some([]) => text.push_str("verified: no table differs from the dump\n"),
            Some(list) => list
                .iter()
                .for_each(|one| text.push_str(&format!("differs: {one}\n"))),
        }
        for one in &self.failed {
            text.push_str(&format!("not made: {}\n", one.message));
        }
        if !self.failed.is_empty() {
            text.push_str(
                "run it again to try these once more; or be content and drop the database \
                 evenkeel_load\n",
            );
        }
        text
    }
}

/// What a load would do.
#[derive(Debug, Serialize)]
pub struct LoadPlanAnswer {
    /// The dump's directory.
    pub input: PathBuf,
    /// It was only planned.
    pub executed: bool,
    /// Whether an earlier run would be gone on with.
    pub resumes: bool,
    /// What would be dropped first.
    pub drops: Vec<String>,
    /// Tables.
    pub tables: u64,
    /// Rows in them; null where the dump does not say how many there are.
    pub rows: Option<u64>,
}

impl LoadPlanAnswer {
    /// Describes a plan.
    #[must_use]
    pub fn new(request: &Request, plan: Plan) -> Self {
        Self {
            input: request.input.clone(),
            executed: false,
            resumes: plan.resumes,
            drops: plan.drops.iter().map(ToString::to_string).collect(),
            tables: plan.tables,
            rows: plan.rows,
        }
    }
}

impl Answer for LoadPlanAnswer {
    const SCHEMA: &'static str = "evenkeel/load-plan/1";

    fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.drops {
            text.push_str(&format!("drop  {one}\n"));
        }
        let rows = self
            .rows
            .map_or_else(|| "all rows".to_owned(), |rows| units::count(rows, "row"));
        text.push_str(&format!(
            "load  {rows} of {}",
            units::count(self.tables, "table")
        ));
        text.push_str(match self.resumes {
            true => ", going on with an earlier run\n",
            false => "\n",
        });
        text.push_str("only a plan: add --execute to do it\n");
        text
    }
}
