//! Carries a plan out, if nothing has changed since it was made; and compares afterwards.

use super::carry_out::{carry_out, refuse_changed};
use super::journal::{Begun, Journal, JournalFile, JournalRecord, SCHEMA, Told};
use super::make::{seen, words_of};
use super::plan::{NotPlanned, PlannedTable, RepairPlan, now};
use super::stand::{Standing, stand};
use super::writer::{Change, Writer};
use super::{objections, plan_file};
use crate::checksum::align::View;
use crate::checksum::catalog::{self, Catalog};
use crate::checksum::sides::{Side, Sides};
use crate::checksum::{ChecksumReport, ChecksumRequest, ChecksumSelection, TableVerdict, checksum};
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_server::abilities::Privilege;
use rustix::process::getuid;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A plan that is to be carried out.
#[derive(Debug, Clone)]
pub struct ExecuteRequest {
    /// The servers, and how gently they are compared afterwards. What is compared is in the plan.
    pub comparison: ChecksumRequest,
    /// The plan.
    pub plan: PathBuf,
    /// The directory of the journal.
    pub journal: PathBuf,
}

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairOutcome {
    /// The rows are the source's now.
    Repaired,
    /// They were so already: nothing was done.
    WasDone,
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Executed {
    /// How it came out.
    pub outcome: RepairOutcome,
    /// The repair's name in the journal; none if nothing was done.
    pub id: Option<String>,
    /// How many rows the plan has.
    pub rows: usize,
    /// Where in the source's binary log the replica stood.
    pub place: String,
    /// How long the SQL thread stood.
    pub applier_held: Duration,
    /// What differs, or may, and is not in the plan.
    pub not_planned: Vec<NotPlanned>,
    /// What was found out about former runs, and what else there is to know.
    pub notes: Vec<String>,
    /// The comparison of the plan's tables afterwards.
    pub compared: ChecksumReport,
}

/// What the rows are now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Now {
    AsPlanned,
    /// They are the source's; `by_plan` says that they are as the plan would have made them.
    AsSource {
        by_plan: bool,
    },
    Changed(Vec<String>),
}

/// Carries a plan out: either all of it, or nothing. Right before it is committed, `may_go_on` is asked.
///
/// Errors: those of [`checksum`]; `Usage` and `Refused` for what is no plan, not of these servers, or out of date;
/// `Partial` when it was committed and then something failed.
pub fn execute(
    request: &ExecuteRequest,
    may_go_on: &mut dyn FnMut() -> Result<()>,
    run: Run<'_>,
) -> Result<Executed> {
    let plan = plan_file::read(&request.plan)?;
    let journal = Journal::open(&request.journal)?;
    let mut comparison = request.comparison.clone();
    comparison.channel = Some(plan.channel.clone());
    comparison.selection = ChecksumSelection {
        databases: Vec::new(),
        tables: plan.tables.iter().map(PlannedTable::name).collect(),
    };
    let mut sides = Sides::meet(&comparison, run)?;
    plan.replica
        .require(&mut sides.replica.session, "replica")?;
    plan.source.require(&mut sides.source.session, "source")?;
    may_write(&mut sides.replica, &plan.tables, &comparison.selection)?;
    refuse_filtered(&sides, &plan)?;
    let notes = objections::notes(&mut sides.replica)?;
    let earlier = journal.unknown_of(&plan.hash)?;
    let writer = Writer::open(&sides.replica.options, run.cancel)?;
    let (mut standing, view, place) = stand(&mut sides, &comparison, run)?;
    let there = definitions(&mut sides, &comparison.selection)?;
    let changes = Change::all(&plan.tables, &there)?;
    says_what_it_does(&plan, &changes)?;
    let mut done = Executed {
        outcome: RepairOutcome::WasDone,
        id: None,
        rows: plan.rows(),
        place: words_of(&place),
        applier_held: Duration::ZERO,
        not_planned: plan.not_planned.clone(),
        notes,
        compared: ChecksumReport::default(),
    };
    let mut doing = Doing {
        may_go_on,
        plan: &plan,
        journal: &journal,
        changes: &changes,
    };
    let entry = doing.repair(writer, view, &mut standing, earlier, &mut done)?;
    let (started, held) = standing.end();
    done.applier_held = held;
    let finish = |error: Error| match &done.id {
        None => error,
        Some(id) => Error::new(
            ErrorKind::Partial,
            format!("the repair {id} was committed, but not compared afterwards"),
        )
        .because(error)
        .hint("compare it: evenkeel replica checksum"),
    };
    if let Err(error) = started {
        run.progress.note(error.chain());
    }
    done.compared = checksum(&comparison, run).map_err(finish)?;
    if let Some(mut entry) = entry {
        entry
            .append(&JournalRecord::Compared {
                time: now(),
                verdict: word_of(done.compared.verdict()).to_owned(),
            })
            .map_err(finish)?;
    }
    Ok(done)
}

fn refuse_filtered(sides: &Sides, plan: &RepairPlan) -> Result<()> {
    let mut names = plan.tables.iter().map(PlannedTable::name);
    let why = names.find_map(|name| Some((sides.filter.refusal(&name)?.1, name)));
    match why {
        None => Ok(()),
        Some((why, name)) => Err(Error::refused(format!("{name} is not repaired: {why}"))),
    }
}

fn word_of(verdict: TableVerdict) -> &'static str {
    match verdict {
        TableVerdict::Equal => "equal",
        TableVerdict::Differs => "differs",
        TableVerdict::NotCompared => "not_compared",
        TableVerdict::LeftOut => "left_out",
    }
}

/// Refuses a replica or tables that are not written to.
pub(super) fn may_write(
    replica: &mut Side,
    tables: &[PlannedTable],
    selection: &ChecksumSelection,
) -> Result<()> {
    replica.require(&[Privilege::SelectAll, Privilege::Trigger], "replica")?;
    objections::to_replica(replica)?;
    let there = catalog::read(&mut replica.session, selection)?;
    for table in tables {
        let why = match there.get(&table.name()) {
            Some(known) => objections::to_table(replica, known)?,
            None => Some("it is not on the replica any more".to_owned()),
        };
        let why = match why {
            None => objections::to_rows(replica, table)?,
            some => some,
        };
        if let Some(why) = why {
            return Err(
                Error::refused(format!("{} is not repaired: {why}", table.name()))
                    .hint("make a new plan"),
            );
        }
    }
    Ok(())
}

/// Reads the tables on the replica; refuses tables that are not defined alike on both sides.
fn definitions(sides: &mut Sides, selection: &ChecksumSelection) -> Result<Catalog> {
    let here = catalog::read(&mut sides.source.session, selection)?;
    let there = catalog::read(&mut sides.replica.session, selection)?;
    for (name, table) in &there {
        let why = match here.get(name) {
            Some(here) => here.difference(table),
            None => Some("it is only on the replica".to_owned()),
        };
        if let Some(why) = why {
            return Err(Error::refused(format!("{name} is not repaired: {why}")));
        }
    }
    Ok(there)
}

/// Refuses a plan whose statements for people are not those that would be run.
fn says_what_it_does(plan: &RepairPlan, changes: &[Change<'_>]) -> Result<()> {
    let (mut sql, mut inserts) = (Vec::new(), Vec::new());
    for change in changes {
        let (gone, new) = change.sql()?;
        sql.extend(gone);
        inserts.extend(new);
    }
    sql.extend(inserts);
    match sql == plan.sql {
        true => Ok(()),
        false => Err(
            Error::refused("the statements in the plan are not those of its rows")
                .hint("make a new plan"),
        ),
    }
}

struct Doing<'a> {
    may_go_on: &'a mut dyn FnMut() -> Result<()>,
    plan: &'a RepairPlan,
    journal: &'a Journal,
    changes: &'a [Change<'a>],
}

impl Doing<'_> {
    /// Repairs the rows, if they are as the plan says.
    fn repair(
        &mut self,
        mut writer: Writer,
        mut view: View,
        standing: &mut Standing,
        earlier: Vec<Told>,
        done: &mut Executed,
    ) -> Result<Option<JournalFile>> {
        writer.begin()?;
        let now = self.look(&mut writer, &mut view)?;
        settle(earlier, &now, done)?;
        match now {
            Now::AsPlanned => {}
            Now::AsSource { .. } => {
                writer.roll_back();
                return Ok(None);
            }
            Now::Changed(rows) => {
                writer.roll_back();
                return Err(refuse_changed(
                    &rows,
                    "the plan was made",
                    "make a new plan with --output",
                ));
            }
        }
        let begun = self.begun(&done.place);
        let id = begun.id.clone();
        let mut entry = self.journal.begin(begun)?;
        carry_out(writer, standing, self.may_go_on, self.changes, &mut entry)?;
        (done.id, done.outcome) = (Some(id), RepairOutcome::Repaired);
        Ok(Some(entry))
    }

    fn look(&self, writer: &mut Writer, view: &mut View) -> Result<Now> {
        let (mut as_source, mut by_plan, mut changed) = (true, true, Vec::new());
        for change in self.changes {
            for row in &change.table.rows {
                let there = writer.locked(change, row)?;
                let here = seen(view, &change.statements, &row.key)?;
                as_source &= there == here;
                by_plan &= there == row.source;
                if there != row.replica || here != row.source {
                    changed.push(change.named(row));
                }
            }
        }
        Ok(match changed.is_empty() {
            true => Now::AsPlanned,
            false if as_source => Now::AsSource { by_plan },
            false => Now::Changed(changed),
        })
    }

    fn begun(&self, place: &str) -> Begun {
        Begun {
            schema: SCHEMA.to_owned(),
            id: self.journal.new_id(&self.plan.hash),
            time: now(),
            user: getuid().as_raw(),
            plan: Some(self.plan.hash.clone()),
            undoes: None,
            replica: self.plan.replica.clone(),
            channel: self.plan.channel.clone(),
            place: Some(place.to_owned()),
            tables: self.plan.tables.clone(),
        }
    }
}

/// Finds out how former runs of this plan ended: by the rows.
fn settle(earlier: Vec<Told>, now: &Now, done: &mut Executed) -> Result<()> {
    for mut told in earlier {
        let id = told.begun.id.clone();
        let word = match now {
            Now::AsPlanned => {
                told.file.found(false)?;
                "was not committed"
            }
            Now::AsSource { by_plan: true } => {
                told.file.found(true)?;
                "was committed"
            }
            Now::AsSource { by_plan: false } | Now::Changed(_) => continue,
        };
        done.notes
            .push(format!("the repair {id}, which was interrupted, {word}"));
    }
    Ok(())
}
