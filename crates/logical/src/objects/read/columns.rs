//! Columns, keys and histograms of all tables of a schema at once.

use super::super::{Column, Generated, Histogram, UniqueKey};
use super::ask;
use super::reader::Reader;
use ask::Answer;
use evenkeel_op::Result;
use evenkeel_server::connect::quote;
use std::collections::HashMap;

/// Returns the columns of each table and view by its name.
pub(super) fn columns(
    reader: &mut Reader<'_>,
    database: &str,
) -> Result<HashMap<String, Vec<Column>>> {
    let sql = format!(
        "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} \
         ORDER BY TABLE_NAME, ORDINAL_POSITION",
        quote(database)
    );
    let mut tables: HashMap<String, Vec<Column>> = HashMap::new();
    for row in ask::rows(reader.session, &sql)? {
        let table = tables.entry(row.text("TABLE_NAME")).or_default();
        table.push(column(&row));
    }
    Ok(tables)
}

fn column(row: &Answer) -> Column {
    let extra = row.text("EXTRA").to_ascii_uppercase();
    let has = |words: &str| extra.contains(words);
    // MySQL says DEFAULT_GENERATED of an expression that is only a default.
    let generated = if row.text("GENERATION_EXPRESSION").is_empty() {
        Generated::No
    } else if row
        .text("GENERATION_EXPRESSION")
        .to_ascii_uppercase()
        .starts_with("ROW ")
    {
        Generated::RowTime
    } else if has("STORED GENERATED") || has("PERSISTENT") {
        Generated::Stored
    } else {
        Generated::Virtual
    };
    Column {
        name: row.text("COLUMN_NAME"),
        data_type: row.text("DATA_TYPE").to_ascii_lowercase(),
        column_type: row.text("COLUMN_TYPE"),
        charset: row.some("CHARACTER_SET_NAME"),
        collation: row.some("COLLATION_NAME"),
        nullable: row.is("IS_NULLABLE", "YES"),
        generated,
        invisible: extra.split([',', ' ']).any(|word| word == "INVISIBLE"),
        auto_increment: has("AUTO_INCREMENT"),
    }
}

/// Returns the key that orders each table's rows, by the table's name.
pub(super) fn keys(
    reader: &mut Reader<'_>,
    database: &str,
    columns: &HashMap<String, Vec<Column>>,
) -> Result<HashMap<String, UniqueKey>> {
    let sql = format!(
        "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, COLLATION, INDEX_TYPE \
         FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND NON_UNIQUE = 0 \
         ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
        quote(database)
    );
    let rows = ask::rows(reader.session, &sql)?;
    let parts = rows.chunk_by(|one, next| {
        ["TABLE_NAME", "INDEX_NAME"]
            .iter()
            .all(|name| one.bytes(name) == next.bytes(name))
    });
    let mut best: HashMap<String, UniqueKey> = HashMap::new();
    for part in parts {
        let table = part[0].text("TABLE_NAME");
        let known = columns.get(&table).map_or(&[][..], Vec::as_slice);
        let Some(key) = usable(part, known) else {
            continue;
        };
        let rank = |key: &UniqueKey| (key.name != "PRIMARY", key.columns.len());
        match best.get(&table) {
            Some(held) if rank(held) <= rank(&key) => {}
            _ => drop(best.insert(table, key)),
        }
    }
    Ok(best)
}

/// Returns a unique key as far as it orders rows. Of a primary one a part is worth something too:
/// it is the order that rows lie in.
fn usable(parts: &[Answer], columns: &[Column]) -> Option<UniqueKey> {
    let name = parts.first()?.text("INDEX_NAME");
    let ordering = parts.iter().map_while(|part| {
        // A part without a column is an expression; a hash has no direction, and orders nothing.
        let name = part.some("COLUMN_NAME")?;
        let column = columns.iter().find(|one| one.name == name)?;
        let orders = !column.nullable
            && part.bytes("SUB_PART").is_none()
            && part.is("COLLATION", "A")
            && part.is("INDEX_TYPE", "BTREE");
        orders.then_some(name)
    });
    let ordering: Vec<String> = ordering.collect();
    let whole = ordering.len() == parts.len();
    (!ordering.is_empty() && (whole || name == "PRIMARY")).then_some(UniqueKey {
        name,
        columns: ordering,
        whole,
    })
}

/// Returns the histograms of each table by its name.
pub(super) fn histograms(
    reader: &mut Reader<'_>,
    database: &str,
) -> Result<HashMap<String, Vec<Histogram>>> {
    let mut tables: HashMap<String, Vec<Histogram>> = HashMap::new();
    if !reader.abilities.column_statistics {
        return Ok(tables);
    }
    let sql = format!(
        "SELECT TABLE_NAME, COLUMN_NAME, \
         JSON_EXTRACT(HISTOGRAM, '$.\"number-of-buckets-specified\"') AS BUCKETS \
         FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = {} \
         ORDER BY TABLE_NAME, COLUMN_NAME",
        quote(database)
    );
    for row in ask::rows(reader.session, &sql)? {
        tables
            .entry(row.text("TABLE_NAME"))
            .or_default()
            .push(Histogram {
                column: row.text("COLUMN_NAME"),
                buckets: row.text("BUCKETS").parse().unwrap_or(100),
            });
    }
    Ok(tables)
}
