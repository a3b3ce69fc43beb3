//! What is in a dump's directory, as `manifest.json` says it. docs/src/formats/dump.md describes it.

use super::encode::Format;
use super::file_names::MARK;
use super::location::DumpLocation;
use super::request::Request;
use super::table::DumpTable;
use crate::objects::{Column, Objects};
use evenkeel_op::paths::absent;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The file's name.
pub const MANIFEST: &str = "manifest.json";
/// The file of what is not rows.
pub(super) const OBJECTS: &str = "objects.json.zst";
/// How much a program reads back at most of it, in bytes: a million tables have less.
const OBJECTS_MAX: u64 = 4 << 30;
/// The format's name and version.
pub const MANIFEST_SCHEMA: &str = "evenkeel/dump-directory/1";

/// A dump.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The point in time that the dump shows, in UTC.
    pub taken_at: String,
    /// Whose contents these are.
    pub server: ServerEntry,
    /// Where in the binary log the point in time is.
    pub coordinates: Coordinates,
    /// Whether all tables with transactions are known to be from one point in time.
    pub one_view: bool,
    /// What rows look like in files.
    pub format: Format,
    /// `none`, `gzip` or `zstd`.
    pub compression: String,
    /// Everything that is not rows.
    pub objects: ObjectsEntry,
    /// Databases.
    pub schemas: Vec<SchemaEntry>,
    /// Tables, by schema and name.
    pub tables: Vec<TableEntry>,
}

/// A server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerEntry {
    /// `mariadb` or `mysql`.
    pub flavour: String,
    /// `VERSION()`.
    pub version: String,
    /// Host and port, or its socket.
    pub place: String,
}

impl ServerEntry {
    /// Asks a server.
    pub(super) fn of(session: &mut Session) -> Result<Self> {
        let abilities = Abilities::probe(session)?;
        Ok(Self {
            flavour: abilities.flavour.id().to_owned(),
            version: abilities.version_text,
            place: session.place().to_owned(),
        })
    }
}

/// The file with everything that is not rows: [`Objects`] as JSON, packed with zstd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectsEntry {
    /// Its path from the directory.
    pub file: String,
    /// Bytes before they were packed.
    pub bytes: u64,
    /// Bytes of the file.
    pub bytes_stored: u64,
    /// BLAKE3 of the bytes before they were packed, in hexadecimal.
    pub blake3: String,
}

/// A database.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SchemaEntry {
    /// Its name.
    pub name: String,
    /// The file with the statement that makes it.
    pub file: String,
}

/// A table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its database.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The file with the statement that makes it.
    pub file: String,
    /// Its storage engine.
    pub engine: String,
    /// Whether its rows are those of the dump's point in time: its engine has transactions.
    pub at_instant: bool,
    /// The columns that files of rows hold, in order: all but generated ones. Where all are generated,
    /// the first of them.
    pub columns: Vec<ColumnEntry>,
    /// The columns by which chunks are cut and in whose order rows are, within a file of a MySQL 5.7 the other way
    /// round; none: as the server had them.
    pub key: Vec<String>,
    /// The condition that rows had to meet; of a dump with masked columns only that there was one.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Rows in all chunks.
    pub rows: u64,
    /// Files of rows, in the key's order.
    pub chunks: Vec<ChunkEntry>,
}

/// A column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ColumnEntry {
    /// Its name.
    pub name: String,
    /// Its type as the server has it: `varchar(20)`.
    #[serde(rename = "type")]
    pub full_type: String,
    /// The character set that its bytes are in; none for what is no text.
    pub charset: Option<String>,
    /// Files hold the numbers of an ENUM's or SET's members (0, 1, 2, … and 0, 1, 2, 4, …), because the
    /// empty text is one of two values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_number: bool,
    /// The server computes its values: they are in files for people, and are not loaded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generated: bool,
    /// It says when a row of a system-versioned table began or ended to hold: files have old rows too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_time: Option<RowTime>,
    /// How its values were masked, so that files have none of them: `hash`, `email`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<String>,
}

/// What a time is of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowTime {
    /// From then on it held.
    Start,
    /// Until then it held; NULL: it still does.
    End,
}

impl ColumnEntry {
    /// Describes what a table's files hold.
    fn of(table: &DumpTable) -> Vec<Self> {
        let columns = table.columns.iter().enumerate();
        let mut all: Vec<Self> = columns
            .map(|(at, column)| Self {
                masked: table.masked_as(at).map(str::to_owned),
                ..Self::plain(column)
            })
            .collect();
        if let [.., start, end] = &mut all[..]
            && table.history
        {
            (start.row_time, end.row_time) = (Some(RowTime::Start), Some(RowTime::End));
        }
        all
    }

    fn plain(column: &Column) -> Self {
        Self {
            name: column.name.clone(),
            full_type: column.column_type.clone(),
            charset: column.charset.clone(),
            by_number: column.is_by_number(),
            generated: column.is_computed(),
            row_time: None,
            masked: None,
        }
    }
}

/// A file of rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChunkEntry {
    /// Its path from the directory.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// Bytes before they were packed.
    pub bytes: u64,
    /// Bytes of the file.
    pub bytes_stored: u64,
    /// BLAKE3 of the bytes before they were packed, in hexadecimal.
    pub blake3: String,
    /// The rows it was read with, as a condition; none: all of the table's. Several files have the
    /// same when a range held more rows than was thought.
    pub range: Option<String>,
}

/// A file that was written, and where it belongs among its table's.
#[derive(Debug)]
pub(super) struct Written {
    /// The range's number and the file's within it.
    pub(super) place: (u32, u32),
    pub(super) entry: ChunkEntry,
}

/// What stands in the place of a condition that may have a masked value in it.
const WITHHELD: &str = "withheld, because columns are masked";

/// What a manifest is made of, beside the catalog.
pub(super) struct Facts<'a> {
    pub(super) request: &'a Request,
    pub(super) started: String,
    pub(super) server: ServerEntry,
    pub(super) coordinates: Coordinates,
    pub(super) one_view: bool,
    pub(super) objects: ObjectsEntry,
    pub(super) schemas: Vec<SchemaEntry>,
    /// By table, in the tables' order.
    pub(super) chunks: Vec<Vec<Written>>,
}

impl Manifest {
    pub(super) fn of(tables: &[DumpTable], facts: Facts<'_>) -> Self {
        let is_masked = !facts.request.filter.masks.is_empty();
        let mut tables: Vec<TableEntry> = tables
            .iter()
            .zip(facts.chunks)
            .map(|(table, mut chunks)| {
                chunks.sort_by_key(|chunk| chunk.place);
                let chunks: Vec<ChunkEntry> = chunks.into_iter().map(|c| c.entry).collect();
                TableEntry {
                    schema: table.schema.clone(),
                    name: table.name.clone(),
                    file: format!("{}.table.sql", table.stem()),
                    engine: table.engine.clone(),
                    at_instant: table.transactional,
                    columns: ColumnEntry::of(table),
                    key: table.key.as_ref().map_or_else(Vec::new, |key| {
                        let columns = key.columns.iter();
                        columns.map(|at| table.columns[*at].name.clone()).collect()
                    }),
                    condition: match is_masked {
                        true => table.condition.as_ref().map(|_| WITHHELD.to_owned()),
                        false => table.condition.clone(),
                    },
                    rows: chunks.iter().map(|chunk| chunk.rows).sum(),
                    chunks,
                }
            })
            .collect();
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        Self {
            schema: MANIFEST_SCHEMA.to_owned(),
            taken_at: facts.started,
            server: facts.server,
            coordinates: facts.coordinates,
            one_view: facts.one_view,
            format: facts.request.format,
            compression: facts.request.compression.name().to_owned(),
            objects: facts.objects,
            schemas: facts.schemas,
            tables,
        }
    }

    /// Reads the manifest of the dump in a directory.
    ///
    /// Errors: `Usage` where there is no dump, or one that did not end; `Failed` for a manifest that
    /// cannot be read, by name.
    pub fn read(dir: &Path) -> Result<Self> {
        Self::read_at(&dir.into()).map(|read| read.0)
    }

    /// The same, wherever the dump is; returns the manifest's bytes too.
    pub fn read_at(place: &DumpLocation) -> Result<(Self, Vec<u8>)> {
        let shown = place.shown(MANIFEST);
        let text = match place.read(MANIFEST, OBJECTS_MAX) {
            Ok(text) => text,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(no_dump(place));
            }
            Err(error) => return Err(error).context(|| format!("failed to read {shown}")),
        };
        let damaged = || format!("{shown} is not the manifest of a dump");
        let value: serde_json::Value = serde_json::from_slice(&text).context(damaged)?;
        if value["schema"] != MANIFEST_SCHEMA {
            return Err(Error::failed(damaged()).hint(format!(
                "this program reads {MANIFEST_SCHEMA}; the manifest says {}",
                value["schema"]
            )));
        }
        Ok((serde_json::from_value(value).context(damaged)?, text))
    }

    /// Reads what is not rows of the dump in `dir`.
    ///
    /// Errors: `Failed`, with the file's name, when it is not there or not what was written.
    pub fn objects(&self, dir: &Path) -> Result<Objects> {
        self.objects_at(&dir.into())
    }

    /// The same, wherever the dump is.
    pub fn objects_at(&self, place: &DumpLocation) -> Result<Objects> {
        let shown = place.shown(&self.objects.file);
        let failed = || format!("failed to read {shown}");
        let stored = place.open(&self.objects.file).context(failed)?;
        let mut text = Vec::new();
        zstd::Decoder::new(stored)
            .and_then(|decoder| {
                let most = self.objects.bytes.min(OBJECTS_MAX);
                decoder.take(most + 1).read_to_end(&mut text)
            })
            .context(failed)
            .map_err(|error| error.hint(OTHER_COPY))?;
        if blake3::hash(&text).to_hex().as_str() != self.objects.blake3 {
            return Err(Error::failed(format!("{shown} is not what was dumped")).hint(OTHER_COPY));
        }
        serde_json::from_slice(&text).context(failed)
    }
}

/// What to do about a damaged file.
const OTHER_COPY: &str =
    "the file is damaged: take it from another copy of the dump, or dump again";

fn no_dump(place: &DumpLocation) -> Error {
    let shown = place.shown("");
    if let DumpLocation::Directory(dir) = place
        && !dir.exists()
    {
        return absent("directory", dir).hint("check the path");
    }
    if let DumpLocation::Directory(dir) = place
        && !dir.is_dir()
    {
        return Error::usage(format!("{} is not a directory", dir.display()))
            .hint(format!("give the directory that has a {MANIFEST}"));
    }
    if place.open(MARK).is_ok() {
        return Error::usage(format!("{shown} holds an unfinished dump"))
            .hint("wait for it, or resume it: dump --resume");
    }
    Error::usage(format!("{shown} does not contain a dump"))
        .hint(format!("give the directory that has a {MANIFEST}"))
}

#[cfg(test)]
mod tests {
    use super::super::output::Output;
    use super::*;
    use evenkeel_server::abilities::Flavour;
    use evenkeel_testkit::Scratch;

    fn objects() -> Objects {
        Objects {
            flavour: Flavour::MariaDb,
            version_text: "10.11".to_owned(),
            utf8mb4_collation: "utf8mb4_general_ci".to_owned(),
            databases: vec![crate::objects::Database {
                name: "ü".to_owned(),
                ..Default::default()
            }],
            accounts: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn manifest(objects: ObjectsEntry) -> Manifest {
        Manifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            taken_at: String::new(),
            server: ServerEntry {
                flavour: "mariadb".to_owned(),
                version: "10.11".to_owned(),
                place: "/s".to_owned(),
            },
            coordinates: Coordinates::default(),
            one_view: true,
            format: Format::Tab,
            compression: "zstd".to_owned(),
            objects,
            schemas: Vec::new(),
            tables: Vec::new(),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let scratch = Scratch::new();
        let dir = scratch.join("d");
        let output = Output::begin(&dir.clone().into(), crate::dump::Leftover::Refuse).unwrap();
        let error = Manifest::read(&dir).unwrap_err();
        assert!(error.to_string().contains("unfinished"), "{error}");
        let written = manifest(output.write_objects(&objects()).unwrap());
        output.finish(&written).unwrap();
        let read = Manifest::read(&dir).unwrap();
        assert_eq!(read.objects, written.objects);
        assert_eq!(read.objects(&dir).unwrap(), objects());
        let none = Manifest::read(&scratch.join("e")).unwrap_err();
        assert!(none.to_string().contains("does not exist"), "{none}");
    }

    #[test]
    fn damaged_objects_are_named() {
        let scratch = Scratch::new();
        let dir = scratch.join("d");
        let output = Output::begin(&dir.clone().into(), crate::dump::Leftover::Refuse).unwrap();
        let written = manifest(output.write_objects(&objects()).unwrap());
        output.finish(&written).unwrap();
        // Sound JSON of the same length, and yet not what was dumped.
        let mut other = objects();
        other.version_text = "10.12".to_owned();
        let text = serde_json::to_vec(&other).unwrap();
        assert_eq!(text.len() as u64, written.objects.bytes);
        let packed = zstd::encode_all(&text[..], 1).unwrap();
        for bytes in [&packed[..], &packed[..20], b"x", b""] {
            std::fs::write(dir.join(OBJECTS), bytes).unwrap();
            let error = written.objects(&dir).unwrap_err();
            assert!(error.to_string().contains(OBJECTS), "{error}");
        }
        std::fs::write(
            dir.join(MANIFEST),
            r#"{"schema": "evenkeel/dump-directory/9"}"#,
        )
        .unwrap();
        let error = Manifest::read(&dir).unwrap_err();
        assert!(error.hints()[0].contains("dump-directory/9"), "{error}");
    }
}
