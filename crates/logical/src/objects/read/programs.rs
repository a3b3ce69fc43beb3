//! Triggers and events.

use super::super::{Program, SchemaObjectKind};
use super::ask;
use super::reader::Reader;
use super::tables::Listed;
use ask::Answer;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_server::connect::{quote, quote_name};

/// Returns a program with the settings that stand beside its text.
pub(super) fn program(
    kind: SchemaObjectKind,
    name: &str,
    create: Vec<u8>,
    row: &Answer,
) -> Program {
    Program {
        kind,
        name: name.to_owned(),
        table: None,
        create,
        sql_mode: row.some("sql_mode"),
        character_set_client: row.text("character_set_client"),
        collation_connection: row.text("collation_connection"),
        database_collation: row.some("Database Collation"),
        time_zone: row.some("time_zone"),
    }
}

/// Reads the triggers of the wanted tables, in the order in which they fire.
///
/// Errors: `Refused` when some may be hidden from the account.
pub(super) fn triggers(
    reader: &mut Reader<'_>,
    database: &str,
    listed: &[Listed],
) -> Result<Vec<Program>> {
    let mut tables = listed.iter().filter(|one| one.is_table());
    let hidden = |one: &&Listed| !reader.grants.hold("TRIGGER", database, Some(&one.name));
    if let Some(hidden) = tables.find(hidden) {
        let what = format!("the triggers of table {database}.{}", hidden.name);
        return Err(ask::lacking(
            &what,
            "TRIGGER",
            "leave triggers out (--no-triggers)",
        ));
    }
    let sql = format!(
        "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS \
         WHERE TRIGGER_SCHEMA = {} \
         ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER",
        quote(database)
    );
    let mut found = Vec::new();
    for row in ask::rows(reader.session, &sql)? {
        let (name, table) = (row.text("TRIGGER_NAME"), row.text("EVENT_OBJECT_TABLE"));
        if !reader.wants(database, &table) {
            continue;
        }
        let sql = format!("SHOW CREATE TRIGGER {}", ask::qualified(database, &name));
        match one(
            reader,
            SchemaObjectKind::Trigger,
            database,
            &name,
            &sql,
            "SQL Original Statement",
        )? {
            Some(mut program) => {
                program.table = Some(table);
                found.push(program);
            }
            None => reader.is_gone(SchemaObjectKind::Trigger, database, &name),
        }
    }
    Ok(found)
}

/// Reads the events of a schema by name.
///
/// Errors: `Refused` when the account may not see them.
pub(super) fn events(reader: &mut Reader<'_>, database: &str) -> Result<Vec<Program>> {
    // Unlike information_schema.EVENTS, this fails where the account may not see them.
    let sql = format!("SHOW EVENTS FROM {}", quote_name(database));
    let rows = ask::rows(reader.session, &sql).map_err(|error| match error.kind() {
        ErrorKind::Refused => {
            let what = format!("the events of {database}");
            ask::lacking(&what, "EVENT", "leave events out (--no-events)").because(error)
        }
        _ => error,
    })?;
    let mut found = Vec::new();
    for row in rows {
        let name = row.text("Name");
        if !reader.wants(database, &name) {
            continue;
        }
        let sql = format!("SHOW CREATE EVENT {}", ask::qualified(database, &name));
        match one(
            reader,
            SchemaObjectKind::Event,
            database,
            &name,
            &sql,
            "Create Event",
        )? {
            Some(program) => found.push(program),
            None => reader.is_gone(SchemaObjectKind::Event, database, &name),
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Reads one trigger or event; `None` when it is gone.
fn one(
    reader: &mut Reader<'_>,
    kind: SchemaObjectKind,
    database: &str,
    name: &str,
    sql: &str,
    column: &str,
) -> Result<Option<Program>> {
    let what = format!("{} {database}.{name}", kind.sql().to_lowercase());
    let row = ask::object(reader.session, sql).context(|| format!("failed to read {what}"))?;
    let Some(row) = row else {
        return Ok(None);
    };
    let create = row.bytes(column).filter(|create| !create.is_empty());
    let create = create.ok_or_else(|| {
        Error::refused(format!("the server does not show the definition of {what}")).hint(format!(
            "grant {} to the account, or leave it out with --exclude",
            kind.sql()
        ))
    })?;
    let create = create.to_vec();
    Ok(Some(program(kind, name, create, &row)))
}
