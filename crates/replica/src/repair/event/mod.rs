//! Rows that an event could not be applied for, made as it needs them: a missing row is put back as it was before the
//! event, and a row in the way of another one is taken away. The event then applies itself, with the rest of its
//! transaction.
//!
//! ```text
//! failed (which event) ─► fetch (from the source's binary log) ─► scratch (its rows) ─► rows (what is to be done)
//! ```
//!
//! What is done is in the journal of repairs, and can be undone as any of them.

mod failed;
mod fetch;
mod rows;
mod scratch;

use super::carry_out::{carry_out, refuse_changed};
use super::execute::may_write;
use super::identity::Identity;
use super::journal::{Begun, Journal, SCHEMA};
use super::plan::{PlannedTable, now};
use super::stand::Standing;
use super::writer::{Change, Writer};
use crate::checksum::catalog;
use crate::checksum::sides::{Side, is_source};
use crate::checksum::{ChecksumRequest, ChecksumSelection};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::abilities::Privilege;
use evenkeel_server::connect::server_behind;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{Channel, Position, ThreadState};
use failed::FailedEvent;
use fetch::refused;
use rows::Needs;
use rustix::process::getuid;
use std::path::PathBuf;

/// An event that is to be made applicable.
#[derive(Debug, Clone)]
pub(crate) struct EventRequest {
    /// The servers, the channel, and how the watchdog is started. Nothing is compared.
    pub(crate) comparison: ChecksumRequest,
    /// The source.
    pub(crate) source: ConnectOptions,
    /// The channel.
    pub(crate) channel: String,
    /// The directory of the journal of repairs.
    pub(crate) journal: PathBuf,
}

/// What is about to be done.
#[derive(Debug, Clone)]
pub(crate) struct EventPlan {
    /// `database.table`.
    pub(crate) table: String,
    /// Rows that are put back.
    pub(crate) inserts: usize,
    /// Rows that are taken away.
    pub(crate) deletes: usize,
    /// The event's hash: a repair of it is found by that in the journal.
    pub(crate) hash: String,
}

impl EventPlan {
    fn of(failed: &FailedEvent, table: &PlannedTable, hash: String) -> Self {
        let rows = &table.rows;
        Self {
            table: failed.table.to_string(),
            inserts: rows.iter().filter(|row| row.source.is_some()).count(),
            deletes: rows.iter().filter(|row| row.replica.is_some()).count(),
            hash,
        }
    }
}

/// What was done.
#[derive(Debug, Clone)]
pub(crate) struct EventRepaired {
    pub(crate) plan: EventPlan,
    /// Its name in the journal.
    pub(crate) id: String,
}

/// Makes the rows as the event needs them; `None` if they are. The SQL thread stays stopped.
///
/// `told` is asked before anything is written, and `may_go_on` right before it is committed.
///
/// Errors: `Refused` where only a person can know what is right; those of the servers.
pub(crate) fn repair_event(
    request: &EventRequest,
    told: &mut dyn FnMut(&EventPlan) -> Result<()>,
    may_go_on: &mut dyn FnMut() -> Result<()>,
    run: Run<'_>,
) -> Result<Option<EventRepaired>> {
    let journal = Journal::open(&request.journal)?;
    let mut replica = Side::open(&request.comparison.replica)?;
    let needs = [
        Privilege::SelectAll,
        Privilege::ReplicaMonitor,
        Privilege::ReplicationAdmin,
        Privilege::Trigger,
    ];
    replica.require(&needs, "replica")?;
    let mut source = Side::open(&request.source)?;
    let pid = server_behind(&replica.options);
    let mut standing = Standing::anywhere(&replica, pid, &request.comparison, run)?;
    let (place, failed) = failure(&mut replica, &mut source, &request.channel)?;
    let selection = ChecksumSelection {
        databases: Vec::new(),
        tables: vec![failed.table.clone()],
    };
    let mut writer = Writer::open(&replica.options, run.cancel)?;
    let fetched = fetch::fetch(&request.source, &place, &failed, run.cancel)?;
    let there = catalog::read(&mut replica.session, &selection)?;
    let known = there
        .get(&failed.table)
        .ok_or_else(|| refused(&failed.table, "it is not on the replica"))?;
    let needs = Needs::of(known, &fetched, &failed)?;
    let rows = needs.rows(&mut writer, &mut source, &replica.options)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let tables = [PlannedTable {
        rows,
        ..needs.table()
    }];
    may_write(&mut replica, &tables, &selection)?;
    let changes = Change::all(&tables, &there)?;
    writer.begin()?;
    as_it_was_read(&mut writer, &changes)?;
    let plan = EventPlan::of(&failed, &tables[0], needs.hash());
    told(&plan)?;
    let id = journal.new_id(&plan.hash);
    let mut entry = journal.begin(Begun {
        schema: SCHEMA.to_owned(),
        id: id.clone(),
        time: now(),
        user: getuid().as_raw(),
        plan: Some(plan.hash.clone()),
        undoes: None,
        replica: Identity::of(&mut replica.session)?,
        channel: request.channel.clone(),
        place: Some(super::make::words_of(&place)),
        tables: tables.to_vec(),
    })?;
    carry_out(writer, &mut standing, may_go_on, &changes, &mut entry)?;
    Ok(Some(EventRepaired { plan, id }))
}

/// Returns where the SQL thread is, and which event stopped it.
fn failure(
    replica: &mut Side,
    source: &mut Side,
    channel: &str,
) -> Result<(Position, FailedEvent)> {
    let all = Channel::all(&mut replica.session, &replica.abilities)?;
    let own = all.iter().find(|one| one.name == *channel);
    let own = own.ok_or_else(|| Error::failed(format!("channel '{channel}' is gone")))?;
    is_source(source, own, replica)?;
    let changed = || Error::refused("the SQL thread is not at an event that rows are missing for");
    if own.applier != ThreadState::Stopped || own.is_filtered {
        return Err(match own.is_filtered {
            true => Error::refused("the replica leaves out a part of what the source logs"),
            false => changed(),
        });
    }
    let failed = FailedEvent::of(&mut replica.session, own)?;
    own.executed.clone().zip(failed).ok_or_else(changed)
}

/// Refuses rows that are not as they were read.
fn as_it_was_read(writer: &mut Writer, changes: &[Change<'_>]) -> Result<()> {
    let mut changed = Vec::new();
    for change in changes {
        for row in &change.table.rows {
            if writer.locked(change, row)? != row.replica {
                changed.push(change.named(row));
            }
        }
    }
    match changed.is_empty() {
        true => Ok(()),
        false => {
            writer.roll_back();
            let hint = "clients write on the replica: set read_only there";
            Err(refuse_changed(&changed, "it was read", hint))
        }
    }
}
