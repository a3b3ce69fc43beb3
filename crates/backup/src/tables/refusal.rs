//! What is said of tables that an image lacks, or that cannot be in one.

use super::definitions::{Defined, engine_of};
use super::present::Present;
use evenkeel_op::{Error, Result};
use evenkeel_server::files::ServerFiles;
use evenkeel_server::tables::{ServerTables, covered};

/// Tables that are named; the others are counted.
const NAMED: usize = 20;

/// Refuses tables of engines that are not covered, or of which nobody says the engine.
pub(super) fn engines(
    listed: &ServerTables,
    defined: &[Defined],
    present: &Present<'_>,
) -> Result<()> {
    let mut others = Vec::new();
    for (table, engine) in &listed.tables {
        match engine.as_deref().or_else(|| engine_of(defined, table)) {
            Some(engine) if covered(engine).is_some() => {}
            Some(engine) => others.push(format!("{table} ({engine})")),
            // A table that the server cannot open: its files say enough, where there are any.
            None if has_rows(present.kinds(table)) => {}
            None => others.push(format!("{table} (the server does not report it)")),
        }
    }
    let unseen = |one: &&Defined| {
        let table = one.table.as_ref();
        table.is_none_or(|table| !listed.tables.contains_key(table))
    };
    for one in defined.iter().filter(unseen) {
        if covered(&one.engine).is_none() {
            let table = one.table.as_ref().map(ToString::to_string);
            let name = table.as_deref().unwrap_or(&one.file);
            others.push(format!("{name} ({})", one.engine));
        }
    }
    others.sort();
    others.dedup();
    if others.is_empty() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "there are tables in engines that evenkeel cannot back up: {}",
        some(&others)
    ))
    .hint("convert them (ALTER TABLE … ENGINE=InnoDB), or dump and drop them"))
}

/// Whether one of the files is one of rows.
fn has_rows(kinds: &[String]) -> bool {
    let rows = ["ibd", "MYD", "MAD", "CSV", "ARZ", "MRG", "QUE"];
    kinds.iter().any(|kind| rows.contains(&kind.as_str()))
}

/// Says that an image lacks tables.
pub(super) fn absent(names: &[String], files: &ServerFiles) -> Error {
    let mut error = Error::refused(format!(
        "the server lists tables whose files were not found: {}",
        some(names)
    ))
    .hint("check that its files are where the server keeps them")
    .hint(
        "the server cannot open a table without its file either: put the file back, import it \
         (ALTER TABLE … IMPORT TABLESPACE), or DROP TABLE",
    );
    for (path, why) in &files.excluded {
        // What is usual is not why a table is missing.
        if path.parent() == Some(&files.datadir) && !path.is_dir() {
            continue;
        }
        error = error.hint(format!("left out: {} ({why})", path.display()));
    }
    error
}

/// Lists names, up to a number.
fn some(names: &[String]) -> String {
    let mut text = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
