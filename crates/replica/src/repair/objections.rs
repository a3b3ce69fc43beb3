//! Tables that are left alone, because a repair of their rows would do something else, too; and what there is to say of
//! a replica.

use super::plan::{PlannedTable, RowValues};
use crate::checksum::catalog::{ComparableTable, OF_SERVERS};
use crate::checksum::sides::Side;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote;

/// What a table that refers to another one does with its rows.
struct Reference {
    by: String,
    column: String,
    acts_on_delete: bool,
    acts_on_update: bool,
}

/// Returns why a table's rows are not repaired, whichever they are.
pub(super) fn to_table(replica: &mut Side, table: &ComparableTable) -> Result<Option<String>> {
    if OF_SERVERS.contains(&&*table.name.database) {
        return Ok(Some(
            "it is each server's own: accounts, where it replicates from, what it has applied"
                .to_owned(),
        ));
    }
    if !table.engine.eq_ignore_ascii_case("InnoDB") {
        return Ok(Some(format!(
            "its engine on the replica is {}",
            table.engine
        )));
    }
    if table.has_history {
        return Ok(Some(
            "it keeps old rows, which a repair would add to".to_owned(),
        ));
    }
    if table.identity().is_none() {
        return Ok(Some(
            "it has no unique key without NULL: nobody can say which of two rows alike is meant"
                .to_owned(),
        ));
    }
    let (database, name) = (quote(&table.name.database), quote(&table.name.table));
    let triggers = replica.session.rows(&format!(
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS \
         WHERE EVENT_OBJECT_SCHEMA = {database} AND EVENT_OBJECT_TABLE = {name}"
    ))?;
    let first = triggers.first().and_then(|row| row.at(0));
    Ok(first.map(|first| format!("it has a trigger on the replica ('{first}'), which would run")))
}

/// Returns why these rows of a table are not repaired.
pub(super) fn to_rows(replica: &mut Side, table: &PlannedTable) -> Result<Option<String>> {
    for reference in references(replica, table)? {
        let at = table
            .columns
            .iter()
            .position(|one| one.eq_ignore_ascii_case(&reference.column));
        let value = |row: &RowValues| at.and_then(|at| row.get(at).cloned().flatten());
        for row in &table.rows {
            let does = match (&row.replica, &row.source) {
                (Some(_), None) if reference.acts_on_delete => "ON DELETE",
                (Some(before), Some(after))
                    if reference.acts_on_update
                        && (at.is_none() || value(before) != value(after)) =>
                {
                    "ON UPDATE"
                }
                _ => continue,
            };
            return Ok(Some(format!(
                "{} refers to it and would change, too ({does}), by row {}",
                reference.by, row.row
            )));
        }
    }
    Ok(None)
}

fn references(replica: &mut Side, table: &PlannedTable) -> Result<Vec<Reference>> {
    let (database, name) = (quote(&table.database), quote(&table.table));
    let rows = replica.session.rows(&format!(
        "SELECT k.TABLE_SCHEMA, k.TABLE_NAME, k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE \
         FROM information_schema.KEY_COLUMN_USAGE AS k \
         JOIN information_schema.REFERENTIAL_CONSTRAINTS AS r ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA \
         AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME \
         WHERE k.REFERENCED_TABLE_SCHEMA = {database} AND k.REFERENCED_TABLE_NAME = {name}"
    ))?;
    let acts = |rule: Option<&str>| !matches!(rule, Some("RESTRICT" | "NO ACTION"));
    let each = rows.iter().map(|row| {
        let text = |at: usize| row.at(at).unwrap_or_default();
        Reference {
            by: format!("{}.{}", text(0), text(1)),
            column: text(2).to_owned(),
            acts_on_delete: acts(row.at(3)),
            acts_on_update: acts(row.at(4)),
        }
    });
    Ok(each.collect())
}

/// Refuses a replica on which no row can be changed for itself.
pub(super) fn to_replica(replica: &mut Side) -> Result<()> {
    let is_on = |value: Option<String>| matches!(value.as_deref(), Some("1" | "ON"));
    let place = replica.session.place().to_owned();
    if is_on(replica.session.variable("super_read_only")?) {
        return Err(
            Error::refused(format!("{place} lets nobody write (super_read_only)"))
                .hint("SET GLOBAL super_read_only = OFF for as long as the repair takes"),
        );
    }
    if is_on(replica.session.variable("wsrep_on")?) {
        return Err(Error::refused(format!(
            "{place} is a node of a Galera cluster: what is written there is written on all nodes"
        )));
    }
    Ok(())
}

/// Returns what there is to know of a replica.
pub(super) fn notes(replica: &mut Side) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let is_off = |value: Option<String>| matches!(value.as_deref(), Some("0" | "OFF"));
    if is_off(replica.session.variable("read_only")?) {
        notes.push(
            "clients may write on the replica (read_only is off): whoever made rows differ may do so again"
                .to_owned(),
        );
    }
    if !is_off(replica.session.variable("super_read_only")?)
        && replica.session.variable("super_read_only")?.is_some()
    {
        notes.push(
            "the replica lets nobody write: set super_read_only off for the repair".to_owned(),
        );
    }
    let readers = replica.session.value(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'",
    )?;
    let readers: u64 = readers.and_then(|count| count.parse().ok()).unwrap_or(0);
    if readers > 0 {
        notes.push(format!(
            "{readers} who read the replica's binary log, its own replicas, get nothing of the repair: compare each \
             with its source afterwards"
        ));
    }
    Ok(notes)
}
