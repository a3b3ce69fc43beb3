//! Where rows and objects come from: tables with chunks.
//!
//! Of `evenkeel dump`'s files it is known how many rows and which bytes are in them; what `foreign`
//! reads was written by other programs, which say less.

use super::choose::{Chosen, choose};
use super::csv::Csv;
use super::{Request, foreign, into};
use crate::dump::{ColumnEntry, Format, MANIFEST, Manifest, Place, TableEntry, is_hex};
use crate::objects::{self, Kind, ObjectName, Objects};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;
use evenkeel_server::coordinates::Coordinates;
use foreign::Found;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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
    pub(super) place: Place,
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
pub(super) struct Table {
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

impl Table {
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

    /// Has its rows go into a schema by its new name.
    fn rename(&mut self, names: &BTreeMap<String, String>) {
        for chunk in &mut self.chunks {
            if let Shape::File(sql) = &mut chunk.shape {
                *sql = objects::in_statement(sql, names);
            }
        }
        if let Some(new) = names.get(&self.schema) {
            self.schema.clone_from(new);
        }
    }

    /// Returns its size in bytes, before it was packed if that is known.
    pub(super) fn bytes(&self) -> u64 {
        self.chunks.iter().map(Chunk::size).sum()
    }
}

/// What is to be loaded.
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
    pub(super) tables: Vec<Table>,
    /// Which instant of the binary log it shows.
    pub(super) coordinates: Coordinates,
    /// Another program wrote it.
    pub(super) foreign: bool,
    /// What is worth telling.
    pub(super) notes: Vec<String>,
}

/// Reads what `dump` wrote.
fn own(place: &Place) -> Result<Found> {
    let (manifest, identity) = Manifest::read_at(place)?;
    let objects = manifest.objects_at(place)?;
    let how = (packing(&manifest)?, manifest.format);
    let mut number = 0;
    let tables = manifest.tables.iter();
    Ok(Found {
        objects,
        tables: tables
            .map(|entry| table(place, entry, how, &mut number))
            .collect(),
        coordinates: manifest.coordinates.clone(),
        identity,
        notes: Vec::new(),
    })
}

impl Source {
    /// Reads a dump's directory, without what the request leaves out.
    ///
    /// Errors: `Usage` for what is no dump, or when nothing is left; `Failed` names files that are
    /// not there or not as long as they were.
    pub(super) fn open(request: &Request) -> Result<Self> {
        let place = request.place();
        let dir = &request.input;
        let is_there = |name: &str| request.store.is_none() && dir.join(name).exists();
        let (found, foreign) = match () {
            () if is_there(MANIFEST) => (own(&place)?, false),
            () if is_there(foreign::OVERVIEW) => (foreign::shell(dir)?, true),
            () if is_there(foreign::METADATA) || is_there("metadata.partial") => {
                (foreign::mydumper(dir)?, true)
            }
            () => (own(&place)?, false),
        };
        let mut objects = found.objects;
        if foreign && request.accounts {
            return Err(Error::usage("--users is for dumps of evenkeel")
                .hint("run the accounts' statements with a client, then load without --users"));
        }
        let Chosen {
            left_out,
            mut warnings,
            unmatched,
        } = choose(&mut objects, request)?;
        let wanted: BTreeSet<(&str, &str)> = objects
            .databases
            .iter()
            .flat_map(|database| {
                let tables = database.tables.iter();
                tables.map(|table| (&*database.name, &*table.name))
            })
            .collect();
        let mut tables = found.tables;
        tables.retain(|table| wanted.contains(&(&*table.schema, &*table.name)));
        let names = into::names(request, &objects, &left_out)?;
        if !names.is_empty() {
            warnings.extend(objects.rename(&names));
            tables.iter_mut().for_each(|one| one.rename(&names));
        }
        tables.sort_by_key(|table| std::cmp::Reverse(table.bytes()));
        let source = Self {
            id: id(&found.identity, request),
            dump: blake3::hash(&found.identity).to_hex().to_string(),
            tables,
            objects,
            left_out,
            warnings,
            coordinates: found.coordinates,
            foreign,
            notes: found
                .notes
                .into_iter()
                .chain(unmatched.warnings())
                .collect(),
        };
        source.files_are_there()?;
        Ok(source)
    }

    /// Looks whether each file of rows is there and has its length, before anything is made of it.
    fn files_are_there(&self) -> Result<()> {
        let chunks = self.tables.iter().flat_map(|table| &table.chunks);
        let chunks: Vec<&Chunk> = chunks.collect();
        let paths: Vec<&Path> = chunks.iter().map(|chunk| &*chunk.path).collect();
        let found = chunks.first().map(|chunk| chunk.place.lengths(&paths));
        let mut wrong = Vec::new();
        for (chunk, found) in chunks.iter().zip(found.into_iter().flatten()) {
            let shown = chunk.path.display();
            match found {
                Err(error) => wrong.push(format!("{shown}: {error}")),
                Ok(found) if found != chunk.bytes_stored => wrong.push(format!(
                    "{shown}: it has {found} bytes, and was written with {}",
                    chunk.bytes_stored
                )),
                Ok(_) => {}
            }
        }
        match wrong.len() {
            0 => Ok(()),
            count => Err(Error::failed(format!(
                "the dump is not whole, {count} of its files are missing or cut: {}",
                listed(&wrong)
            ))
            .hint("bring these files back; nothing was loaded")),
        }
    }

    /// Returns whether old rows of system-versioned tables are to be loaded.
    pub(super) fn has_history(&self) -> bool {
        self.tables.iter().any(Table::has_history)
    }

    /// Returns a table as it was made.
    pub(super) fn described(&self, table: &Table) -> Option<&objects::Table> {
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

fn packing(manifest: &Manifest) -> Result<Packing> {
    match manifest.compression.as_str() {
        "none" => Ok(Packing::None),
        "gzip" => Ok(Packing::Gzip),
        "zstd" => Ok(Packing::Zstd),
        other => Err(Error::failed(format!(
            "the dump is packed with {other}, which this program does not know"
        ))
        .hint("load it with a newer evenkeel")),
    }
}

/// Returns whether rows of an engine go when their transaction does not commit.
pub(super) fn is_transactional(engine: &str) -> bool {
    TRANSACTIONAL
        .iter()
        .any(|one| one.eq_ignore_ascii_case(engine))
}

fn table(
    place: &Place,
    entry: &TableEntry,
    (packing, format): (Packing, Format),
    number: &mut u64,
) -> Table {
    let shape = match format {
        Format::Tab => Shape::Tab,
        Format::Sql => Shape::Statements,
        Format::Csv | Format::CsvHeader => {
            let columns = entry.columns.iter();
            let hex =
                columns.map(|one| !one.by_number && is_hex(&one.full_type, one.charset.as_deref()));
            Shape::Csv(Csv {
                hex: hex.collect(),
                header: format == Format::CsvHeader,
            })
        }
    };
    let chunks = entry.chunks.iter().map(|chunk| {
        *number += 1;
        Chunk {
            number: *number,
            path: match place {
                Place::Directory(dir) => dir.join(&chunk.file),
                Place::Store(_) => PathBuf::from(&chunk.file),
            },
            place: place.clone(),
            rows: Some(chunk.rows),
            bytes: Some(chunk.bytes),
            bytes_stored: chunk.bytes_stored,
            blake3: Some(chunk.blake3.clone()),
            packing,
            shape: shape.clone(),
        }
    });
    Table {
        chunks: chunks.collect(),
        schema: entry.schema.clone(),
        name: entry.name.clone(),
        transactional: is_transactional(&entry.engine),
        columns: entry.columns.clone(),
        rows: Some(entry.rows),
    }
}

/// Names a load by its source and by what decides the outcome, so that it is not resumed in
/// another way.
fn id(manifest: &[u8], request: &Request) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(manifest);
    hasher.update(request.choices().as_bytes());
    hasher.finalize().to_hex().to_string()
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
            .for_each(|one| add(Kind::View, &one.program.name));
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
            .for_each(|one| add(Kind::Table, &one.name));
        database
            .sequences
            .iter()
            .for_each(|one| add(Kind::Sequence, &one.name));
    }
    all
}
