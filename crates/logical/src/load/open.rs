//! A dump is looked into: its own manifest, or what other programs wrote in the place of one.

use super::choose::{Chosen, choose};
use super::csv::Csv;
use super::foreign::{self, Found};
use super::into;
use super::request::Request;
use super::source::{Chunk, Packing, Shape, Source, SourceTable, is_transactional, listed};
use crate::dump::{DumpLocation, Format, MANIFEST, Manifest, TableEntry, is_hex};
use crate::objects;
use evenkeel_op::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Reads what `dump` wrote.
fn own(place: &DumpLocation) -> Result<Found> {
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
                    "{shown}: it has {found} bytes, but was written with {}",
                    chunk.bytes_stored
                )),
                Ok(_) => {}
            }
        }
        match wrong.len() {
            0 => Ok(()),
            count => Err(Error::failed(format!(
                "the dump is incomplete: {count} of its files are missing or truncated: {}",
                listed(&wrong)
            ))
            .hint("restore these files; nothing was loaded")),
        }
    }
}

impl SourceTable {
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
}

fn packing(manifest: &Manifest) -> Result<Packing> {
    match manifest.compression.as_str() {
        "none" => Ok(Packing::None),
        "gzip" => Ok(Packing::Gzip),
        "zstd" => Ok(Packing::Zstd),
        other => Err(Error::failed(format!(
            "the dump is compressed with {other}, which this program does not know"
        ))
        .hint("load it with a newer evenkeel")),
    }
}

fn table(
    place: &DumpLocation,
    entry: &TableEntry,
    (packing, format): (Packing, Format),
    number: &mut u64,
) -> SourceTable {
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
                DumpLocation::Directory(dir) => dir.join(&chunk.file),
                DumpLocation::Store(_) => PathBuf::from(&chunk.file),
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
    SourceTable {
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
