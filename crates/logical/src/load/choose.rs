//! What of a dump is wanted. What is left out is listed, and so are the tables that miss it: a foreign
//! key may lead there.

use super::request::Request;
use super::source::listed;
use crate::objects::text::{Token, TokenKind, all_tokens, name_of};
use crate::objects::{
    Database, ObjectName, Objects, Program, SchemaObjectKind, Selection, Unmatched,
};
use evenkeel_op::{Error, Result};
use std::collections::BTreeSet;

/// What became of a choice.
pub(super) struct Chosen {
    /// What is not wanted.
    pub(super) left_out: Vec<ObjectName>,
    /// Foreign keys that lead to what is not wanted.
    pub(super) warnings: Vec<String>,
    /// Patterns to leave out by that match nothing.
    pub(super) unmatched: Unmatched,
}

/// Takes out what the request does not want.
///
/// Errors: `Usage`, with what there is, for a database or a pattern that nothing is called like, and
/// when nothing is left.
pub(super) fn choose(objects: &mut Objects, request: &Request) -> Result<Chosen> {
    let named = |name: &str| objects.databases.iter().any(|one| one.name == name);
    if let Some(missing) = request.databases.iter().find(|name| !named(name)) {
        return Err(no_database(missing, objects));
    }
    let names = named_like(objects, request);
    let selection = Selection {
        include: request.include.clone(),
        exclude: request.exclude.clone(),
        ..Selection::default()
    };
    let mut sieve = Sieve {
        unmatched: Unmatched::of(&selection.include, &selection.exclude),
        selection,
        request,
        left_out: Vec::new(),
    };
    objects.databases.retain_mut(|one| sieve.database(one));
    let Sieve {
        left_out,
        unmatched,
        ..
    } = sieve;
    let unmatched = unmatched.typed();
    unmatched
        .refuse()
        .map_err(|error| error.hint(format!("the dump has {}", listed(&names))))?;
    if !request.accounts {
        objects.accounts.clear();
    }
    if objects.databases.is_empty() && objects.accounts.is_empty() {
        return Err(Error::usage("there is nothing to load"));
    }
    Ok(Chosen {
        warnings: keys_that_lead_away(objects, &left_out),
        left_out,
        unmatched,
    })
}

/// Returns the error for a database that is not in the dump.
pub(super) fn no_database(missing: &str, objects: &Objects) -> Error {
    let there = objects.databases.iter().map(|one| one.name.clone());
    let there: Vec<String> = there.collect();
    Error::usage(format!("the dump has no database '{missing}'"))
        .hint(format!("it has {}", listed(&there)))
}

/// Returns the names that a pattern may match.
fn named_like(objects: &Objects, request: &Request) -> Vec<String> {
    let only = &request.databases;
    let databases = objects.databases.iter();
    let wanted = databases.filter(|one| only.is_empty() || only.contains(&one.name));
    let mut names = Vec::new();
    for one in wanted {
        let tables = one.tables.iter().map(|table| &table.name);
        let views = one.views.iter().map(|view| &view.program.name);
        let others = one.routines.iter().chain(&one.events).map(|it| &it.name);
        let all = tables.chain(views).chain(others);
        names.extend(all.map(|name| format!("{}.{name}", one.name)));
    }
    names
}

/// Lets through what is wanted, and remembers the rest.
struct Sieve<'r> {
    selection: Selection,
    unmatched: Unmatched,
    request: &'r Request,
    left_out: Vec<ObjectName>,
}

impl Sieve<'_> {
    /// Takes out of a database what is not wanted. Returns whether the database itself is: where only
    /// some objects are, one without any is not.
    fn database(&mut self, database: &mut Database) -> bool {
        let name = database.name.clone();
        let only = &self.request.databases;
        let is_named = only.is_empty() || only.contains(&name);
        let mut keep = |kind: SchemaObjectKind, object: &str, by: &str| {
            self.keep((kind, object), (&name, by), is_named)
        };
        let own = |program: &Program| (program.kind, program.name.clone());
        database
            .sequences
            .retain(|one| keep(SchemaObjectKind::Sequence, &one.name, &one.name));
        database
            .tables
            .retain(|one| keep(SchemaObjectKind::Table, &one.name, &one.name));
        database
            .views
            .retain(|one| keep(SchemaObjectKind::View, &one.program.name, &one.program.name));
        for programs in [&mut database.routines, &mut database.events] {
            programs.retain(|one| {
                let (kind, name) = own(one);
                keep(kind, &name, &name)
            });
        }
        // A trigger goes with its table.
        database.triggers.retain(|one| {
            let table = one.table.as_deref().unwrap_or_default();
            keep(SchemaObjectKind::Trigger, &one.name, table)
        });
        let is_empty = database.sequences.is_empty()
            && database.tables.is_empty()
            && database.views.is_empty()
            && database.routines.is_empty()
            && database.events.is_empty();
        let wanted = is_named && (self.selection.include.is_empty() || !is_empty);
        if !wanted {
            self.left_out.push(ObjectName {
                kind: SchemaObjectKind::Database,
                database: name.clone(),
                name,
            });
        }
        wanted
    }

    /// Returns whether an object is wanted; `by` is the name that patterns are held against.
    fn keep(
        &mut self,
        (kind, name): (SchemaObjectKind, &str),
        (database, by): (&str, &str),
        is_named: bool,
    ) -> bool {
        let skips = match kind {
            SchemaObjectKind::Function
            | SchemaObjectKind::Package
            | SchemaObjectKind::PackageBody => SchemaObjectKind::Procedure,
            other => other,
        };
        // Also what is skipped anyhow is there.
        let matches = is_named && self.unmatched.wants(&self.selection, database, by);
        let wanted = matches && !self.request.skip.contains(&skips);
        if !wanted {
            self.left_out.push(ObjectName {
                kind,
                database: database.to_owned(),
                name: name.to_owned(),
            });
        }
        wanted
    }
}

/// Says which foreign keys lead to tables of the dump that are left out.
fn keys_that_lead_away(objects: &Objects, left_out: &[ObjectName]) -> Vec<String> {
    let tables = left_out
        .iter()
        .filter(|one| one.kind == SchemaObjectKind::Table);
    let gone: BTreeSet<(&str, &str)> = tables.map(|one| (&*one.database, &*one.name)).collect();
    let mut warnings = Vec::new();
    for database in &objects.databases {
        for table in &database.tables {
            for (home, name) in referred(&table.create) {
                let home = home.unwrap_or_else(|| database.name.clone());
                if gone.contains(&(&*home, &*name)) {
                    warnings.push(format!(
                        "{}.{} has a foreign key to {home}.{name}, which is left out: the \
                         server rejects new rows until that table exists",
                        database.name, table.name
                    ));
                }
            }
        }
    }
    warnings.sort();
    warnings.dedup();
    warnings
}

/// Returns the tables that a CREATE TABLE statement's foreign keys refer to, with their schema where it
/// is said.
fn referred(create: &[u8]) -> Vec<(Option<String>, String)> {
    let tokens = all_tokens(create).unwrap_or_default();
    let name = |at: usize| {
        let token: Option<&Token> = tokens.get(at);
        let token = token.filter(|one| one.kind == TokenKind::Name)?;
        Some(name_of(token.of(create)))
    };
    let says = |(_, token): &(usize, &Token)| token.is_word(create, "REFERENCES");
    let places = tokens.iter().enumerate().filter(says).map(|(at, _)| at);
    let table = |at: usize| {
        let first = name(at + 1)?;
        let dot = tokens.get(at + 2).is_some_and(|one| one.is_sign(b'.'));
        match dot {
            true => Some((Some(first), name(at + 3)?)),
            false => Some((None, first)),
        }
    };
    places.filter_map(table).collect()
}
