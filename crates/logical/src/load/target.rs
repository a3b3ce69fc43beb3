//! The server that is loaded: its sessions, what is in the way there, and its `local_infile`.

use super::request::{Method, Request};
use super::source::{listed, names};
use super::state;
use crate::dump::end_of_time;
use crate::objects::{ObjectName, Objects, SchemaObjectKind};
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use std::collections::BTreeSet;

/// What every session is set to: it may be idle for days while others work, and waits for locks of
/// its fellows as long as they work.
const WAIT_FOR_LOCKS: [&str; 3] = [
    "SET SESSION wait_timeout = 2147483, net_read_timeout = 3600, net_write_timeout = 3600",
    "SET SESSION innodb_lock_wait_timeout = 3600, lock_wait_timeout = 86400",
    // Rows may be older than a CHECK that they do not meet.
    "SET SESSION foreign_key_checks = 0 /*M!100201 , check_constraint_checks = 0 */",
];
/// What sessions that load rows are set to beside it: zeros and dates are stored as they were, and what
/// is warned of is a value.
const ROWS: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', \
                    time_zone = '+00:00', sql_notes = 0";
/// What lets a session say when rows held.
pub(super) const HISTORY: &str = "SET SESSION system_versioning_insert_history = 1";
/// Where a connection that takes old rows has this server's end of time.
pub(super) const END: &str = "@evenkeel_end_of_time";
const NO_BINLOG: &str = "SET SESSION sql_log_bin = 0";

/// Opens a session for statements.
///
/// Errors: those of the connection; `Refused` where the binary log cannot be left out.
pub(super) fn session(options: &ConnectOptions, request: &Request) -> Result<Session> {
    let mut session = Session::open(options)?;
    for sql in WAIT_FOR_LOCKS {
        session.run(sql)?;
    }
    if !request.binlog {
        session.run(NO_BINLOG).map_err(no_binlog)?;
    }
    Ok(session)
}

/// Opens a connection for rows.
pub(super) fn connection(
    options: &ConnectOptions,
    request: &Request,
    names: &str,
    cancel: &Cancel,
) -> Result<Connection> {
    let mut connection = Connection::open(options, cancel)?;
    for sql in WAIT_FOR_LOCKS {
        connection.run(sql)?;
    }
    connection.run(ROWS)?;
    connection.run(&format!("SET NAMES {names}"))?;
    if !request.binlog {
        connection.run(NO_BINLOG).map_err(no_binlog)?;
    }
    Ok(connection)
}

/// Has a connection for rows take old rows of system-versioned tables.
pub(super) fn take_history(connection: &mut Connection) -> Result<()> {
    connection.run(HISTORY)?;
    connection.run(&format!("SET {END} = {}", end_of_time()))?;
    Ok(())
}

fn no_binlog(error: Error) -> Error {
    Error::new(error.kind(), "this account may not turn off the binary log")
        .because(error)
        .hint("give it SUPER, BINLOG ADMIN or SYSTEM_VARIABLES_ADMIN, or load without --no-binlog")
}

/// Returns what is in the way: objects of the load that are there already, of whatever kind. A table
/// and a view cannot both have a name; routines and events have names of their own.
pub(super) fn in_the_way(session: &mut Session, objects: &Objects) -> Result<Vec<ObjectName>> {
    let databases = objects.databases.iter();
    let databases: Vec<String> = databases.map(|one| quote(&one.name)).collect();
    if databases.is_empty() {
        return Ok(Vec::new());
    }
    let list = databases.join(", ");
    let space = |kind: SchemaObjectKind| match kind {
        SchemaObjectKind::View | SchemaObjectKind::Sequence => SchemaObjectKind::Table,
        other => other,
    };
    let wanted: BTreeSet<ObjectName> = names(objects)
        .into_iter()
        .map(|one| ObjectName {
            kind: space(one.kind),
            ..one
        })
        .collect();
    let there = [
        format!(
            "SELECT TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA IN ({list})"
        ),
        format!(
            "SELECT ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES \
             WHERE ROUTINE_SCHEMA IN ({list})"
        ),
        format!(
            "SELECT 'EVENT', EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS \
             WHERE EVENT_SCHEMA IN ({list})"
        ),
    ];
    let mut found = Vec::new();
    for sql in there {
        for row in session.rows(&sql)? {
            let text = |at: usize| row.at(at).unwrap_or_default().to_owned();
            let object = ObjectName {
                kind: kind_of(&text(0)),
                database: text(1),
                name: text(2),
            };
            let looked_for = ObjectName {
                kind: space(object.kind),
                ..object.clone()
            };
            if wanted.contains(&looked_for) {
                found.push(object);
            }
        }
    }
    Ok(found)
}

/// Returns what the server's lists mean by a word.
fn kind_of(word: &str) -> SchemaObjectKind {
    const NAMED: [SchemaObjectKind; 7] = [
        SchemaObjectKind::View,
        SchemaObjectKind::Sequence,
        SchemaObjectKind::Procedure,
        SchemaObjectKind::Function,
        SchemaObjectKind::Package,
        SchemaObjectKind::PackageBody,
        SchemaObjectKind::Event,
    ];
    let named = NAMED.into_iter().find(|kind| kind.sql() == word);
    // BASE TABLE, SYSTEM VERSIONED
    named.unwrap_or(SchemaObjectKind::Table)
}

/// Returns the error for what is in the way.
pub(super) fn refuse(found: &[ObjectName]) -> Error {
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    Error::refused(format!(
        "{} of the dump's objects already exist on this server: {}",
        found.len(),
        listed(&shown)
    ))
    .hint("leave them out with --exclude, or let --replace show what it would drop")
    .hint("or load them beside the existing ones, into another database: --into OLD=NEW")
}

/// Returns the statement that drops an object.
pub(super) fn drop_statement(object: &ObjectName) -> String {
    let full = format!(
        "{}.{}",
        quote_name(&object.database),
        quote_name(&object.name)
    );
    format!("DROP {} IF EXISTS {full}", object.kind.sql())
}

/// Whether and how rows may be sent as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// LOAD DATA LOCAL.
    LoadData,
    /// INSERT.
    Insert,
}

/// Finds out how rows get in, and switches `local_infile` on where that is needed and allowed. What
/// it was is noted first: also after a kill the next run puts it back.
pub(super) fn open_the_way(
    session: &mut Session,
    method: Method,
    progress: &dyn Progress,
) -> Result<Way> {
    if method == Method::Insert {
        return Ok(Way::Insert);
    }
    let is_on = |value: Option<String>| value.is_some_and(|value| value == "ON" || value == "1");
    let now = session.variable("local_infile")?;
    if is_on(now.clone()) {
        return Ok(Way::LoadData);
    }
    if state::local_infile_before(session)?.is_none() {
        state::note_local_infile(session, Some(now.as_deref().unwrap_or("OFF")))?;
    }
    fail::fail_point!("load::local_infile");
    match session.run("SET GLOBAL local_infile = 1") {
        Ok(()) => Ok(Way::LoadData),
        Err(error) if error.kind() == ErrorKind::Unreachable => Err(error),
        Err(error) => {
            state::note_local_infile(session, None)?;
            if method == Method::LoadData {
                return Err(Error::refused("local_infile is off on this server")
                    .because(error)
                    .hint("turn it on, or load with --method insert"));
            }
            progress.warn(
                "local_infile is off and this account may not turn it on: rows are \
                 loaded with INSERT, which is slower"
                    .to_owned(),
            );
            Ok(Way::Insert)
        }
    }
}

/// Puts `local_infile` back to what it was.
pub(super) fn close_the_way(session: &mut Session) -> Result<()> {
    if let Some(before) = state::local_infile_before(session)? {
        let value = if before == "ON" || before == "1" {
            1
        } else {
            0
        };
        session.run(&format!("SET GLOBAL local_infile = {value}"))?;
        state::note_local_infile(session, None)?;
    }
    Ok(())
}
