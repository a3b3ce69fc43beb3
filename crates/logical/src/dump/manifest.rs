//! What is in a dump's directory, as `manifest.json` says it. docs/src/formats/dump.md describes it.

use super::Request;
use super::catalog::Catalog;
use super::encode::Format;
use super::work::Written;
use evenkeel_op::Result;
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use serde::{Deserialize, Serialize};

/// The file's name.
pub const MANIFEST: &str = "manifest.json";
/// The format's name and version.
pub const MANIFEST_SCHEMA: &str = "evenkeel/dump-directory/1";

/// A dump.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The instant that the dump shows, in UTC.
    pub taken_at: String,
    /// Whose contents these are.
    pub server: ServerEntry,
    /// Where in the binary log the instant is.
    pub coordinates: Coordinates,
    /// Whether all tables with transactions are known to be of one instant.
    pub one_view: bool,
    /// What rows look like in files.
    pub format: Format,
    /// `none`, `gzip` or `zstd`.
    pub compression: String,
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
            flavour: match abilities.flavour {
                Flavour::MariaDb => "mariadb".to_owned(),
                Flavour::MySql => "mysql".to_owned(),
            },
            version: abilities.version_text,
            place: session.place().to_owned(),
        })
    }
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
    /// Whether its rows are those of the dump's instant: its engine has transactions.
    pub at_instant: bool,
    /// The columns that files of rows hold, in order: all but generated ones.
    pub columns: Vec<ColumnEntry>,
    /// The columns by which chunks are cut and in whose order rows are; none: as the server had them.
    pub key: Vec<String>,
    /// The condition that rows had to meet.
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

/// What a manifest is made of, beside the catalog.
pub(super) struct Facts<'a> {
    pub(super) request: &'a Request,
    pub(super) started: String,
    pub(super) server: ServerEntry,
    pub(super) coordinates: Coordinates,
    pub(super) one_view: bool,
    pub(super) schemas: Vec<SchemaEntry>,
    /// By table, in the catalog's order.
    pub(super) chunks: Vec<Vec<Written>>,
}

impl Manifest {
    pub(super) fn of(catalog: &Catalog, facts: Facts<'_>) -> Self {
        let mut tables: Vec<TableEntry> = catalog
            .tables
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
                    columns: table
                        .columns
                        .iter()
                        .map(|column| ColumnEntry {
                            name: column.name.clone(),
                            full_type: column.full_type.clone(),
                            charset: column.charset.clone(),
                        })
                        .collect(),
                    key: table.key.as_ref().map_or_else(Vec::new, |key| {
                        let columns = key.columns.iter();
                        columns.map(|at| table.columns[*at].name.clone()).collect()
                    }),
                    condition: table.condition.clone(),
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
            schemas: facts.schemas,
            tables,
        }
    }
}
