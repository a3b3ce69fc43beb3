//! Which columns tables have, as a binary log and foreign keys name them.

use super::catalog::Look;
use crate::objects::{Column, Generated};
use regex::bytes::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Types whose values are read in a log's rows.
const READ: [&str; 38] = [
    "tinyint",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "decimal",
    "float",
    "double",
    "bit",
    "year",
    "date",
    "time",
    "datetime",
    "timestamp",
    "char",
    "varchar",
    "binary",
    "varbinary",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
    "enum",
    "set",
    "json",
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
];

/// Returns a table's name, `schema.table` in small letters: servers may keep names in other letters than
/// they log them.
pub(super) fn key(schema: &str, table: &str) -> String {
    format!("{schema}.{table}").to_lowercase()
}

/// Some of a table's columns, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Columns {
    These(BTreeSet<usize>),
    /// It is not known which.
    Any,
}

impl Columns {
    pub(super) const NONE: Self = Self::These(BTreeSet::new());

    pub(super) fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::These(mut one), Self::These(other)) => {
                one.extend(other);
                Self::These(one)
            }
            _ => Self::Any,
        }
    }

    /// Returns whether some column may be in both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::These(one), Self::These(other)) => !one.is_disjoint(other),
            _ => !self.is_none() && !other.is_none(),
        }
    }
}

/// The columns of tables, by the tables' names.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    tables: BTreeMap<String, Shape>,
}

#[derive(Debug)]
struct Shape {
    /// In small letters and in order; computed ones have none, as others change them. Where two tables'
    /// names differ in case only, or values cannot be read, there are no columns.
    columns: Vec<Option<String>>,
    versioned: bool,
}

impl Shapes {
    pub(super) fn of(look: &Look) -> Self {
        let mut all = Self::default();
        for database in &look.objects.databases {
            for table in &database.tables {
                let name = key(&database.name, &table.name);
                all.add(name, &table.columns, table.versioned);
            }
        }
        all
    }

    pub(super) fn add(&mut self, name: String, columns: &[Column], versioned: bool) {
        let is_read = columns.iter().all(|one| READ.contains(&&*one.data_type));
        let named = columns.iter().map(|one| {
            let is_plain = one.generated == Generated::No;
            is_plain.then(|| one.name.to_lowercase())
        });
        let shape = Shape {
            columns: match is_read && !self.tables.contains_key(&name) {
                true => named.collect(),
                false => Vec::new(),
            },
            versioned: versioned || self.is_versioned(&name),
        };
        self.tables.insert(name, shape);
    }

    /// Returns whether what is deleted from a table gets an end instead.
    pub(super) fn is_versioned(&self, table: &str) -> bool {
        self.tables.get(table).is_some_and(|one| one.versioned)
    }

    /// Returns how many columns rows of a table have in the log; 0 where that is not known.
    pub(super) fn width(&self, table: &str) -> usize {
        self.tables.get(table).map_or(0, |one| one.columns.len())
    }

    /// Returns the columns of a table that a list in a statement names.
    pub(super) fn listed(&self, table: &str, list: &[u8]) -> Columns {
        static NAME: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new("`((?:[^`]|``)+)`").ok());
        let (Some(pattern), Some(shape)) = (&*NAME, self.tables.get(table)) else {
            return Columns::Any;
        };
        let places = pattern.captures_iter(list).map(|found| {
            let name = String::from_utf8_lossy(&found[1]).replace("``", "`");
            let name = Some(name.to_lowercase());
            shape.columns.iter().position(|one| *one == name)
        });
        match places.collect::<Option<BTreeSet<usize>>>() {
            Some(places) if !places.is_empty() => Columns::These(places),
            _ => Columns::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of names that differ in case only the log does not say which is meant, nor what type is where.
    #[test]
    fn columns_that_are_not_sure_are_not_known() {
        let mut shapes = Shapes::default();
        let column = |name| Column::for_tests(name, "int", None);
        shapes.add("d.one".to_owned(), &[column("a"), column("b")], false);
        assert_eq!(shapes.width("d.one"), 2);
        assert_eq!(shapes.listed("d.one", b"`B`"), Columns::These([1].into()));
        shapes.add("d.t".to_owned(), &[column("a")], false);
        shapes.add("d.t".to_owned(), &[column("b")], false);
        assert_eq!((shapes.width("d.t"), shapes.width("d.other")), (0, 0));
        assert_eq!(shapes.listed("d.t", b"`b`"), Columns::Any);
        let address = [Column::for_tests("a", "inet6", None)];
        shapes.add("d.address".to_owned(), &address, false);
        assert_eq!(shapes.width("d.address"), 0);
    }
}
