//! Takes a repair back, if its rows are still as it left them.

use super::carry_out::{carry_out, refuse_changed};
use super::execute::may_write;
use super::journal::{Begun, Journal, JournalRecord, SCHEMA, Told};
use super::plan::{PlannedTable, now};
use super::stand::Standing;
use super::writer::{Change, Writer};
use crate::checksum::catalog;
use crate::checksum::sides::Side;
use crate::checksum::{ChecksumRequest, ChecksumSelection};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::abilities::Privilege;
use evenkeel_server::connect::server_behind;
use rustix::process::getuid;
use std::path::PathBuf;
use std::time::Duration;

/// A repair that is to be taken back.
#[derive(Debug, Clone)]
pub struct UndoRequest {
    /// The replica, and how long things may take. The source is not asked.
    pub comparison: ChecksumRequest,
    /// The directory of the journal.
    pub journal: PathBuf,
    /// The repair's name there.
    pub id: String,
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Undone {
    /// The repair that was taken back.
    pub undone: String,
    /// The name of this one.
    pub id: String,
    /// How many rows are as they were.
    pub rows: usize,
    /// How long the SQL thread stood.
    pub applier_held: Duration,
}

/// Takes a repair back: all of it, or nothing.
///
/// Errors: those of sessions; `Usage` for a name that the journal does not have; `Refused` when there is nothing to take
/// back, or rows are not as the repair left them.
pub fn undo(request: &UndoRequest, run: Run<'_>) -> Result<Undone> {
    let journal = Journal::open(&request.journal)?;
    let mut told = journal.read(&request.id)?;
    if let Some(by) = &told.undone_by {
        let message = format!("the repair {} was undone already, by {by}", request.id);
        return Err(Error::refused(message));
    }
    if told.committed == Some(false) {
        return Err(nothing(&request.id));
    }
    let tables: Vec<PlannedTable> = told.begun.tables.iter().cloned().map(turned).collect();
    let selection = ChecksumSelection {
        databases: Vec::new(),
        tables: tables.iter().map(PlannedTable::name).collect(),
    };
    let mut replica = Side::open(&request.comparison.replica)?;
    let needs = [Privilege::ReplicaMonitor, Privilege::ReplicationAdmin];
    replica.require(&needs, "replica")?;
    told.begun
        .replica
        .require(&mut replica.session, "replica")?;
    may_write(&mut replica, &tables, &selection)?;
    let mut writer = Writer::open(&replica.options, run.cancel)?;
    let pid = server_behind(&replica.options);
    let mut standing = Standing::anywhere(&replica, pid, &request.comparison, run)?;
    let there = catalog::read(&mut replica.session, &selection)?;
    let changes = Change::all(&tables, &there)?;
    as_it_left_them(&mut writer, &changes, &mut told)?;
    if told.committed.is_none() {
        told.file.found(true)?;
    }
    let id = journal.new_id(told.begun.plan.as_deref().unwrap_or_default());
    let mut entry = journal.begin(Begun {
        schema: SCHEMA.to_owned(),
        id: id.clone(),
        time: now(),
        user: getuid().as_raw(),
        plan: None,
        undoes: Some(request.id.clone()),
        replica: told.begun.replica.clone(),
        channel: told.begun.channel.clone(),
        place: None,
        tables: tables.clone(),
    })?;
    carry_out(writer, &mut standing, &mut || Ok(()), &changes, &mut entry)?;
    let undone = told.file.append(&JournalRecord::Undone {
        time: now(),
        by: id.clone(),
    });
    let (started, applier_held) = standing.end();
    if let Err(error) = started {
        run.progress.note(error.chain());
    }
    undone?;
    Ok(Undone {
        undone: request.id.clone(),
        id,
        rows: tables.iter().map(|table| table.rows.len()).sum(),
        applier_held,
    })
}

/// Begins the transaction, and refuses rows that are not as the repair left them.
fn as_it_left_them(writer: &mut Writer, changes: &[Change<'_>], told: &mut Told) -> Result<()> {
    writer.begin()?;
    let (mut changed, mut is_before) = (Vec::new(), true);
    for change in changes {
        for row in &change.table.rows {
            let now = writer.locked(change, row)?;
            is_before &= now == row.source;
            if now != row.replica {
                changed.push(change.named(row));
            }
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    writer.roll_back();
    if is_before && told.committed.is_none() {
        told.file.found(false)?;
        return Err(nothing(&told.begun.id));
    }
    let since = format!("the repair {}", told.begun.id);
    let hint = "compare the replica, and make a new plan, if they are wrong";
    Err(refuse_changed(&changed, &since, hint))
}

fn turned(table: PlannedTable) -> PlannedTable {
    PlannedTable {
        rows: table.rows.into_iter().map(|row| row.turned()).collect(),
        ..table
    }
}

fn nothing(id: &str) -> Error {
    Error::refused(format!(
        "the repair {id} was not committed: there is nothing to undo"
    ))
}
