//! Where rows and objects come from: tables with chunks, in files that were hashed when written.
//!
//! Only [`Source::open`] knows `evenkeel dump`'s directories: another kind of directory is another
//! way to fill in a [`Source`].

use super::Request;
use crate::dump::{ColumnEntry, Format, MANIFEST, Manifest, TableEntry};
use crate::objects::{Kind, ObjectName, Objects};
use evenkeel_op::{Context, Error, Result};
use std::collections::BTreeSet;
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

/// A file of rows.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    /// Its number among all chunks of the source, whatever is left out of the load.
    pub(super) number: u64,
    /// Where it is.
    pub(super) path: PathBuf,
    /// Rows in it.
    pub(super) rows: u64,
    /// Bytes before they were packed.
    pub(super) bytes: u64,
    /// Bytes of the file.
    pub(super) bytes_stored: u64,
    /// BLAKE3 of the bytes before they were packed, in hexadecimal.
    pub(super) blake3: String,
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
    pub(super) rows: u64,
    /// In the order of the table's key.
    pub(super) chunks: Vec<Chunk>,
}

impl Table {
    /// Returns the name for people.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns its size before it was packed, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes).sum()
    }
}

/// What is to be loaded.
#[derive(Debug)]
pub(super) struct Source {
    /// What this load is called in the target: the same source, loaded in the same way.
    pub(super) id: String,
    pub(super) format: Format,
    pub(super) packing: Packing,
    pub(super) objects: Objects,
    /// The largest first.
    pub(super) tables: Vec<Table>,
}

impl Source {
    /// Reads a dump's directory, without what the request leaves out.
    ///
    /// Errors: `Usage` for what is no dump, or when nothing is left; `Failed` names files that are
    /// not there or not as long as they were.
    pub(super) fn open(request: &Request) -> Result<Self> {
        let dir = &request.input;
        let manifest = Manifest::read(dir)?;
        let mut objects = manifest.objects(dir)?;
        let path = dir.join(MANIFEST);
        let text = std::fs::read(&path).context(|| format!("failed to read {}", path.display()))?;
        leave_out(&mut objects, request)?;
        let wanted: BTreeSet<(&str, &str, &str)> = objects
            .databases
            .iter()
            .flat_map(|database| {
                let tables = database.tables.iter();
                tables.map(|table| (&*database.name, &*table.name, &*table.engine))
            })
            .collect();
        let mut number = 0;
        let mut tables = Vec::new();
        for entry in &manifest.tables {
            let table = table(dir, entry, &mut number);
            let place = (&*table.schema, &*table.name, &*entry.engine);
            if wanted.contains(&place) {
                tables.push(table);
            }
        }
        tables.sort_by_key(|table| std::cmp::Reverse(table.bytes()));
        let source = Self {
            id: id(&text, request),
            format: manifest.format,
            packing: packing(&manifest)?,
            tables,
            objects,
        };
        source.files_are_there()?;
        Ok(source)
    }

    /// Looks whether each file of rows is there and has its length, before anything is made of it.
    fn files_are_there(&self) -> Result<()> {
        let chunks = self.tables.iter().flat_map(|table| &table.chunks);
        let mut wrong = Vec::new();
        for chunk in chunks {
            let shown = chunk.path.display();
            match std::fs::metadata(&chunk.path) {
                Err(error) => wrong.push(format!("{shown}: {error}")),
                Ok(found) if found.len() != chunk.bytes_stored => wrong.push(format!(
                    "{shown}: it has {} bytes, and was written with {}",
                    found.len(),
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

    /// Returns how many rows there are.
    pub(super) fn rows(&self) -> u64 {
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

fn table(dir: &Path, entry: &TableEntry, number: &mut u64) -> Table {
    let chunks = entry.chunks.iter().map(|chunk| {
        *number += 1;
        Chunk {
            number: *number,
            path: dir.join(&chunk.file),
            rows: chunk.rows,
            bytes: chunk.bytes,
            bytes_stored: chunk.bytes_stored,
            blake3: chunk.blake3.clone(),
        }
    });
    Table {
        chunks: chunks.collect(),
        schema: entry.schema.clone(),
        name: entry.name.clone(),
        transactional: TRANSACTIONAL
            .iter()
            .any(|engine| engine.eq_ignore_ascii_case(&entry.engine)),
        columns: entry.columns.clone(),
        rows: entry.rows,
    }
}

/// Names a load by its source and by what decides the outcome, so that it is not gone on with in
/// another way.
fn id(manifest: &[u8], request: &Request) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(manifest);
    let exclude: Vec<&str> = request.exclude.iter().map(regex::Regex::as_str).collect();
    let choices = format!(
        "{:?} {exclude:?} {:?} {:?} {:?} {} {}",
        request.databases,
        request.skip,
        request.collations,
        request.definer,
        request.accounts,
        request.indexes_after
    );
    hasher.update(choices.as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Takes out what the request does not want.
fn leave_out(objects: &mut Objects, request: &Request) -> Result<()> {
    let named = |name: &str| objects.databases.iter().any(|one| one.name == name);
    if let Some(missing) = request.databases.iter().find(|name| !named(name)) {
        return Err(Error::usage(format!(
            "the dump has no database '{missing}'"
        )));
    }
    let only = &request.databases;
    objects
        .databases
        .retain(|one| only.is_empty() || only.contains(&one.name));
    let wants = |database: &str, name: &str| {
        let full = format!("{database}.{name}");
        !request
            .exclude
            .iter()
            .any(|pattern| pattern.is_match(&full))
    };
    for database in &mut objects.databases {
        let name = database.name.clone();
        let skips = |kind| request.skip.contains(&kind);
        database
            .sequences
            .retain(|one| !skips(Kind::Sequence) && wants(&name, &one.name));
        database.tables.retain(|one| wants(&name, &one.name));
        database
            .views
            .retain(|one| !skips(Kind::View) && wants(&name, &one.program.name));
        database
            .routines
            .retain(|one| !skips(Kind::Procedure) && wants(&name, &one.name));
        database.triggers.retain(|one| {
            let table = one.table.as_deref().unwrap_or_default();
            !skips(Kind::Trigger) && wants(&name, table)
        });
        database
            .events
            .retain(|one| !skips(Kind::Event) && wants(&name, &one.name));
    }
    if !request.accounts {
        objects.accounts.clear();
    }
    match objects.databases.is_empty() && objects.accounts.is_empty() {
        true => Err(Error::usage("there is nothing to load")),
        false => Ok(()),
    }
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
