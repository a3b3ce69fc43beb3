//! Tables and sequences.

use super::super::{Column, Database, SchemaObjectKind, Sequence, TableObject};
use super::reader::Reader;
use super::{ask, columns};
use ask::Answer;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::quote;
use std::collections::HashMap;

/// What a schema's list of tables says of one of them.
pub(super) struct Listed {
    pub(super) name: String,
    /// `BASE TABLE`, `VIEW`, `SEQUENCE`, `SYSTEM VERSIONED`.
    pub(super) sort: String,
    row: Answer,
}

impl Listed {
    /// Returns whether it holds rows of its own making, as tables do.
    pub(super) fn is_table(&self) -> bool {
        matches!(self.sort.as_str(), "BASE TABLE" | "SYSTEM VERSIONED")
    }
}

/// Returns the wanted tables, views and sequences of a schema by name. Temporary tables are never
/// among them.
pub(super) fn list(reader: &mut Reader<'_>, database: &str) -> Result<Vec<Listed>> {
    let sql = format!(
        "SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} ORDER BY TABLE_NAME",
        quote(database)
    );
    let rows = ask::rows(reader.session, &sql)?;
    let listed = rows.into_iter().map(|row| Listed {
        name: row.text("TABLE_NAME"),
        sort: row.text("TABLE_TYPE"),
        row,
    });
    Ok(listed
        .filter(|one| !one.row.is("TEMPORARY", "Y"))
        .filter(|one| reader.wants(database, &one.name))
        .collect())
}

/// Reads the tables and sequences of a schema.
pub(super) fn read(
    reader: &mut Reader<'_>,
    database: &mut Database,
    listed: &[Listed],
    columns: &HashMap<String, Vec<Column>>,
) -> Result<()> {
    let name = database.name.clone();
    let mut keys = columns::keys(reader, &name, columns)?;
    let mut histograms = columns::histograms(reader, &name)?;
    for one in listed {
        if one.sort == "SEQUENCE" {
            match sequence(reader, &name, &one.name)? {
                Some(sequence) => database.sequences.push(sequence),
                None => reader.is_gone(SchemaObjectKind::Sequence, &name, &one.name),
            }
        } else if one.is_table() {
            let Some(create) = create(reader, &name, &one.name)? else {
                reader.is_gone(SchemaObjectKind::Table, &name, &one.name);
                continue;
            };
            database.tables.push(TableObject {
                name: one.name.clone(),
                engine: one.row.text("ENGINE"),
                create,
                columns: columns.get(&one.name).cloned().unwrap_or_default(),
                key: keys.remove(&one.name),
                rows_estimate: one.row.number("TABLE_ROWS"),
                data_bytes: one.row.number("DATA_LENGTH"),
                index_bytes: one.row.number("INDEX_LENGTH"),
                versioned: one.sort == "SYSTEM VERSIONED",
                histograms: histograms.remove(&one.name).unwrap_or_default(),
            });
        }
    }
    Ok(())
}

fn create(reader: &mut Reader<'_>, database: &str, name: &str) -> Result<Option<Vec<u8>>> {
    let sql = format!("SHOW CREATE TABLE {}", ask::qualified(database, name));
    let work = || format!("failed to read table {database}.{name}");
    let Some(row) = ask::object(reader.session, &sql).context(work)? else {
        return Ok(None);
    };
    let create = row.bytes("Create Table").ok_or_else(|| {
        Error::failed(format!(
            "the server does not show the definition of table {database}.{name}"
        ))
    })?;
    Ok(Some(create.to_vec()))
}

fn sequence(reader: &mut Reader<'_>, database: &str, name: &str) -> Result<Option<Sequence>> {
    let full = ask::qualified(database, name);
    let work = || format!("failed to read sequence {database}.{name}");
    let shown = ask::object(reader.session, &format!("SHOW CREATE SEQUENCE {full}"));
    let Some(shown) = shown.context(work)? else {
        return Ok(None);
    };
    let state = ask::object(
        reader.session,
        &format!("SELECT next_not_cached_value, cycle_count FROM {full}"),
    );
    let Some(state) = state.context(work)? else {
        return Ok(None);
    };
    let create = shown.bytes("Create Table").unwrap_or_default().to_vec();
    if create.is_empty() {
        return Err(Error::failed(format!(
            "the server does not show the definition of sequence {database}.{name}"
        )));
    }
    Ok(Some(Sequence {
        name: name.to_owned(),
        create,
        next_value: state.text("next_not_cached_value"),
        cycle_count: state.text("cycle_count"),
    }))
}
