//! What the servers' own client reads of a schema: it shares nothing with what dumps and loads.

use super::attributes::{QUERIES, attribute};
use evenkeel_server::connect::{quote, quote_name};
use evenkeel_server::launch::Running;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// What a session of the client is set to.
const SETTINGS: &str = "SET SESSION sql_mode = '', time_zone = '+00:00', group_concat_max_len = 1000000;\n\
                        SET SESSION /*!80000 information_schema_stats_expiry = 0, */ sql_notes = 0;\n";
/// What comes before what is read of a table.
const MARK: &str = "-- table";

/// A schema as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Reading {
    /// Of each table its columns, and its rows in the order of what stands in them.
    tables: BTreeMap<String, (Vec<String>, Vec<String>)>,
    /// What the server tells of its definitions, a sentence each.
    attributes: Vec<String>,
}

/// Has the client run statements, and returns the lines of what they show.
#[track_caller]
#[must_use]
pub fn client(running: &Running, sql: &str) -> Vec<String> {
    let mut child = Command::new("mariadb")
        .args([
            "--no-defaults",
            "-u",
            "root",
            "--batch",
            "--skip-column-names",
        ])
        .args([
            "--default-character-set=utf8mb4",
            "--max-allowed-packet=1G",
            "-S",
        ])
        .arg(running.socket())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mariadb");
    let text = format!("{SETTINGS}{sql}");
    let mut input = child.stdin.take().expect("its input");
    // What it shows may fill its pipe before it has read all.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said} in {sql:.2000}");
    writer.join().expect("a thread").expect("the client reads");
    let shown = String::from_utf8(output.stdout).expect("text");
    shown.lines().map(str::to_owned).collect()
}

/// Returns what shows a column's value exactly, and never holds a tab or the end of a line.
fn exactly(name: &str, data_type: &str) -> String {
    match data_type {
        // Six digits are shown of a FLOAT, all of a DOUBLE.
        "float" | "double" => format!("{name} * 1e0"),
        "bit" => format!("HEX(CAST({name} AS UNSIGNED))"),
        "enum" | "set" => format!("CONCAT(HEX({name}), ' ', CAST({name} AS UNSIGNED))"),
        "uuid" | "inet4" | "inet6" => format!("HEX(CAST({name} AS CHAR))"),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "binary"
        | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "json" | "vector"
        | "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => {
            format!("HEX({name})")
        }
        _ => name.to_owned(),
    }
}

impl Reading {
    /// Reads all tables of a schema.
    #[track_caller]
    #[must_use]
    pub fn of(running: &Running, schema: &str) -> Self {
        let columns = client(
            running,
            &format!(
                "SELECT HEX(TABLE_NAME), HEX(COLUMN_NAME), LOWER(DATA_TYPE) FROM information_schema.COLUMNS \
                 WHERE TABLE_SCHEMA = {} ORDER BY TABLE_NAME, ORDINAL_POSITION;",
                quote(schema)
            ),
        );
        let mut wanted: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for line in &columns {
            let cells: Vec<&str> = line.split('\t').collect();
            let column = (from_hex(cells[1]), cells[2].to_owned());
            wanted.entry(from_hex(cells[0])).or_default().push(column);
        }
        let mut sql = String::new();
        for (table, columns) in &wanted {
            let shown = columns
                .iter()
                .map(|(name, data_type)| exactly(&quote_name(name), data_type));
            let shown: Vec<String> = shown.collect();
            sql.push_str(&format!(
                "SELECT '{MARK}';\nSELECT {} FROM {}.{};\n",
                shown.join(", "),
                quote_name(schema),
                quote_name(table)
            ));
        }
        let lines = client(running, &sql);
        let mut rows = lines.split(|line| line == MARK).skip(1);
        let mut tables = BTreeMap::new();
        for (table, columns) in wanted {
            let mut rows = rows.next().expect("each table is shown").to_vec();
            rows.sort();
            let names = columns.into_iter().map(|one| one.0).collect();
            tables.insert(table, (names, rows));
        }
        let mut attributes = Vec::new();
        for query in &QUERIES {
            for line in client(running, &query.sql(running, schema)) {
                attributes.extend(attribute(query, &line));
            }
        }
        attributes.sort();
        Self { tables, attributes }
    }

    /// Returns how many tables there are, and rows in them.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let rows = self.tables.values().map(|one| one.1.len());
        (self.tables.len(), rows.sum())
    }

    /// Returns the first table's name.
    #[must_use]
    pub fn first_table(&self) -> &str {
        self.tables.keys().next().map_or("", String::as_str)
    }

    /// Returns what is another in `other`, a sentence each; the cells first.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (table, (columns, rows)) in &self.tables {
            let Some((_, there)) = other.tables.get(table) else {
                found.push(format!("{table} is not there"));
                continue;
            };
            if rows.len() != there.len() {
                found.push(format!(
                    "{table} has {} rows instead of {}",
                    there.len(),
                    rows.len()
                ));
            }
            // Each that is on one side only, with the one that is most like it on the other.
            let alone = rows.iter().filter(|row| there.binary_search(row).is_err());
            let theirs: Vec<&String> = there
                .iter()
                .filter(|row| rows.binary_search(row).is_err())
                .collect();
            for row in alone.take(3) {
                let apart = |other: &&&String| cells_apart(columns, row, other).len();
                let found_there = theirs.iter().min_by_key(apart);
                let reported = found_there.map_or_else(
                    || row.clone(),
                    |other| cells_apart(columns, row, other).join("; "),
                );
                found.push(format!("{table}: {reported:.600}"));
            }
        }
        let extra = other
            .tables
            .keys()
            .filter(|table| !self.tables.contains_key(*table));
        found.extend(extra.map(|table| format!("{table} should not be there")));
        let lacks = self
            .attributes
            .iter()
            .filter(|one| !other.attributes.contains(one));
        found.extend(lacks.map(|one| format!("lacks: {one}")));
        let extra = other
            .attributes
            .iter()
            .filter(|one| !self.attributes.contains(one));
        found.extend(extra.map(|one| format!("has instead: {one}")));
        found
    }
}

fn cells_apart(columns: &[String], row: &str, other: &str) -> Vec<String> {
    let cells = row.split('\t').zip(other.split('\t')).zip(columns);
    cells
        .filter(|((one, other), _)| one != other)
        .map(|((one, other), name)| format!("{name} was {one:.150}, is {other:.150}"))
        .collect()
}

fn from_hex(digits: &str) -> String {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes).expect("a name")
}
