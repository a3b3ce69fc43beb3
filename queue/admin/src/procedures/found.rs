//! What a database has of the verbs.

use super::refusal::explain;
use super::routines::{self, MARK, ROUTINES, RoutineKind, TABLES};
use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Session, quote, quote_name};
use serde::Serialize;

/// One routine that a database has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Routine {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: RoutineKind,
    /// Its comment.
    pub stamp: String,
}

/// What a database has of the verbs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The database.
    pub database: String,
    /// The comment that this program's routines have on this server.
    pub stamp: String,
    /// Routines of ours, and others of the same names.
    pub routines: Vec<Routine>,
    /// The tables that they keep, those that are there.
    pub tables: Vec<String>,
    /// The queues that were made with them.
    pub queues: Vec<String>,
    #[serde(skip)]
    pub(crate) abilities: Abilities,
}

/// Asks a server what a database has.
///
/// Errors: those of the session; `Refused` for a database that is not there.
pub fn find(session: &mut Session, database: &str) -> Result<Found> {
    let abilities = Abilities::probe(session)?;
    let schema = quote(database);
    let known = format!("SELECT 1 FROM information_schema.schemata WHERE schema_name = {schema}");
    if session.value(&known).map_err(explain)?.is_none() {
        return Err(Error::refused(format!("there is no database {database}"))
            .hint("create it with CREATE DATABASE, or grant the account access to it"));
    }
    let names: Vec<String> = ROUTINES.iter().map(|one| quote(one.name)).collect();
    let sql = format!(
        "SELECT routine_name, routine_type, routine_comment FROM information_schema.routines \
         WHERE routine_schema = {schema} AND (routine_name IN ({}) OR routine_comment LIKE '{MARK}%') \
         ORDER BY routine_name",
        names.join(", ")
    );
    let rows = session.rows(&sql).map_err(explain)?;
    let routines = rows.iter().filter_map(|row| {
        Some(Routine {
            name: row.at(0)?.to_owned(),
            kind: match row.at(1)? {
                "FUNCTION" => RoutineKind::Function,
                _ => RoutineKind::Procedure,
            },
            stamp: row.at(2).unwrap_or_default().to_owned(),
        })
    });
    let routines = routines.collect();
    let names = TABLES.map(|(name, _)| quote(name)).join(", ");
    let tables = texts(
        session,
        &format!(
            "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = {schema} AND table_name IN ({names}) ORDER BY table_name"
        ),
    )?;
    let mut queues = Vec::new();
    if tables.iter().any(|name| name == TABLES[0].0) {
        let list = format!(
            "SELECT name FROM {}.{} ORDER BY name",
            quote_name(database),
            TABLES[0].0
        );
        queues = texts(session, &list)?;
    }
    Ok(Found {
        database: database.to_owned(),
        stamp: routines::stamp(&abilities),
        routines,
        tables,
        queues,
        abilities,
    })
}

fn texts(session: &mut Session, sql: &str) -> Result<Vec<String>> {
    let rows = session.rows(sql).map_err(explain)?;
    let first = rows.iter().filter_map(|row| row.at(0).map(str::to_owned));
    Ok(first.collect())
}

impl Found {
    /// Returns whether all is there, and of this program's version.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let has = |name| {
            let one = self.routines.iter().find(|one| one.name == name);
            one.is_some_and(|one| one.stamp == self.stamp)
        };
        ROUTINES.iter().all(|one| has(one.name)) && self.tables.len() == TABLES.len()
    }

    /// Returns the routines of our names that are not ours.
    pub(crate) fn strangers(&self) -> impl Iterator<Item = &Routine> {
        let all = self.routines.iter();
        all.filter(|one| !one.stamp.starts_with(MARK))
    }
}
