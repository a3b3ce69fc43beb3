//! What `load` says when it is done, and what it would do.

use super::{Answer, Failure};
use evenkeel_logical::load::{Plan, Report, Request};
use evenkeel_op::units;
use evenkeel_server::coordinates::Coordinates;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What was loaded.
#[derive(Debug, Serialize)]
pub struct LoadAnswer {
    /// The dump's directory.
    pub input: PathBuf,
    /// Whether an earlier run was resumed.
    pub resumed: bool,
    /// Tables.
    pub tables: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of rows before they were packed; of another program's packed files, as they are.
    pub bytes: u64,
    /// Which point in time of its server's binary log the dump shows.
    pub coordinates: Coordinates,
    /// Files of rows.
    pub chunks: u64,
    /// Of these, how many this run brought in.
    pub chunks_loaded: u64,
    /// Databases by their names in the dump, with those that they were loaded under.
    pub into: BTreeMap<String, String>,
    /// Of the dump, what was not to be loaded.
    pub left_out: Vec<String>,
    /// What the user has to deal with: foreign keys to tables that were left out, old names that stayed.
    pub warnings: Vec<String>,
    /// Objects that could not be made.
    pub failed: Vec<Failure>,
    /// What this server reads in definitions and does not keep.
    pub lost: Vec<String>,
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
            into: request.into.iter().cloned().collect(),
            left_out: report.left_out.iter().map(ToString::to_string).collect(),
            warnings: report.warnings.clone(),
            failed: report.failed.iter().map(Failure::of).collect(),
            lost: report.lost.clone(),
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
                "{} of {} of rows were loaded before this run\n",
                self.chunks - self.chunks_loaded,
                units::count(self.chunks, "file")
            ));
        }
        text.push_str(&chosen(&self.into, &self.left_out, &self.warnings));
        match self.differs.as_deref() {
            None => {}
            Some([]) => text.push_str("verified: no table differs from the dump\n"),
            Some(list) => list
                .iter()
                .for_each(|one| text.push_str(&format!("differs: {one}\n"))),
        }
        for one in &self.lost {
            text.push_str(&format!("lost: {one}\n"));
        }
        for one in &self.failed {
            text.push_str(&format!("not made: {}\n", one.message));
        }
        if !self.failed.is_empty() {
            text.push_str(
                "run it again to retry these; or accept the result and drop \
                 the database evenkeel_load\n",
            );
        }
        text
    }
}

/// How many names of what was left out a text lists.
const NAMED: usize = 8;

/// Says under which names and without what a dump is loaded.
fn chosen(into: &BTreeMap<String, String>, left_out: &[String], warnings: &[String]) -> String {
    let mut text = String::new();
    for (old, new) in into {
        text.push_str(&format!("into  {new}, which is {old} in the dump\n"));
    }
    if !left_out.is_empty() {
        let some = left_out[..left_out.len().min(NAMED)].join(", ");
        let more = match left_out.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        text.push_str(&format!("left out: {some}{more}\n"));
    }
    for one in warnings {
        text.push_str(&format!("warning: {one}\n"));
    }
    text
}

/// What a load would do.
#[derive(Debug, Serialize)]
pub struct LoadPlanAnswer {
    /// The dump's directory.
    pub input: PathBuf,
    /// It was only planned.
    pub executed: bool,
    /// Whether an earlier run would be resumed.
    pub resumes: bool,
    /// What would be dropped first.
    pub drops: Vec<String>,
    /// Tables.
    pub tables: u64,
    /// Rows in them; null where the dump does not say how many there are.
    pub rows: Option<u64>,
    /// Databases by their names in the dump, with those that they would be loaded under.
    pub into: BTreeMap<String, String>,
    /// Of the dump, what would not be loaded.
    pub left_out: Vec<String>,
    /// What the user has to deal with.
    pub warnings: Vec<String>,
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
            into: request.into.iter().cloned().collect(),
            left_out: plan.left_out.iter().map(ToString::to_string).collect(),
            warnings: plan.warnings,
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
            true => ", resuming an earlier run\n",
            false => "\n",
        });
        text.push_str(&chosen(&self.into, &self.left_out, &self.warnings));
        text.push_str("only a plan: add --execute to do it\n");
        text
    }
}
