//! Where rows and objects come from: tables with chunks.
//!
//! Of `evenkeel dump`'s files it is known how many rows and which bytes are in them; what `foreign`
//! reads was written by other programs, which say less.

use super::csv::Csv;
use crate::dump::{ColumnEntry, DumpLocation};
use crate::objects::{self, ObjectName, Objects, SchemaObjectKind};
use evenkeel_server::connect::quote_name;
use evenkeel_server::coordinates::Coordinates;
use std::path::PathBuf;

/// Engines that take rows back when a transaction does not commit.
const TRANSACTIONAL: [&str; 3] = ["InnoDB", "ROCKSDB", "TokuDB"];
/// How many names a message lists.
pub(super) const NAMED: usize = 8;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
    Zstd,
}

/// What rows look like in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// Tab-separated lines, as `dump` writes them.
    Tab,
    /// Comma-separated lines, as `dump` writes them; read as tab-separated ones.
    Csv(Csv),
    /// INSERT statements.
    Statements,
    /// What this LOAD DATA statement says.
    File(String),
}

impl Shape {
    /// Returns whether rows come as `dump`'s tab-separated lines.
    pub(super) fn is_lines(&self) -> bool {
        matches!(self, Self::Tab | Self::Csv(_))
    }
}

/// A file of rows. What other programs wrote has no number of rows and no hash.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    /// Its number among all chunks of the source, whatever is left out of the load.
    pub(super) number: u64,
    /// Where it is, in `place`.
    pub(super) path: PathBuf,
    /// The dump's own place; paths of directories are whole and need none.
    pub(super) place: DumpLocation,
    /// Rows in it.
    pub(super) rows: Option<u64>,
    /// Bytes before they were packed.
    pub(super) bytes: Option<u64>,
    /// Bytes of the file.
    pub(super) bytes_stored: u64,
    /// BLAKE3 of the bytes before they were packed, in hexadecimal.
    pub(super) blake3: Option<String>,
    pub(super) packing: Packing,
    pub(super) shape: Shape,
}

impl Chunk {
    /// Returns its size in bytes, before it was packed if that is known.
    pub(super) fn size(&self) -> u64 {
        self.bytes.unwrap_or(self.bytes_stored)
    }
}

/// A table with rows.
#[derive(Debug, Clone)]
pub(super) struct SourceTable {
    pub(super) schema: String,
    pub(super) name: String,
    /// Rows that did not commit are not there.
    pub(super) transactional: bool,
    /// What rows hold, in order.
    pub(super) columns: Vec<ColumnEntry>,
    /// How many there are; `None` where nobody wrote that down.
    pub(super) rows: Option<u64>,
    /// In the order of the table's key.
    pub(super) chunks: Vec<Chunk>,
}

impl SourceTable {
    /// Returns the name for people.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns whether old rows of a system-versioned table are among the rows.
    pub(super) fn has_history(&self) -> bool {
        self.columns.iter().any(|one| one.row_time.is_some())
    }

    /// Returns what to select from, for all rows that are loaded.
    pub(super) fn from(&self) -> String {
        let quoted = format!("{}.{}", quote_name(&self.schema), quote_name(&self.name));
        match self.has_history() {
            true => format!("{quoted} FOR SYSTEM_TIME ALL"),
            false => quoted,
        }
    }

    /// Returns its size in bytes, before it was packed if that is known.
    pub(super) fn bytes(&self) -> u64 {
        self.chunks.iter().map(Chunk::size).sum()
    }
}

/// What should be loaded.
#[derive(Debug)]
pub(super) struct Source {
    /// What this load is called in the target: the same source, loaded in the same way.
    pub(super) id: String,
    /// What the source is called, however it is loaded.
    pub(super) dump: String,
    pub(super) objects: Objects,
    /// Of the dump, what the request leaves out.
    pub(super) left_out: Vec<ObjectName>,
    /// What the user has to deal with.
    pub(super) warnings: Vec<String>,
    /// The largest first.
    pub(super) tables: Vec<SourceTable>,
    /// Which point in time of the binary log it shows.
    pub(super) coordinates: Coordinates,
    /// Another program wrote it.
    pub(super) foreign: bool,
    /// What is worth telling.
    pub(super) notes: Vec<String>,
}

impl Source {
    /// Returns whether old rows of system-versioned tables must be loaded.
    pub(super) fn has_history(&self) -> bool {
        self.tables.iter().any(SourceTable::has_history)
    }

    /// Returns a table as it was made.
    pub(super) fn described(&self, table: &SourceTable) -> Option<&objects::TableObject> {
        let databases = self.objects.databases.iter();
        let mut of_schema = databases.filter(|one| one.name == table.schema);
        of_schema.find_map(|one| one.tables.iter().find(|it| it.name == table.name))
    }

    /// Returns how many rows there are, if that is known.
    pub(super) fn rows(&self) -> Option<u64> {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

/// Returns the first few, joined.
pub(super) fn listed(names: &[String]) -> String {
    let mut text = names[..names.len().min(NAMED)].join("; ");
    if names.len() > NAMED {
        text.push_str(&format!("; and {} more", names.len() - NAMED));
    }
    text
}

/// Returns whether rows of an engine go when their transaction does not commit.
pub(super) fn is_transactional(engine: &str) -> bool {
    TRANSACTIONAL
        .iter()
        .any(|one| one.eq_ignore_ascii_case(engine))
}

/// Returns the names of everything that has one in a schema, but for triggers, which go with their
/// tables.
pub(super) fn names(objects: &Objects) -> Vec<ObjectName> {
    let mut all = Vec::new();
    for database in &objects.databases {
        let mut add = |kind, name: &str| {
            all.push(ObjectName {
                kind,
                database: database.name.clone(),
                name: name.to_owned(),
            });
        };
        database
            .views
            .iter()
            .for_each(|one| add(SchemaObjectKind::View, &one.program.name));
        database
            .routines
            .iter()
            .for_each(|one| add(one.kind, &one.name));
        database
            .events
            .iter()
            .for_each(|one| add(one.kind, &one.name));
        database
            .tables
            .iter()
            .for_each(|one| add(SchemaObjectKind::Table, &one.name));
        database
            .sequences
            .iter()
            .for_each(|one| add(SchemaObjectKind::Sequence, &one.name));
    }
    all
}
