//! The tables of a side, as far as it matters for comparing rows.

use super::column::Column;
use super::request::{ChecksumSelection, TableName};
use evenkeel_op::Result;
use evenkeel_server::connect::{Row, Session, quote, quote_name};
use evenkeel_server::tables::IS_TABLE;
use std::collections::BTreeMap;

/// Schemas that are each server's own.
pub(crate) const OF_SERVERS: [&str; 4] =
    ["mysql", "information_schema", "performance_schema", "sys"];
/// Engines whose reads see the point in time of a view.
const TRANSACTIONAL: [&str; 3] = ["InnoDB", "ROCKSDB", "TokuDB"];

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComparableTable {
    pub(crate) name: TableName,
    pub(crate) engine: String,
    /// In order.
    pub(crate) columns: Vec<Column>,
    /// Keys that no two rows share, by name.
    pub(crate) keys: Vec<Key>,
    /// The server's guess.
    pub(crate) rows: u64,
    /// It has rows that a plain read does not show.
    pub(crate) has_history: bool,
}

/// A key that no two rows share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// Positions in the table's columns; `None` for what is no column as it is.
    pub(crate) columns: Vec<Option<usize>>,
    /// How many of them order rows as literals compare.
    pub(crate) ordering: usize,
    pub(crate) nullable: bool,
}

/// All tables that are meant, by name.
pub(crate) type Catalog = BTreeMap<TableName, ComparableTable>;

impl ComparableTable {
    pub(crate) fn quoted(&self) -> String {
        let (database, table) = (
            quote_name(&self.name.database),
            quote_name(&self.name.table),
        );
        format!("{database}.{table}")
    }

    /// Returns why its rows cannot be compared.
    pub(crate) fn refusal(&self) -> Option<String> {
        let is_transactional = TRANSACTIONAL
            .iter()
            .any(|one| one.eq_ignore_ascii_case(&self.engine));
        if !is_transactional {
            return Some(format!(
                "{} tables show no point in time while others write",
                self.engine
            ));
        }
        (!self.columns.iter().any(Column::counts))
            .then(|| "it has no column that is kept".to_owned())
    }

    /// Returns the key that names its rows: the primary one, else the shortest that has no NULL.
    pub(crate) fn identity(&self) -> Option<&Key> {
        let whole = |key: &&Key| !key.nullable && key.columns.iter().all(Option::is_some);
        let rank = |key: &&Key| (key.name != "PRIMARY", key.columns.len());
        self.keys.iter().filter(whole).min_by_key(rank)
    }

    /// Returns its columns and the key that names its rows, in words that stay the same.
    pub(crate) fn definition(&self) -> String {
        let columns = self.columns.iter();
        let columns = columns.map(|one| format!("{} {}", quote_name(&one.name), described(one)));
        let key = self.identity().into_iter().flat_map(|key| &key.columns);
        let key = key.flatten().map(|at| quote_name(&self.columns[*at].name));
        format!(
            "{}; key: {}",
            columns.collect::<Vec<_>>().join(", "),
            key.collect::<Vec<_>>().join(", ")
        )
    }

    /// Returns what ranges of it depend on, and what was compared.
    pub(crate) fn shape(&self) -> String {
        format!("{:?} {:?}", self.columns, self.identity())
    }

    /// Returns how it differs from the same table of the replica.
    pub(crate) fn difference(&self, replica: &Self) -> Option<String> {
        for (at, here) in self.columns.iter().enumerate() {
            let Some(there) = replica.columns.iter().find(|one| one.name == here.name) else {
                return Some(format!("column '{}' is only on the source", here.name));
            };
            if here != there {
                return Some(format!(
                    "column '{}' is {} on the source and {} on the replica",
                    here.name,
                    described(here),
                    described(there)
                ));
            }
            if replica.columns.get(at) != Some(here) {
                return Some(format!(
                    "column '{}' has another place on the replica",
                    here.name
                ));
            }
        }
        if let Some(more) = replica.columns.get(self.columns.len()) {
            return Some(format!("column '{}' is only on the replica", more.name));
        }
        let missing = |one: &Self, other: &Self| {
            let found = one.keys.iter().find(|key| !other.keys.contains(key));
            found.map(|key| key.name.clone())
        };
        if let Some(key) = missing(self, replica) {
            return Some(format!("unique key '{key}' is different on the replica"));
        }
        missing(replica, self).map(|key| format!("unique key '{key}' is different on the source"))
    }
}

fn described(column: &Column) -> String {
    let mut text = column.full_type.clone();
    if let Some(collation) = &column.collation {
        text.push_str(&format!(" COLLATE {collation}"));
    }
    if !column.nullable {
        text.push_str(" NOT NULL");
    }
    if column.computed {
        text.push_str(" GENERATED");
    }
    text
}

/// Reads the tables that are meant.
pub(crate) fn read(session: &mut Session, selection: &ChecksumSelection) -> Result<Catalog> {
    let meant = meant(selection);
    let mut catalog = Catalog::new();
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_ROWS, TABLE_TYPE \
         FROM information_schema.TABLES WHERE {IS_TABLE} AND TABLE_TYPE <> 'SEQUENCE' AND {meant}"
    );
    for row in session.rows(&sql)? {
        let name = name(&row);
        if !selection.has(&name) {
            continue;
        }
        let table = ComparableTable {
            name: name.clone(),
            engine: row.at(2).unwrap_or("unknown").to_owned(),
            columns: Vec::new(),
            keys: Vec::new(),
            rows: row.at(3).and_then(|rows| rows.parse().ok()).unwrap_or(0),
            has_history: row.at(4) == Some("SYSTEM VERSIONED"),
        };
        catalog.insert(name, table);
    }
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, \
         COLLATION_NAME, IS_NULLABLE, EXTRA, GENERATION_EXPRESSION FROM information_schema.COLUMNS \
         WHERE {meant} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
    );
    for row in session.rows(&sql)? {
        if let Some(table) = catalog.get_mut(&name(&row)) {
            table.columns.extend(column(&row));
        }
    }
    keys(session, &meant, &mut catalog)?;
    Ok(catalog)
}

fn meant(selection: &ChecksumSelection) -> String {
    let mut databases: Vec<&str> = selection.databases.iter().map(String::as_str).collect();
    databases.extend(selection.tables.iter().map(|table| &*table.database));
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| quote(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let own = list(&OF_SERVERS);
    match (databases.as_slice(), selection.tables.as_slice()) {
        // Lists of MariaDB compare names without case; the cast keeps the schema `SYS`, which is a user's.
        ([], _) => format!("CAST(TABLE_SCHEMA AS BINARY) NOT IN ({own})"),
        // Servers read the definition of a single table without opening all others.
        (_, [one]) if selection.databases.is_empty() => format!(
            "TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            quote(&one.database),
            quote(&one.table)
        ),
        (named, _) => format!("TABLE_SCHEMA IN ({})", list(named)),
    }
}

fn name(row: &Row) -> TableName {
    TableName {
        database: row.at(0).unwrap_or_default().to_owned(),
        table: row.at(1).unwrap_or_default().to_owned(),
    }
}

/// Reads a column; `None` for one that says from when to when a row held.
fn column(row: &Row) -> Option<Column> {
    let text = |at: usize| row.at(at).unwrap_or_default().to_owned();
    let expression = text(9);
    if expression.to_ascii_uppercase().starts_with("ROW ") {
        return None;
    }
    let extra = text(8).to_ascii_uppercase();
    let modern = |name: String| match name.strip_prefix("utf8") {
        Some(rest) if rest.is_empty() || rest.starts_with('_') => format!("utf8mb3{rest}"),
        _ => name,
    };
    let data_type = text(3).to_ascii_lowercase();
    Some(Column {
        name: text(2),
        full_type: without_width(&text(4)),
        data_type,
        charset: row.at(5).map(|name| modern(name.to_owned())),
        collation: row.at(6).map(|name| modern(name.to_owned())),
        nullable: row.at(7) == Some("YES"),
        computed: !expression.is_empty(),
        stored: extra.contains("STORED GENERATED") || extra.contains("PERSISTENT"),
    })
}

/// Returns a type without the display width of integers: some versions show it, others do not.
fn without_width(full_type: &str) -> String {
    let Some((name, rest)) = full_type.split_once('(') else {
        return full_type.to_owned();
    };
    match (
        name.ends_with("int") || name == "year",
        rest.split_once(')'),
    ) {
        (true, Some((_, more))) => format!("{name}{more}"),
        _ => full_type.to_owned(),
    }
}

fn keys(session: &mut Session, meant: &str, catalog: &mut Catalog) -> Result<()> {
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, COLLATION, INDEX_TYPE \
         FROM information_schema.STATISTICS WHERE {meant} AND NON_UNIQUE = 0 \
         ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    );
    for row in session.rows(&sql)? {
        let Some(table) = catalog.get_mut(&name(&row)) else {
            continue;
        };
        let index = row.at(2).unwrap_or_default();
        if table.keys.last().is_none_or(|key| key.name != index) {
            table.keys.push(Key {
                name: index.to_owned(),
                columns: Vec::new(),
                ordering: 0,
                nullable: false,
            });
        }
        let Some(key) = table.keys.last_mut() else {
            continue;
        };
        let column = row.at(3).filter(|_| row.at(4).is_none());
        let at = column.and_then(|name| table.columns.iter().position(|one| one.name == name));
        let found = at.map(|at| &table.columns[at]);
        // A hash has no direction, and orders nothing.
        let orders = found.is_some_and(Column::compares)
            && row.at(5) == Some("A")
            && row.at(6) == Some("BTREE");
        if orders && key.ordering == key.columns.len() {
            key.ordering += 1;
        }
        key.nullable |= found.is_none_or(|column| column.nullable);
        key.columns.push(at);
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn table(columns: Vec<Column>, key: &[usize]) -> ComparableTable {
        ComparableTable {
            name: "d.t".parse().unwrap(),
            engine: "InnoDB".to_owned(),
            keys: vec![Key {
                name: "PRIMARY".to_owned(),
                columns: key.iter().map(|at| Some(*at)).collect(),
                ordering: key.len(),
                nullable: false,
            }],
            columns,
            rows: 0,
            has_history: false,
        }
    }

    #[test]
    fn widths_of_integers_mean_nothing() {
        assert_eq!(without_width("int(11) unsigned"), "int unsigned");
        assert_eq!(without_width("bigint(20)"), "bigint");
        assert_eq!(without_width("varchar(20)"), "varchar(20)");
        assert_eq!(without_width("point"), "point");
        assert_eq!(without_width("decimal(10,2)"), "decimal(10,2)");
    }

    #[test]
    fn definitions_differ_by_what_they_say() {
        let column = |name, kind| Column::for_tests(name, kind, None);
        let one = table(vec![column("a", "int"), column("b", "int")], &[0]);
        assert_eq!(one.difference(&one), None);
        let fewer = table(vec![column("a", "int")], &[0]);
        let says = |one: &ComparableTable, other: &ComparableTable| one.difference(other).unwrap();
        assert_eq!(says(&one, &fewer), "column 'b' is only on the source");
        assert_eq!(says(&fewer, &one), "column 'b' is only on the replica");
        let other = table(vec![column("a", "int"), column("b", "bigint")], &[0]);
        assert!(says(&one, &other).contains("int NOT NULL on the source and bigint"));
        let turned = table(vec![column("b", "int"), column("a", "int")], &[1]);
        assert!(says(&one, &turned).contains("another place"));
        let keyed = table(vec![column("a", "int"), column("b", "int")], &[0, 1]);
        assert!(says(&one, &keyed).contains("unique key 'PRIMARY'"));
    }
}
