//! Tables that only their definitions tell of: an account that may not see them made the backup, or the
//! server did not run.

use super::present::spellings;
use evenkeel_op::Result;
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};
use evenkeel_server::tables::{Definition, TableId, definition};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A table that a definition is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Defined {
    /// The table; none where the file's name does not say it all.
    pub(super) table: Option<TableId>,
    /// The file.
    pub(super) file: String,
    pub(super) engine: String,
}

/// The engine that a definition says of a table.
pub(super) fn engine_of<'d>(defined: &'d [Defined], table: &TableId) -> Option<&'d str> {
    let of_it = |one: &&Defined| one.table.as_ref() == Some(table);
    defined.iter().find(of_it).map(|one| one.engine.as_str())
}

/// Reads the definitions of tables whose engine the server did not tell. They are small, but many: where the
/// account sees its tables, next to none is read.
pub(super) fn read(
    files: &ServerFiles,
    seen: &BTreeMap<TableId, Option<String>>,
    place: impl Fn(&FoundFile) -> PathBuf,
) -> Result<Vec<Defined>> {
    let mut found = Vec::new();
    let definitions = files
        .files
        .iter()
        .filter(|file| file.class == FileClass::Definition);
    for file in definitions {
        let Some((dir, stem, kind)) = parts(&file.name) else {
            continue;
        };
        let table = match kind {
            "frm" => spelled(dir, stem),
            // Its name has a number behind it, and may be cut.
            "sdi" => None,
            _ => continue,
        };
        let is_reported = |table: &TableId| seen.get(table).is_some_and(Option::is_some);
        if dir == "performance_schema"
            || stem.starts_with("#sql")
            || table.as_ref().is_some_and(is_reported)
        {
            continue;
        }
        if let Some(Definition::Table(engine)) = definition(&file.name, &place(file))? {
            found.push(Defined {
                table,
                file: file.name.clone(),
                engine,
            });
        }
    }
    Ok(found)
}

/// Directory, stem and extension.
fn parts(name: &str) -> Option<(&str, &str, &str)> {
    let (above, file) = name.rsplit_once('/')?;
    let dir = match above.rsplit_once('/') {
        Some((_, dir)) => dir,
        None => above.strip_prefix("schema-")?,
    };
    let (stem, kind) = file.rsplit_once('.')?;
    Some((dir, stem, kind))
}

/// The table's first name: the one in the server's encoding, where there is one.
fn spelled(dir: &str, stem: &str) -> Option<TableId> {
    Some(TableId {
        schema: spellings(dir).next()?,
        name: spellings(stem).next()?,
    })
}
