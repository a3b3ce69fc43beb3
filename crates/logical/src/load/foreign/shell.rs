//! The directory of MySQL Shell's util.dumpInstance(), dumpSchemas() and dumpTables(): JSON files that
//! say which file is what.

use super::files::{Files, Found};
use super::found::{Found as Whole, objects};
use super::script::{Cut, Drafts, of_file};
use crate::load::source::{Chunk, Shape, SourceTable, is_transactional};
use crate::objects::Histogram;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::{quote, quote_name};
use evenkeel_server::coordinates::Coordinates;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What tells such a directory, and what the dump is.
pub(in crate::load) const OVERVIEW: &str = "@.json";
/// The file that is written last.
const DONE: &str = "@.done.json";
/// The version of the format that is read, and the one before, which differs in what is not needed.
const VERSIONS: [&str; 2] = ["1", "2"];
/// What columns of bytes may be written with.
const DECODERS: [&str; 2] = ["UNHEX", "FROM_BASE64"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Overview {
    version: String,
    schemas: Vec<String>,
    #[serde(default)]
    basenames: BTreeMap<String, String>,
    #[serde(default)]
    tz_utc: bool,
    #[serde(default)]
    server_version: String,
    binlog_file: Option<String>,
    binlog_position: Option<u64>,
    gtid_executed: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DoneFile {
    #[serde(default)]
    table_rows: BTreeMap<String, BTreeMap<String, u64>>,
    #[serde(default)]
    chunk_file_bytes: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemaFile {
    #[serde(default)]
    includes_ddl: bool,
    #[serde(default)]
    tables: Vec<String>,
    #[serde(default)]
    views: Vec<String>,
    #[serde(default)]
    basenames: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TableFile {
    options: Options,
    #[serde(default)]
    triggers: Vec<String>,
    #[serde(default)]
    histograms: Vec<HistogramEntry>,
    #[serde(default)]
    includes_data: bool,
    #[serde(default)]
    includes_ddl: bool,
    #[serde(default = "tsv")]
    extension: String,
    #[serde(default)]
    chunking: bool,
    #[serde(default)]
    partitions: Vec<String>,
    /// Of partitions.
    #[serde(default)]
    basenames: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct HistogramEntry {
    column: String,
    buckets: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    columns: Vec<String>,
    #[serde(default)]
    decode_columns: BTreeMap<String, String>,
    default_character_set: String,
    fields_terminated_by: String,
    fields_enclosed_by: String,
    #[serde(default)]
    fields_optionally_enclosed: bool,
    fields_escaped_by: String,
    lines_terminated_by: String,
}

fn tsv() -> String {
    "tsv".to_owned()
}

/// A dump on its way.
struct Reader {
    files: Files,
    drafts: Drafts,
    identity: Vec<u8>,
    done: DoneFile,
    tables: Vec<SourceTable>,
    chunks: u64,
}

pub(super) fn open(dir: &Path) -> Result<Whole> {
    let mut files = Files::list(dir)?;
    let mut identity = Vec::new();
    let overview: Overview = json(&files.need(OVERVIEW)?, &mut identity)?;
    let done = files.take(DONE).ok_or_else(|| {
        Error::usage(format!(
            "{} holds an unfinished dump of MySQL Shell",
            dir.display()
        ))
        .hint("wait for it, or dump again")
    })?;
    let done = json(&done, &mut identity)?;
    let major = overview.version.split('.').next().unwrap_or_default();
    if !VERSIONS.contains(&major) {
        return Err(Error::refused(format!(
            "the dump is of version {} of MySQL Shell's format, which evenkeel does not know",
            overview.version
        )));
    }
    if !overview.tz_utc {
        return Err(Error::refused(
            "the dump's times are in the time zone of its server, which the dump does not name",
        )
        .hint("dump with tzUtc: true"));
    }
    let mut reader = Reader {
        files,
        drafts: Drafts::default(),
        identity,
        done,
        tables: Vec::new(),
        chunks: 0,
    };
    for name in ["@.sql", "@.post.sql"] {
        if let Some(found) = reader.files.take(name) {
            reader.script(&found, None)?;
        }
    }
    let mut notes = Vec::new();
    if reader.files.take("@.users.sql").is_some() {
        notes.push("users are not loaded: run @.users.sql with a client".to_owned());
    }
    if reader.files.take("@.checksums.json").is_some() {
        notes.push("the dump's own checksums were not compared".to_owned());
    }
    for schema in &overview.schemas {
        let base = overview.basenames.get(schema).unwrap_or(schema);
        reader.schema(schema, base)?;
    }
    reader.files.all_taken()?;
    let gtid = overview
        .gtid_executed
        .map(|gtid| gtid.split_whitespace().collect::<String>());
    Ok(Whole {
        objects: objects(reader.drafts.databases, overview.server_version),
        tables: reader.tables,
        coordinates: Coordinates {
            binlog_file: overview.binlog_file.filter(|file| !file.is_empty()),
            binlog_position: overview.binlog_position,
            gtid: gtid.filter(|gtid| !gtid.is_empty()),
        },
        identity: reader.identity,
        notes,
    })
}

fn json<T: for<'de> Deserialize<'de>>(found: &Found, identity: &mut Vec<u8>) -> Result<T> {
    let text = found.text()?;
    identity.extend_from_slice(&text);
    serde_json::from_slice(&text)
        .context(|| format!("failed to understand {}", found.path.display()))
}

fn without_definitions(what: &str) -> Error {
    Error::refused(format!("the dump has no definition of {what}"))
        .hint("load needs a complete dump: dump without dataOnly")
}

impl Reader {
    fn script(&mut self, found: &Found, schema: Option<&str>) -> Result<()> {
        let text = found.text()?;
        self.identity.extend_from_slice(&text);
        of_file(self.drafts.read(&text, Cut::Clients, schema), &found.path).map(drop)
    }

    fn schema(&mut self, schema: &str, base: &str) -> Result<()> {
        let said: SchemaFile = json(
            &self.files.need(&format!("{base}.json"))?,
            &mut self.identity,
        )?;
        if !said.includes_ddl {
            return Err(without_definitions(schema));
        }
        let found = self.files.need(&format!("{base}.sql"))?;
        self.script(&found, Some(schema))?;
        let base_of = |name: &String| {
            let found = said.basenames.get(name).cloned();
            found.unwrap_or_else(|| format!("{base}@{name}"))
        };
        for view in &said.views {
            let base = base_of(view);
            // It holds the place of the view until all others are there; load makes its own.
            drop(self.files.take(&format!("{base}.pre.sql")));
            let found = self.files.need(&format!("{base}.sql"))?;
            self.script(&found, Some(schema))?;
        }
        for table in &said.tables {
            self.table(schema, table, &base_of(table))?;
        }
        Ok(())
    }

    fn table(&mut self, schema: &str, name: &str, base: &str) -> Result<()> {
        let said: TableFile = json(
            &self.files.need(&format!("{base}.json"))?,
            &mut self.identity,
        )?;
        if !said.includes_ddl {
            return Err(without_definitions(&format!("{schema}.{name}")));
        }
        let found = self.files.need(&format!("{base}.sql"))?;
        self.script(&found, Some(schema))?;
        if !said.triggers.is_empty() {
            let found = self.files.need(&format!("{base}.triggers.sql"))?;
            self.script(&found, Some(schema))?;
        }
        let database = self.drafts.database(schema);
        let table = database.tables.iter_mut().find(|one| one.name == name);
        let table = table.ok_or_else(|| without_definitions(&format!("{schema}.{name}")))?;
        let histograms = said.histograms.iter().map(|one| Histogram {
            column: one.column.clone(),
            buckets: one.buckets,
        });
        table.histograms = histograms.collect();
        let transactional = is_transactional(&table.engine);
        let statement = said.options.statement(schema, name)?;
        let mut chunks = Vec::new();
        if said.includes_data {
            let bases: Vec<String> = match said.partitions.is_empty() {
                true => vec![base.to_owned()],
                false => said
                    .partitions
                    .iter()
                    .map(|part| {
                        let found = said.basenames.get(part).cloned();
                        found.unwrap_or_else(|| format!("{base}@{part}"))
                    })
                    .collect(),
            };
            for base in bases {
                self.rows(&base, &said, &statement, &mut chunks)?;
            }
        }
        let rows = self.done.table_rows.get(schema);
        self.tables.push(SourceTable {
            schema: schema.to_owned(),
            name: name.to_owned(),
            transactional,
            columns: Vec::new(),
            rows: rows.and_then(|tables| tables.get(name)).copied(),
            chunks,
        });
        Ok(())
    }

    /// Takes the files of rows of a table or a partition: one, or numbered ones up to that with `@@`.
    fn rows(
        &mut self,
        base: &str,
        said: &TableFile,
        statement: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<()> {
        let ending = said
            .extension
            .trim_end_matches(".zst")
            .trim_end_matches(".gz");
        let mut number = 0;
        loop {
            let last = format!("{base}@@{number}.{ending}");
            let (name, ends) = match said.chunking {
                false => (format!("{base}.{ending}"), true),
                true if !self.files.beginning(&last).is_empty() => (last, true),
                true => (format!("{base}@{number}.{ending}"), false),
            };
            let found = self.files.need(&name)?;
            let file = found.path.file_name().unwrap_or_default().to_string_lossy();
            drop(self.files.take(&format!("{file}.idx")));
            let bytes = self.done.chunk_file_bytes.get(&*file).copied();
            self.identity
                .extend_from_slice(format!("{file} {}\n", found.bytes).as_bytes());
            self.chunks += 1;
            let shape = Shape::File(statement.to_owned());
            chunks.push(found.chunk(self.chunks, shape, bytes));
            if ends {
                return Ok(());
            }
            number += 1;
        }
    }
}

impl Options {
    /// Returns the statement that loads files of this form.
    ///
    /// Errors: `Refused` for a form that is not known.
    fn statement(&self, schema: &str, table: &str) -> Result<String> {
        let (mut targets, mut sets) = (Vec::new(), Vec::new());
        for column in &self.columns {
            let name = quote_name(column);
            let Some(how) = self.decode_columns.get(column) else {
                targets.push(name);
                continue;
            };
            let how = DECODERS
                .iter()
                .find(|known| how.eq_ignore_ascii_case(known));
            let how = how.ok_or_else(|| {
                Error::refused(format!(
                    "the column {column} of {schema}.{table} is written in a form that evenkeel does not know"
                ))
            })?;
            targets.push(format!("@v{}", sets.len()));
            sets.push(format!("{name} = {how}(@v{})", sets.len()));
        }
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !plain(&self.default_character_set) {
            return Err(Error::refused(
                "the dump's character set has an invalid name",
            ));
        }
        let optionally = match self.fields_optionally_enclosed {
            true => "OPTIONALLY ",
            false => "",
        };
        let mut sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {}.{} CHARACTER SET {} \
             FIELDS TERMINATED BY {} {optionally}ENCLOSED BY {} ESCAPED BY {} \
             LINES TERMINATED BY {} ({})",
            quote_name(schema),
            quote_name(table),
            self.default_character_set,
            quote(&self.fields_terminated_by),
            quote(&self.fields_enclosed_by),
            quote(&self.fields_escaped_by),
            quote(&self.lines_terminated_by),
            targets.join(", ")
        );
        if !sets.is_empty() {
            sql.push_str(&format!(" SET {}", sets.join(", ")));
        }
        Ok(sql)
    }
}
