//! Whether an image has every schema and table that its server has, and what is kept of that.
//!
//! ```text
//! server's lists ──┐
//!                  ├─► absent? ─► engines? ─► record, stored with the generation ─► verify --boot compares
//! image's files ───┘
//! ```
//!
//! A walk of directories can leave a table out without a word: by a rule that takes its schema for
//! something else, by a link that leads nowhere. The server's own lists know nothing of such rules.

mod definitions;
mod present;
mod record;
mod refusal;

pub use record::TableRecord;

use definitions::Defined;
use evenkeel_innodb::names::TableName;
use evenkeel_op::Result;
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::files::{FoundFile, ServerFiles};
use evenkeel_server::lock::Limits;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::tables::{ServerTables, TableId, covered};
use present::Present;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// What an image's tables came to.
pub(crate) struct Checked {
    /// What the server lists and the image does not have, by the names that a person knows.
    pub(crate) lacking: Vec<String>,
    /// The tables that it has.
    pub(crate) record: TableRecord,
}

/// Compares what a server listed with its files, of which `place` says where they can be read. Refuses
/// tables of engines that are not covered.
pub(crate) fn of_server(
    listed: &ServerTables,
    files: &ServerFiles,
    place: impl Fn(&FoundFile) -> PathBuf,
) -> Result<Checked> {
    check(listed, &Present::of(files), files, place)
}

/// The same for a copy by the server's own tool: `names` are the files that came, `dirs` the directories.
pub(crate) fn of_copy<'n>(
    listed: &ServerTables,
    files: &ServerFiles,
    names: impl Iterator<Item = &'n str>,
    dirs: impl Iterator<Item = &'n str>,
) -> Result<Checked> {
    let present = Present::of_names(files, names, dirs);
    check(listed, &present, files, |file| file.path.clone())
}

fn check(
    listed: &ServerTables,
    present: &Present<'_>,
    files: &ServerFiles,
    place: impl Fn(&FoundFile) -> PathBuf,
) -> Result<Checked> {
    let defined = definitions::read(files, &listed.tables, place)?;
    refusal::engines(listed, &defined, present)?;
    let lacking = absent(listed, &defined, present, &files.datadir);
    let mut tables = names(listed);
    // The definitions were read on the server, and by now it may have tables again that the image does not.
    let defined = defined.into_iter().filter_map(|one| one.table);
    tables.extend(defined.filter(|table| present.has_file(table, "frm")));
    if !lacking.is_empty() {
        tables.retain(|table| !lacking.contains(&table.to_string()));
    }
    // Directories that no CREATE DATABASE made may be left out.
    let schemas = listed.schemas.iter();
    let schemas =
        schemas.filter(|name| !name.starts_with(present::RAW) && present.has_schema(name));
    let record = TableRecord::of(&schemas.cloned().collect(), &tables)?;
    Ok(Checked { lacking, record })
}

/// How often tables are looked for that seem to lack, and how long between two looks.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Keeps of what an image seems to lack what a walk does not find now either. For an image that is
/// point-in-time consistent, on a server where DDL continues: a table that was there before and after may
/// have been under another name in between, by a RENAME and another one back. One look that finds it is
/// enough: then the rules by which files are found do not leave it out, and at the image's point in time it
/// was not there.
pub(crate) fn keep_lacking(
    lacking: &mut Vec<String>,
    files: &ServerFiles,
    list: impl Fn() -> Result<ServerTables>,
) -> Result<()> {
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let mut listed = list()?;
        let now = files.rescan()?;
        listed.keep_common(&list()?);
        let again = of_server(&listed, &now, |file| file.path.clone())?.lacking;
        lacking.retain(|name| again.contains(name));
        if lacking.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Looks at the tables of a server that does not run: its files are all that says which there are. MySQL 8
/// keeps its definitions in InnoDB, so there is no record of its tables then.
pub(crate) fn of_files(
    files: &ServerFiles,
    place: impl Fn(&FoundFile) -> PathBuf,
) -> Result<Option<TableRecord>> {
    let defined = definitions::read(files, &Default::default(), place)?;
    let nobody = ServerTables::default();
    refusal::engines(&nobody, &defined, &Present::of(files))?;
    let tables: BTreeSet<TableId> = defined.into_iter().filter_map(|one| one.table).collect();
    match tables.is_empty() {
        true => Ok(None),
        false => TableRecord::of(&BTreeSet::new(), &tables).map(Some),
    }
}

/// Asks a server for its tables on a session of its own. Where DDL continues it may have to wait for some,
/// by default for a year.
pub(crate) fn listed_now(options: &ConnectOptions, limits: &Limits) -> Result<ServerTables> {
    let mut session = Session::open(options)?;
    let wait_s = limits.deadline.as_secs().max(1);
    session.run(&format!("SET SESSION lock_wait_timeout = {wait_s}"))?;
    let abilities = Abilities::probe(&mut session)?;
    ServerTables::read(&mut session, &abilities)
}

/// Says of a running server's tables what a backup would, for `doctor`.
pub fn assess(listed: &ServerTables, files: &ServerFiles) -> Result<String> {
    let checked = of_server(listed, files, |file| file.path.clone())?;
    if !checked.lacking.is_empty() {
        return Err(lacking(&checked.lacking, files));
    }
    Ok(format!(
        "{}, all with their files and in supported engines",
        evenkeel_op::units::count(checked.record.tables, "table")
    ))
}

/// Says that an image lacks tables.
pub(crate) fn lacking(names: &[String], files: &ServerFiles) -> evenkeel_op::Error {
    refusal::absent(names, files)
}

/// Returns the tables that a server lists: those that the account sees, and those that InnoDB's files are
/// named after.
pub(crate) fn names(listed: &ServerTables) -> BTreeSet<TableId> {
    let seen = listed.tables.keys().cloned();
    // Where each table has a definition's file, that one counts: InnoDB may have leftovers without one.
    let spaces = listed.tablespaces.iter().filter(|_| !listed.has_frm_files);
    seen.chain(spaces.filter_map(|path| table_of(path)))
        .collect()
}

/// The table that a tablespace below the data directory is of; none for one that may be of several.
fn table_of(path: &Path) -> Option<TableId> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    let (Some(Component::Normal(schema)), Some(Component::Normal(file)), None) =
        (parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let file = file.to_str()?.strip_suffix(".ibd")?;
    let found = TableName::of_dictionary(&format!("{}/{file}", schema.to_str()?));
    Some(TableId {
        schema: found.schema,
        name: found.table,
    })
}

/// Names what the server lists and the image does not have.
fn absent(
    listed: &ServerTables,
    defined: &[Defined],
    present: &Present<'_>,
    datadir: &Path,
) -> Vec<String> {
    let mut lacking = BTreeSet::new();
    for schema in listed
        .schemas
        .iter()
        .filter(|schema| !present.has_schema(schema))
    {
        lacking.insert(format!("schema {schema}"));
    }
    for (table, engine) in &listed.tables {
        let engine = engine
            .as_deref()
            .or_else(|| definitions::engine_of(defined, table));
        // A table that nobody could open, for a moment or for good, has its definition all the same.
        let known = engine.and_then(covered);
        // ARCHIVE keeps its definition with its rows.
        let definition = listed.has_frm_files && !present.has_file(table, "ARZ");
        let files = known.map_or(&[][..], |known| known.files);
        let mut wanted = files.iter().copied().chain(definition.then_some("frm"));
        if !wanted.all(|kind| present.has_file(table, kind)) {
            lacking.insert(table.to_string());
        }
    }
    for path in &listed.tablespaces {
        if !present.has_tablespace(path, datadir) {
            let table = table_of(path).map(|table| table.to_string());
            lacking.insert(table.unwrap_or_else(|| format!("tablespace {}", path.display())));
        }
    }
    lacking.into_iter().collect()
}

#[cfg(test)]
mod tests;
