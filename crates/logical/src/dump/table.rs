//! A table whose rows are dumped.

use super::file_names::stem;
use super::history::until;
use super::mask::TableMask;
use crate::objects::Column;
use evenkeel_server::connect::quote_name;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DumpTable {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) engine: String,
    pub(super) transactional: bool,
    /// Its rows are its own, and not those of other tables or servers.
    pub(super) has_rows: bool,
    /// The server's guess.
    pub(super) rows: u64,
    /// Bytes of data, without indexes; the server's guess.
    pub(super) bytes: u64,
    /// In order, without generated ones; where all are generated, the first of them. With old rows, the
    /// last two are from when to when a row held.
    pub(super) columns: Vec<Column>,
    /// Old rows of a system-versioned table too.
    pub(super) history: bool,
    /// What it may be cut by.
    pub(super) key: Option<Key>,
    /// Ranges are read from their ends: see `Abilities::sticky_range_ends`.
    pub(super) is_read_backwards: bool,
    /// What rows must meet.
    pub(super) condition: Option<String>,
    /// What stands in the place of values.
    pub(super) mask: Option<TableMask>,
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

impl DumpTable {
    /// Has values masked. Ranges are written down, so no masked column may be what the table is cut by.
    pub(super) fn set_mask(&mut self, mask: TableMask) {
        if let Some(key) = &mut self.key {
            let before = key.columns.len();
            let masked = key.columns.iter().position(|at| mask.way(*at).is_some());
            key.columns.truncate(masked.unwrap_or(before));
            key.whole &= key.columns.len() == before;
        }
        // Only of the primary key a part is worth something.
        let is_worth = |key: &Key| !key.columns.is_empty() && (key.whole || key.name == "PRIMARY");
        self.key = self.key.take().filter(is_worth);
        self.mask = Some(mask);
    }

    /// Returns the name of the way in which the column there is masked.
    pub(super) fn masked_as(&self, at: usize) -> Option<&'static str> {
        self.mask.as_ref()?.way(at)
    }

    /// Makes a table without a key.
    #[cfg(test)]
    pub(super) fn for_tests(schema: &str, name: &str, columns: Vec<Column>) -> Self {
        Self {
            schema: schema.to_owned(),
            name: name.to_owned(),
            engine: "InnoDB".to_owned(),
            transactional: true,
            has_rows: true,
            rows: 0,
            bytes: 0,
            columns,
            history: false,
            key: None,
            is_read_backwards: false,
            condition: None,
            mask: None,
        }
    }

    /// Returns the name for statements.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quote_name(&self.schema), quote_name(&self.name))
    }

    /// Returns what to select from, for all rows that are meant.
    pub(super) fn from(&self) -> String {
        match self.history {
            true => format!("{} FOR SYSTEM_TIME ALL", self.quoted()),
            false => self.quoted(),
        }
    }

    /// Returns the place of the column that says until when a row held.
    pub(super) fn row_end(&self) -> Option<usize> {
        self.history.then(|| self.columns.len() - 1)
    }

    /// Returns what to select, column by column; `by_number` says which have members by number.
    pub(super) fn selected(&self, by_number: impl Fn(&Column) -> bool) -> String {
        let columns = self.columns.iter().enumerate().map(|(at, column)| {
            let value = column.selected_as(by_number(column));
            match Some(at) == self.row_end() {
                true => until(&value),
                false => value,
            }
        });
        columns.collect::<Vec<String>>().join(", ")
    }

    /// Returns the name for people.
    pub(super) fn shown(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns the beginning of the names of its files.
    pub(super) fn stem(&self) -> String {
        stem(&self.schema, &self.name)
    }
}

/// Returns a table's statement without the next automatic number.
pub(super) fn uncounted(create: &[u8]) -> Vec<u8> {
    static COUNTER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r" AUTO_INCREMENT=\d+").ok());
    match &*COUNTER {
        Some(counter) => counter.replace_all(create, &b""[..]).into_owned(),
        None => create.to_vec(),
    }
}
