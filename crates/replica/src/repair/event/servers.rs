//! The two servers of a repair, and what about them forbids it.

use super::EventRequest;
use super::failed::{FailedEvent, Lack};
use super::fetch::{Fetched, refused};
use crate::checksum::catalog::ComparableTable;
use crate::checksum::filter::Filter;
use crate::checksum::sides::{Side, is_source};
use crate::repair::objections;
use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::Privilege;
use evenkeel_server::connect::quote;
use evenkeel_server::replication::{Channel, Position, ThreadState};

/// The replica and its source.
pub(super) struct Servers {
    pub(super) replica: Side,
    pub(super) source: Side,
}

impl Servers {
    pub(super) fn open(request: &EventRequest) -> Result<Self> {
        let mut replica = Side::open(&request.comparison.replica)?;
        let needs = [
            Privilege::SelectAll,
            Privilege::ReplicaMonitor,
            Privilege::ReplicationAdmin,
            Privilege::Trigger,
        ];
        replica.require(&needs, "replica")?;
        let source = Side::open(&request.source)?;
        Ok(Self { replica, source })
    }

    /// Returns where the SQL thread is, and which event stopped it.
    ///
    /// Errors: `Refused` where it is not stopped by one, or where rows may not be the source's.
    pub(super) fn failure(&mut self, channel: &str) -> Result<(Position, FailedEvent)> {
        let replica = &mut self.replica;
        let all = Channel::all(&mut replica.session, &replica.abilities)?;
        let own = all.iter().find(|one| one.name == *channel);
        let own = own.ok_or_else(|| Error::failed(format!("channel '{channel}' is gone")))?;
        is_source(&mut self.source, own, replica)?;
        let changed =
            || Error::refused("the SQL thread is not at an event that rows are missing for");
        if own.applier != ThreadState::Stopped {
            return Err(changed());
        }
        let failed = FailedEvent::of(&mut replica.session, own)?;
        let (place, failed) = own.executed.clone().zip(failed).ok_or_else(changed)?;
        let filter = Filter::read(&mut self.source, replica, own)?;
        if let Some((_, why)) = filter.refusal(&failed.table) {
            return Err(refused(&failed.table, &why));
        }
        if all.len() > 1 && failed.lack == Lack::RowInTheWay {
            let why =
                "the replica has other sources, too: the row in the way may be from one of them";
            return Err(refused(&failed.table, why));
        }
        // Without the event's place, it is looked for where the SQL thread is: with several domains, that may be behind.
        let domains = replica.session.variable("gtid_slave_pos")?;
        let is_one = domains.is_none_or(|domains| !domains.contains(','));
        match failed.end.is_some() || is_one {
            true => Ok((place, failed)),
            false => Err(refused(
                &failed.table,
                "the server does not say where the event is, and the replica has several GTID domains",
            )),
        }
    }

    /// Refuses a table that is not written to, before anything is done.
    pub(super) fn may_be_repaired(&mut self, table: &ComparableTable) -> Result<()> {
        objections::to_replica(&mut self.replica)?;
        match objections::to_table(&mut self.replica, table)? {
            None => Ok(()),
            Some(why) => Err(refused(&table.name, &why)),
        }
    }

    /// Refuses a transaction that may change rows of the table by foreign keys, which no event says.
    pub(super) fn is_said_by_events(
        &mut self,
        failed: &FailedEvent,
        fetched: &Fetched,
    ) -> Result<()> {
        let (database, table) = (quote(&failed.table.database), quote(&failed.table.table));
        let acts = self.replica.session.value(&format!(
            "SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS \
             WHERE CONSTRAINT_SCHEMA = {database} AND TABLE_NAME = {table} \
             AND (UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION'))"
        ))?;
        match fetched.has_others && acts.as_deref() != Some("0") {
            false => Ok(()),
            true => Err(refused(
                &failed.table,
                "its transaction changes other tables, whose foreign keys may change rows of it",
            )),
        }
    }
}
