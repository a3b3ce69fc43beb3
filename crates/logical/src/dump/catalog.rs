//! Tables, columns and keys as the server has them.

use super::filter::Filter;
use super::manifest::SchemaEntry;
use super::output::{Output, file_name};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Row, Session, quote, quote_name};
use evenkeel_server::options::ConnectOptions;
use std::collections::{BTreeMap, HashMap};

/// Engines whose reads see the instant of the snapshot.
const TRANSACTIONAL: [&str; 3] = ["InnoDB", "ROCKSDB", "TokuDB"];

/// A table with rows of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) engine: String,
    pub(super) transactional: bool,
    /// The server's guess.
    pub(super) rows: u64,
    /// Bytes of data, without indexes; the server's guess.
    pub(super) bytes: u64,
    /// When it was made or last rebuilt, and under which number, as the server says it.
    created: String,
    /// In order, without generated ones.
    pub(super) columns: Vec<Column>,
    /// What it may be cut by.
    pub(super) key: Option<Key>,
    /// What rows must meet.
    pub(super) condition: Option<String>,
}

/// A column that holds data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// `varchar`, lower case.
    pub(super) data_type: String,
    /// `varchar(20)`
    pub(super) full_type: String,
    /// `None` for bytes and for what is no text.
    pub(super) charset: Option<String>,
}

/// Leading columns of a key that order rows as literals compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: String,
    /// Positions in the table's columns.
    pub(super) columns: Vec<usize>,
    /// Whether these columns are all of it: then no two rows have the same values.
    pub(super) whole: bool,
}

impl Table {
    /// Makes a table without a key.
    #[cfg(test)]
    pub(super) fn for_tests(schema: &str, name: &str, columns: Vec<Column>) -> Self {
        Self {
            schema: schema.to_owned(),
            name: name.to_owned(),
            engine: "InnoDB".to_owned(),
            transactional: true,
            rows: 0,
            bytes: 0,
            created: String::new(),
            columns,
            key: None,
            condition: None,
        }
    }

    /// Returns the name for statements.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quote_name(&self.schema), quote_name(&self.name))
    }

    /// Returns the name for people.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns the beginning of the names of its files.
    pub(super) fn stem(&self) -> String {
        format!("{}/{}", file_name(&self.schema), file_name(&self.name))
    }
}

/// Everything that is to be dumped, the largest tables first.
#[derive(Debug, Clone)]
pub(super) struct Catalog {
    pub(super) schemas: Vec<String>,
    pub(super) tables: Vec<Table>,
}

/// Opens the session that looks things up.
pub(super) fn session(options: &ConnectOptions) -> Result<Session> {
    let mut session = Session::open(options)?;
    // Defaults of TIMESTAMP columns are shown in it.
    session.run("SET SESSION time_zone = '+00:00'")?;
    // MySQL 8 would answer with what it knew a day ago.
    session.run("SET SESSION sql_mode = '' /*!80003 , information_schema_stats_expiry = 0 */")?;
    Ok(session)
}

impl Catalog {
    /// Asks the server.
    pub(super) fn read(session: &mut Session, filter: &Filter) -> Result<Self> {
        let schemas: Vec<String> = session
            .rows("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME")?
            .iter()
            .filter_map(|row| row.at(0))
            .filter(|schema| filter.has_schema(schema))
            .map(str::to_owned)
            .collect();
        if schemas.is_empty() {
            return Err(no_schema(filter));
        }
        let list: Vec<String> = schemas.iter().map(|schema| quote(schema)).collect();
        let list = list.join(", ");
        let mut columns = columns(session, &list)?;
        let mut keys = keys(session, &list)?;
        let numbers = numbers(session);
        let mut tables = Vec::new();
        for row in session.rows(&tables_query(&list))? {
            let text = |at: usize| row.at(at).unwrap_or_default().to_owned();
            let (schema, name) = (text(0), text(1));
            if !filter.has_table(&schema, &name) {
                continue;
            }
            let place = (schema.clone(), name.clone());
            let columns = columns.remove(&place).unwrap_or_default();
            let key = best_key(keys.remove(&place).unwrap_or_default(), &columns);
            let engine = text(2);
            tables.push(Table {
                transactional: TRANSACTIONAL
                    .iter()
                    .any(|e| e.eq_ignore_ascii_case(&engine)),
                rows: row.at(3).and_then(|n| n.parse().ok()).unwrap_or(0),
                bytes: row.at(4).and_then(|n| n.parse().ok()).unwrap_or(0),
                created: made(&numbers, &schema, &name, row.at(5)),
                condition: filter.condition(&schema, &name).map(str::to_owned),
                columns: columns
                    .into_iter()
                    .filter_map(|(_, column)| column)
                    .collect(),
                key,
                engine,
                schema,
                name,
            });
        }
        tables.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| a.shown().cmp(&b.shown()))
        });
        let catalog = Self { schemas, tables };
        catalog.has_what_was_named(filter)?;
        Ok(catalog)
    }

    fn has_what_was_named(&self, filter: &Filter) -> Result<()> {
        let (schemas, mut tables) = filter.named();
        if let Some(missing) = schemas.iter().find(|name| !self.schemas.contains(name)) {
            return Err(Error::usage(format!("there is no database '{missing}'")));
        }
        match tables.find(|name| !self.tables.iter().any(|table| table.shown() == **name)) {
            Some(missing) => Err(Error::usage(format!(
                "--where names '{missing}', which is no table of this dump"
            ))),
            None => Ok(()),
        }
    }

    /// Returns about how many rows there are.
    pub(super) fn rows_estimate(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Looks again; returns the name of a table that is not what it was, or of one that came.
    pub(super) fn still_is(
        &self,
        session: &mut Session,
        filter: &Filter,
    ) -> Result<Option<String>> {
        let mut known: HashMap<String, &String> = self
            .tables
            .iter()
            .map(|table| (table.shown(), &table.created))
            .collect();
        for (schema, name, created) in self.look(session)? {
            let shown = format!("{schema}.{name}");
            if filter.has_table(&schema, &name) && known.remove(&shown) != Some(&created) {
                return Ok(Some(shown));
            }
        }
        Ok(known.into_keys().next())
    }

    /// Fails, naming it, when a table was dropped, emptied or changed while its rows were read.
    pub(super) fn still_there(&self, session: &mut Session) -> Result<()> {
        let now: HashMap<String, String> = self
            .look(session)?
            .into_iter()
            .map(|(schema, name, created)| (format!("{schema}.{name}"), created))
            .collect();
        match self
            .tables
            .iter()
            .find(|table| now.get(&table.shown()) != Some(&table.created))
        {
            Some(table) => Err(changed(&table.shown())),
            None => Ok(()),
        }
    }

    fn look(&self, session: &mut Session) -> Result<Vec<(String, String, String)>> {
        let numbers = numbers(session);
        let list: Vec<String> = self.schemas.iter().map(|schema| quote(schema)).collect();
        let rows = session.rows(&tables_query(&list.join(", ")))?;
        let text = |row: &Row, at| row.at(at).unwrap_or_default().to_owned();
        Ok(rows
            .iter()
            .map(|row| {
                let (schema, name) = (text(row, 0), text(row, 1));
                let made = made(&numbers, &schema, &name, row.at(5));
                (schema, name, made)
            })
            .collect())
    }
}

/// Reads InnoDB's numbers of tables, by the names of their files. Without the privilege there are
/// none, and only the time tells that a table is another.
fn numbers(session: &mut Session) -> HashMap<String, String> {
    // The one is MariaDB's and MySQL 5.7's, the other MySQL 8's.
    ["INNODB_SYS_TABLES", "INNODB_TABLES"]
        .iter()
        .find_map(|list| {
            let sql = format!("SELECT NAME, TABLE_ID FROM information_schema.{list}");
            session.rows(&sql).ok()
        })
        .unwrap_or_default()
        .iter()
        .filter_map(|row| Some((row.at(0)?.to_owned(), row.at(1)?.to_owned())))
        .collect()
}

/// Returns what changes when a table becomes another of the same name. MySQL 5.7 does not change the
/// time for TRUNCATE, and would show the snapshot an empty table.
fn made(numbers: &HashMap<String, String>, schema: &str, name: &str, time: Option<&str>) -> String {
    let part = |name: &str| -> String {
        let each = name.chars().map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => character.to_string(),
            other => format!("@{:04x}", u32::from(other)),
        });
        each.collect()
    };
    let number = numbers.get(&format!("{}/{}", part(schema), part(name)));
    format!(
        "{} {}",
        time.unwrap_or_default(),
        number.map_or("", String::as_str)
    )
}

/// Returns the error for a table whose shape changed during the dump.
pub(super) fn changed(table: &str) -> Error {
    Error::failed(format!(
        "{table} was altered, emptied or dropped during the dump"
    ))
    .hint("run it again, and keep DDL away from what is dumped")
}

/// Puts the table's name on an error; what DDL does to a snapshot is said in plain words.
pub(super) fn named(error: Error, table: &Table) -> Error {
    let text = error.to_string();
    // "Table definition has changed", "doesn't exist", "unknown column", "unknown table".
    let ddl = ["ERROR 1412 ", "ERROR 1146 ", "ERROR 1054 ", "ERROR 1932 "];
    if ddl.iter().any(|code| text.contains(code)) {
        return changed(&table.shown()).because(error);
    }
    Error::new(error.kind(), format!("failed to dump {}", table.shown())).because(error)
}

fn no_schema(filter: &Filter) -> Error {
    let (schemas, _) = filter.named();
    match schemas.first() {
        Some(name) => Error::usage(format!("there is no database '{name}'")),
        None => Error::usage("there is nothing to dump: the server has only its own schemas"),
    }
}

fn tables_query(schemas: &str) -> String {
    format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_ROWS, DATA_LENGTH, CREATE_TIME \
         FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({schemas}) \
         AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
    )
}

type Place = (String, String);
/// Columns with their names; `None` for generated ones.
type Columns = Vec<(String, Option<Column>)>;

fn columns(session: &mut Session, schemas: &str) -> Result<HashMap<Place, Columns>> {
    let rows = session.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, \
         CHARACTER_SET_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA IN ({schemas}) ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
    ))?;
    let mut all: HashMap<Place, Columns> = HashMap::new();
    for row in &rows {
        let text = |at: usize| row.at(at).unwrap_or_default().to_owned();
        let generated = row.at(6).is_some_and(|expression| !expression.is_empty());
        let column = (!generated).then(|| Column {
            name: text(2),
            data_type: text(3).to_ascii_lowercase(),
            full_type: text(4),
            charset: row.at(5).map(str::to_owned),
        });
        all.entry((text(0), text(1)))
            .or_default()
            .push((text(2), column));
    }
    Ok(all)
}

/// A unique key as the server lists it: parts in order.
type Parts = Vec<(String, bool)>;

/// Reads unique keys: for each part its column, and whether it can order rows.
fn keys(session: &mut Session, schemas: &str) -> Result<HashMap<Place, BTreeMap<String, Parts>>> {
    let rows = session.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE, COLLATION, \
         INDEX_TYPE FROM information_schema.STATISTICS \
         WHERE NON_UNIQUE = 0 AND TABLE_SCHEMA IN ({schemas}) \
         ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    ))?;
    let mut all: HashMap<Place, BTreeMap<String, Parts>> = HashMap::new();
    for row in &rows {
        let text = |at: usize| row.at(at).unwrap_or_default().to_owned();
        let orders = row.at(3).is_some()
            && row.at(4).is_none()
            && row.at(5) != Some("YES")
            && row.at(6) == Some("A")
            && row.at(7) == Some("BTREE");
        let keys = all.entry((text(0), text(1))).or_default();
        keys.entry(text(2)).or_default().push((text(3), orders));
    }
    Ok(all)
}

/// Picks the primary key, else the unique key of the fewest columns; of it, the leading columns
/// whose values compare as literals as they do in the index.
fn best_key(keys: BTreeMap<String, Parts>, columns: &Columns) -> Option<Key> {
    let stored: Vec<&Column> = columns.iter().filter_map(|(_, c)| c.as_ref()).collect();
    let mut candidates: Vec<Key> = keys
        .into_iter()
        .filter_map(|(name, parts)| {
            let usable: Vec<usize> = parts
                .iter()
                .map_while(|(column, orders)| {
                    let at = stored.iter().position(|c| c.name == *column)?;
                    (*orders && stored[at].compares()).then_some(at)
                })
                .collect();
            let whole = usable.len() == parts.len();
            // Only the primary key is worth a part of it: it is the order rows lie in.
            (!usable.is_empty() && (whole || name == "PRIMARY")).then_some(Key {
                name,
                columns: usable,
                whole,
            })
        })
        .collect();
    candidates.sort_by_key(|key| (key.name != "PRIMARY", key.columns.len()));
    candidates.into_iter().next()
}

impl Column {
    /// Returns whether a literal of a value compares with the column as its index orders it. ENUM
    /// and SET do not (by number, not by text), BIT and FLOAT are not worth the care.
    fn compares(&self) -> bool {
        self.is_integer()
            || self.is_text()
            || self.is_binary()
            || matches!(
                &*self.data_type,
                "decimal" | "date" | "datetime" | "timestamp" | "time" | "year"
            )
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(
            &*self.data_type,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint"
        )
    }

    pub(super) fn is_text(&self) -> bool {
        self.charset.is_some()
            && matches!(
                &*self.data_type,
                "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext"
            )
    }

    pub(super) fn is_binary(&self) -> bool {
        matches!(
            &*self.data_type,
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob"
        )
    }

    /// Returns whether its values are digits and punctuation that no format has to escape.
    pub(super) fn is_plain(&self) -> bool {
        self.is_integer()
            || matches!(
                &*self.data_type,
                "decimal"
                    | "float"
                    | "double"
                    | "date"
                    | "datetime"
                    | "timestamp"
                    | "time"
                    | "year"
            )
    }

    /// Returns what to select, so that the value comes out exactly.
    pub(super) fn selected(&self) -> String {
        let name = quote_name(&self.name);
        // The text of a FLOAT has six digits; as DOUBLE it has all that it needs. Times one, and
        // not plus zero, which would lose the sign of a negative zero.
        match &*self.data_type {
            "float" => format!("{name} * 1e0"),
            _ => name,
        }
    }
}

/// Writes what makes schemas and tables, and returns the files by schema.
pub(super) fn write_definitions(
    session: &mut Session,
    catalog: &Catalog,
    output: &Output,
) -> Result<Vec<SchemaEntry>> {
    let mut entries = Vec::new();
    for schema in &catalog.schemas {
        output.make_dir(&file_name(schema))?;
        let file = format!("{}/schema.sql", file_name(schema));
        let sql = format!("SHOW CREATE DATABASE {}", quote_name(schema));
        output.write(&file, &definition(session, &sql)?)?;
        entries.push(SchemaEntry {
            name: schema.clone(),
            file,
        });
    }
    for table in &catalog.tables {
        let sql = format!("SHOW CREATE TABLE {}", table.quoted());
        let text = definition(session, &sql).map_err(|error| named(error, table))?;
        output.write(&format!("{}.table.sql", table.stem()), &text)?;
    }
    Ok(entries)
}

fn definition(session: &mut Session, sql: &str) -> Result<String> {
    let row = session.one(sql)?;
    row.as_ref()
        .and_then(|row| row.at(1))
        .map(|text| format!("{text};\n"))
        .ok_or_else(|| Error::failed(format!("the server has no answer to {sql}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, data_type: &str, charset: Option<&str>) -> (String, Option<Column>) {
        let column = Column {
            name: name.into(),
            data_type: data_type.into(),
            full_type: data_type.into(),
            charset: charset.map(Into::into),
        };
        (name.into(), Some(column))
    }

    fn key(name: &str, parts: &[(&str, bool)]) -> (String, Parts) {
        let parts = parts.iter().map(|(n, o)| ((*n).to_owned(), *o)).collect();
        (name.to_owned(), parts)
    }

    #[test]
    fn the_primary_key_comes_first_then_the_shortest() {
        let columns = vec![
            column("a", "int", None),
            column("e", "enum", Some("utf8mb4")),
            column("s", "varchar", Some("latin1")),
        ];
        let pick = |keys: Vec<(String, Parts)>| best_key(keys.into_iter().collect(), &columns);
        let both = pick(vec![
            key("PRIMARY", &[("s", true), ("e", true), ("a", true)]),
            key("u", &[("a", true)]),
        ]);
        // Up to the ENUM, which sorts by number and compares by text.
        assert_eq!(both.unwrap().columns, [2]);
        let unique = pick(vec![
            key("long", &[("a", true), ("s", true)]),
            key("short", &[("s", true)]),
            key("nullable", &[("a", false)]),
        ]);
        assert_eq!(unique.unwrap().name, "short");
        assert_eq!(pick(vec![key("PRIMARY", &[("e", true)])]), None);
        assert_eq!(pick(vec![key("u", &[("s", true), ("e", true)])]), None);
    }
}
