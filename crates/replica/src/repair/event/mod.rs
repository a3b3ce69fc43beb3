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
mod servers;

use super::carry_out::{carry_out, refuse_changed};
use super::execute::may_write;
use super::identity::Identity;
use super::journal::{Begun, Journal, SCHEMA};
use super::make::words_of;
use super::plan::{PlannedTable, now};
use super::stand::Standing;
use super::writer::{Change, Writer};
use crate::checksum::catalog;
use crate::checksum::sides::Side;
use crate::checksum::{ChecksumRequest, ChecksumSelection};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::connect::server_behind;
use evenkeel_server::options::ConnectOptions;
use failed::FailedEvent;
use fetch::refused;
use rows::Needs;
use rustix::process::getuid;
use servers::Servers;
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
    /// More rows are not repaired one by one.
    pub(crate) rows_max: usize,
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
/// `told` is asked before anything is written, and `may_go_on` before each event is read and right before all is
/// committed.
///
/// Errors: `Refused` where only a person can know what is right; those of the servers.
pub(crate) fn repair_event(
    request: &EventRequest,
    told: &mut dyn FnMut(&EventPlan) -> Result<()>,
    may_go_on: &mut dyn FnMut() -> Result<()>,
    run: Run<'_>,
) -> Result<Option<EventRepaired>> {
    let journal = Journal::open(&request.journal)?;
    let mut servers = Servers::open(request)?;
    let pid = server_behind(&servers.replica.options);
    let mut standing = Standing::anywhere(&servers.replica, pid, &request.comparison, run)?;
    let (place, failed) = servers.failure(&request.channel)?;
    let selection = ChecksumSelection {
        databases: Vec::new(),
        tables: vec![failed.table.clone()],
    };
    let there = catalog::read(&mut servers.replica.session, &selection)?;
    let known = there.get(&failed.table);
    let known = known.ok_or_else(|| refused(&failed.table, "it is not on the replica"))?;
    servers.may_be_repaired(known)?;
    let mut writer = Writer::open(&servers.replica.options, run.cancel)?;
    let fetched = fetch::fetch(&request.source, &place, &failed, run.cancel)?;
    servers.is_said_by_events(&failed, &fetched)?;
    let needs = Needs::of(known, &fetched, &failed)?;
    let Servers {
        mut replica,
        mut source,
    } = servers;
    let mut still = || may_go_on().and_then(|()| standing.check());
    let way = (&replica.options, &mut source);
    let rows = needs.rows(&mut writer, way, request.rows_max, &mut still)?;
    for mut earlier in journal.unknown_of(&needs.hash())? {
        earlier.file.found(rows.is_empty())?;
    }
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
    let begun = Begun {
        schema: SCHEMA.to_owned(),
        id: journal.new_id(&plan.hash),
        time: now(),
        user: getuid().as_raw(),
        plan: Some(plan.hash.clone()),
        undoes: None,
        replica: Identity::of(&mut replica.session)?,
        channel: request.channel.clone(),
        place: Some(words_of(&place)),
        tables: tables.to_vec(),
    };
    let id = begun.id.clone();
    let mut entry = journal.begin(begun)?;
    let mut still = || may_go_on().and_then(|()| is_read_only(&mut replica));
    carry_out(writer, &mut standing, &mut still, &changes, &mut entry)?;
    Ok(Some(EventRepaired { plan, id }))
}

/// Refuses a replica on which clients may write by now: perhaps it is none any more.
fn is_read_only(replica: &mut Side) -> Result<()> {
    match replica.session.variable("read_only")?.as_deref() {
        Some("OFF" | "0") => Err(Error::refused(
            "clients can write on the replica by now (read_only is off), so nothing was done",
        )),
        _ => Ok(()),
    }
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
