//! What the target cannot hold is said before anything is made there.

use super::lost::lost;
use super::request::Request;
use super::source::{Source, listed};
use super::target::HISTORY;
use crate::objects::{Objects, Phase, Rendering, Runner, SchemaObjectKind, Statement};
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_wire::Refusal;
use std::collections::BTreeSet;

/// Where each table is tried, and dropped again.
const TRY: &str = "evenkeel_try";

/// Puts other collations in the place of those that the request or an alias replaces.
///
/// Errors: `Refused` names what has a collation that this server does not know.
pub(super) fn collations(
    session: &mut Session,
    objects: &mut Objects,
    request: &Request,
) -> Result<()> {
    for (from, to) in &request.collations {
        objects.replace_collation(from, to);
    }
    let known = known(session)?;
    let named: BTreeSet<String> = objects
        .collations()
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    // The same collation has two names: versions print the one, and some know only the other.
    for name in named.iter().filter(|name| !known.contains(*name)) {
        let other = match (name.strip_prefix("utf8_"), name.strip_prefix("utf8mb3_")) {
            (Some(rest), _) => format!("utf8mb3_{rest}"),
            (_, Some(rest)) => format!("utf8_{rest}"),
            _ => continue,
        };
        if known.contains(&other) {
            objects.replace_collation(name, &other);
        }
    }
    let mut unknown: Vec<(String, String)> = Vec::new();
    for (object, name) in objects.collations() {
        if !known.contains(&name) {
            unknown.push((name, object.to_string()));
        }
    }
    unknown.dedup();
    let Some((first, _)) = unknown.first() else {
        return Ok(());
    };
    let shown: Vec<String> = unknown
        .iter()
        .map(|(name, object)| format!("{object} has {name}"))
        .collect();
    Err(Error::refused(format!(
        "this server does not know a collation: {}",
        listed(&shown)
    ))
    .hint(format!(
        "choose one that it knows: --collation {first}=utf8mb4_unicode_520_ci"
    )))
}

/// Has this server take an old row of a system-versioned table, if the dump has any.
///
/// Errors: `Refused` where it does not.
pub(super) fn history(session: &mut Session, source: &Source) -> Result<()> {
    if !source.has_history() {
        return Ok(());
    }
    let name = quote_name(TRY);
    let drop = format!("DROP DATABASE IF EXISTS {name}");
    let taken = [
        HISTORY.to_owned(),
        drop.clone(),
        format!("CREATE DATABASE {name}"),
        format!("CREATE TABLE {name}.t (i INT) WITH SYSTEM VERSIONING"),
        format!(
            "INSERT INTO {name}.t (i, row_start, row_end) VALUES (1, '2001-01-01', '2002-01-01')"
        ),
    ]
    .iter()
    .try_for_each(|sql| session.run(sql));
    let dropped = session.run(&drop);
    taken.map_err(|error| match error.kind() {
        ErrorKind::Unreachable => error,
        _ => Error::refused(
            "the dump holds old rows of system-versioned tables, which this server does not accept",
        )
        .because(error)
        .hint("MariaDB 10.11 and later accept them, unless the option secure_timestamp forbids it")
        .hint("a dump without --history holds only current rows"),
    })?;
    dropped
}

fn known(session: &mut Session) -> Result<BTreeSet<String>> {
    let mut rows = session.rows("SELECT COLLATION_NAME FROM information_schema.COLLATIONS")?;
    // Newer MariaDBs list some without their character set, and here with it.
    let full =
        "SELECT FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY";
    rows.extend(session.rows(full).unwrap_or_default());
    Ok(rows
        .iter()
        .filter_map(|row| row.at(0).map(str::to_owned))
        .collect())
}

/// What became of a table that was tried.
#[derive(Default)]
struct Tried {
    /// What this server cannot hold, a sentence each.
    problems: Vec<String>,
    /// What it does not keep of what it holds.
    lost: Vec<String>,
}

/// Says what this server cannot hold: by what it is known for, and by trying each table where it
/// comes from another version. Returns what it would not keep of what it holds, a sentence each.
///
/// Errors: `Refused` with each of the objects and what the server says of it.
pub(super) fn all(
    session: &mut Session,
    objects: &Objects,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let abilities = Abilities::probe(session)?;
    if abilities.version_text == objects.version_text {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    let mut add = |what: &str, database: &str, name: &str, skip: &str| {
        problems.push(format!(
            "{what} {database}.{name}: {} has none ({skip} leaves it out)",
            abilities.flavour
        ));
    };
    for database in &objects.databases {
        let sequences = database.sequences.iter().filter(|_| !abilities.sequences);
        for one in sequences {
            add("sequence", &database.name, &one.name, "--no-sequences");
        }
        let packages = database.routines.iter().filter(|_| !abilities.packages);
        for one in packages.filter(|one| one.kind == SchemaObjectKind::Package) {
            add("package", &database.name, &one.name, "--no-routines");
        }
    }
    let tried = tables(session, objects, progress, cancel)?;
    problems.extend(tried.problems);
    match problems.len() {
        0 => Ok(tried.lost),
        count => Err(Error::refused(format!(
            "this server cannot hold {count} of the objects: {}",
            listed(&problems)
        ))
        .hint("leave them out with --exclude; nothing was created")),
    }
}

fn tables(
    session: &mut Session,
    objects: &Objects,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Tried> {
    let whole = Rendering {
        split_tables: false,
        directories: false,
        ..Rendering::default()
    };
    let statements = objects.statements(Phase::Tables, &whole);
    let count = Some(statements.len() as u64);
    progress.phase("trying the tables", count, evenkeel_op::Unit::Items);
    let name = quote_name(TRY);
    session.run(&format!("DROP DATABASE IF EXISTS {name}"))?;
    session.run(&format!("CREATE DATABASE {name}"))?;
    let found = try_all(session, objects, statements, progress, cancel);
    let dropped = session.run(&format!("DROP DATABASE IF EXISTS {name}"));
    progress.end();
    let found = found?;
    dropped?;
    Ok(found)
}

fn try_all(
    session: &mut Session,
    objects: &Objects,
    statements: Vec<Statement>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Tried> {
    let mut found = Tried::default();
    let mut runner = Runner::new(session, objects)?;
    for statement in statements {
        cancel.check()?;
        let object = statement.object.clone();
        let tried = Statement {
            database: Some(TRY.to_owned()),
            ..statement
        };
        let dropped = Statement {
            sql: format!("DROP TABLE IF EXISTS {}", quote_name(&object.name)).into_bytes(),
            ..tried.clone()
        };
        match runner.run(&tried) {
            Ok(()) => {
                let made = runner.table(&object.name)?;
                for what in lost(&tried.sql, made.as_bytes()) {
                    let text = format!("{object}: this server does not preserve {what}");
                    found.lost.push(text);
                }
                runner.run(&dropped)?;
            }
            Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
            // Sequences are not tried.
            Err(error) if Refusal::of(&error) == Some(Refusal::NoSequence) => {}
            Err(error) => found.problems.push(format!("{object}: {}", said(&error))),
        }
        progress.advance(1);
    }
    Ok(found)
}

/// Returns what the server said, without the statement.
fn said(error: &Error) -> String {
    let chain = error.chain();
    let text = chain
        .find("ERROR ")
        .map_or(chain.as_str(), |at| &chain[at..]);
    let end = text.find(", in: ").unwrap_or(text.len());
    text[..end].to_owned()
}
