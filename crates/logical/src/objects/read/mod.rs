//! Asks a server for its objects: lists from `information_schema`, once for each schema, then one
//! `SHOW CREATE` for each object.

mod accounts;
mod ask;
mod columns;
mod databases;
mod grants;
mod programs;
mod reader;
mod routines;
mod tables;
mod views;

use super::{Database, Objects, SchemaObjectKind, Selection, Unmatched};
use evenkeel_op::{Context, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Session, quote_name};
use grants::Grants;
use reader::Reader;

/// Reads the objects of a server.
///
/// The session is left with other settings (character set of results, time zone, default schema):
/// give it one of its own. Nothing is locked: hold changes of definitions off, or look at
/// [`Objects::gone`] afterwards.
///
/// Errors: those of the session; `Refused`, with the object and the privilege in the message, for
/// what the account may not read: nothing is left out in silence.
pub fn read(session: &mut Session, selection: &Selection) -> Result<Objects> {
    read_and_match(session, selection).map(|(objects, _)| objects)
}

/// Reads the objects of a server, and says which patterns of the selection match nothing.
///
/// Errors: as [`read`].
pub fn read_and_match(
    session: &mut Session,
    selection: &Selection,
) -> Result<(Objects, Unmatched)> {
    let abilities = Abilities::probe(session)?;
    // Times in definitions are shown in the session's zone, and texts come in their own character
    // set. MySQL 8 would give sizes that are a day old.
    session.run(
        "SET SESSION time_zone = '+00:00', character_set_results = NULL, sql_quote_show_create = 1 \
         /*!80003 , information_schema_stats_expiry = 0 */ \
         /*!80017 , print_identified_with_as_hex = ON */",
    )?;
    let collation = "SELECT DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS \
                     WHERE CHARACTER_SET_NAME = 'utf8mb4'";
    let utf8mb4_collation = session.value(collation)?.unwrap_or_default();
    let grants = Grants::of_session(session)?;
    let mut reader = Reader {
        session,
        selection,
        abilities,
        grants,
        gone: Vec::new(),
        unmatched: Unmatched::of(&selection.include, &selection.exclude),
    };
    let mut databases = Vec::new();
    for mut database in databases::list(&mut reader)? {
        if reader.objects(&mut database)? {
            databases.push(database);
        }
    }
    let accounts = match selection.accounts {
        true => accounts::read(&mut reader)?,
        false => Vec::new(),
    };
    let objects = Objects {
        flavour: reader.abilities.flavour,
        version_text: reader.abilities.version_text,
        utf8mb4_collation,
        databases,
        accounts,
        gone: reader.gone,
    };
    Ok((objects, reader.unmatched.typed()))
}

impl Reader<'_> {
    /// Fills in a schema's objects; returns false for a schema that is gone.
    fn objects(&mut self, database: &mut Database) -> Result<bool> {
        let name = database.name.clone();
        // Texts name what lies in the default schema without it.
        let enter = format!("USE {}", quote_name(&name));
        match ask::try_rows(self.session, &enter) {
            Ok(_) => {}
            Err(mysql::Error::MySqlError(e)) if e.code == 1049 => {
                self.is_gone(SchemaObjectKind::Database, &name, &name);
                return Ok(false);
            }
            Err(error) => return Err(evenkeel_server::connect::query_error(&error, &enter)),
        }
        let work = || format!("failed to read the objects of {name}");
        let listed = tables::list(self, &name).context(work)?;
        let columns = columns::columns(self, &name).context(work)?;
        tables::read(self, database, &listed, &columns).context(work)?;
        if self.selection.views {
            database.views = views::read(self, &name, &listed, &columns).context(work)?;
        }
        if self.selection.routines {
            database.routines = routines::read(self, &name).context(work)?;
        }
        if self.selection.triggers {
            database.triggers = programs::triggers(self, &name, &listed).context(work)?;
        }
        if self.selection.events {
            database.events = programs::events(self, &name).context(work)?;
        }
        Ok(true)
    }
}
