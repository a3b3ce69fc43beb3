//! What `replica repair` answers.

use super::ReplicaChecksumAnswer;
use crate::show::answers::Answer;
use crate::show::obeyed::is_obeyed;
use evenkeel_op::units;
use evenkeel_replica::checksum::RowDifferenceKind;
use evenkeel_replica::repair::{Executed, Made, NotPlanned, PlannedTable, RepairOutcome, Undone};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A plan that was made.
#[derive(Debug, Serialize)]
pub struct RepairPlannedAnswer {
    /// Where it is; null if there is nothing to repair.
    plan: Option<PathBuf>,
    hash: Option<String>,
    replica: String,
    source: String,
    rows: usize,
    tables: Vec<ShownTable>,
    not_planned: Vec<NotPlanned>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShownTable {
    database: String,
    table: String,
    missing: usize,
    extra: usize,
    changed: usize,
}

impl RepairPlannedAnswer {
    /// Describes a plan in its file.
    #[must_use]
    pub fn new(made: &Made, output: &Path) -> Self {
        let plan = &made.plan;
        let is_there = plan.rows() > 0;
        Self {
            plan: is_there.then(|| output.to_owned()),
            hash: is_there.then(|| plan.hash.clone()),
            replica: made.compared.replica.clone(),
            source: made.compared.source.clone(),
            rows: plan.rows(),
            tables: plan.tables.iter().map(ShownTable::of).collect(),
            not_planned: plan.not_planned.clone(),
            notes: plan.notes.clone(),
        }
    }
}

impl ShownTable {
    fn of(table: &PlannedTable) -> Self {
        Self {
            database: table.database.clone(),
            table: table.table.clone(),
            missing: table.count(RowDifferenceKind::Missing),
            extra: table.count(RowDifferenceKind::Extra),
            changed: table.count(RowDifferenceKind::Changed),
        }
    }
}

impl Answer for RepairPlannedAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-repair-planned/1";

    fn text(&self) -> String {
        let what = match &self.plan {
            Some(path) => format!(
                "{} to repair: the plan is in {}",
                units::count(self.rows, "row"),
                path.display()
            ),
            None if self.not_planned.is_empty() => "nothing to repair".to_owned(),
            None => "nothing that can be repaired row by row".to_owned(),
        };
        let mut text = format!("{} and its source {}: {what}\n", self.replica, self.source);
        for table in &self.tables {
            text.push_str(&format!(
                "  {}.{}: insert {}, delete {}, replace {}\n",
                table.database, table.table, table.missing, table.extra, table.changed
            ));
        }
        text.push_str(&left(&self.not_planned));
        for note in &self.notes {
            text.push_str(&format!("  note: {note}\n"));
        }
        plain(&text)
    }
}

fn left(not_planned: &[NotPlanned]) -> String {
    let each = not_planned.iter();
    each.map(|one| {
        format!(
            "  NOT REPAIRED: {}.{}: {}\n",
            one.database, one.table, one.why
        )
    })
    .collect()
}

/// A plan that was carried out.
#[derive(Debug, Serialize)]
pub struct RepairExecutedAnswer {
    outcome: RepairOutcome,
    /// Its name in the journal.
    id: Option<String>,
    journal: PathBuf,
    rows: usize,
    place: String,
    applier_held_s: f64,
    not_planned: Vec<NotPlanned>,
    notes: Vec<String>,
    /// The comparison afterwards.
    checksum: ReplicaChecksumAnswer,
}

impl RepairExecutedAnswer {
    /// Describes what was done.
    #[must_use]
    pub fn new(done: Executed, journal: &Path) -> Self {
        Self {
            outcome: done.outcome,
            id: done.id,
            journal: journal.to_owned(),
            rows: done.rows,
            place: done.place,
            applier_held_s: done.applier_held.as_secs_f64(),
            not_planned: done.not_planned,
            notes: done.notes,
            checksum: ReplicaChecksumAnswer::new(done.compared),
        }
    }
}

impl Answer for RepairExecutedAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-repair-executed/1";

    fn text(&self) -> String {
        let rows = units::count(self.rows, "row");
        let held = units::duration(Duration::from_secs_f64(self.applier_held_s));
        let mut text = match &self.id {
            Some(id) => format!(
                "repaired: {rows}; SQL thread stopped for {held}\n  undo: --undo {id} --journal {}\n",
                self.journal.display()
            ),
            None => format!("nothing was done: {rows} of the plan are as the source's already\n"),
        };
        text.push_str(&left(&self.not_planned));
        for note in &self.notes {
            text.push_str(&format!("  note: {note}\n"));
        }
        text.push_str("compared afterwards: ");
        let mut text = plain(&text);
        text.push_str(&self.checksum.text());
        text
    }
}

/// A repair that was taken back.
#[derive(Debug, Serialize)]
pub struct RepairUndoneAnswer {
    undone: String,
    id: String,
    journal: PathBuf,
    rows: usize,
    applier_held_s: f64,
}

impl RepairUndoneAnswer {
    /// Describes what was done.
    #[must_use]
    pub fn new(done: &Undone, journal: &Path) -> Self {
        Self {
            undone: done.undone.clone(),
            id: done.id.clone(),
            journal: journal.to_owned(),
            rows: done.rows,
            applier_held_s: done.applier_held.as_secs_f64(),
        }
    }
}

impl Answer for RepairUndoneAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-repair-undone/1";

    fn text(&self) -> String {
        format!(
            "undone: {}, {} as before; SQL thread stopped for {}\n  to redo it: --undo {} --journal {}\n",
            self.undone,
            units::count(self.rows, "row"),
            units::duration(Duration::from_secs_f64(self.applier_held_s)),
            self.id,
            self.journal.display()
        )
    }
}

/// What servers say, as text and not as what a terminal obeys.
fn plain(text: &str) -> String {
    text.replace(|letter| letter != '\n' && is_obeyed(letter), " ")
}
