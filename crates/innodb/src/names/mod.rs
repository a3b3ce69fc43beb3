//! Names for people: from file names and index ids to tables, partitions and indexes.

mod encoding;
pub mod sdi;
pub mod system;
mod table;

pub use encoding::decode;
pub use table::TableName;

use crate::header::PageHeader;
use crate::page::PageType;
use std::collections::HashMap;
use std::fmt;

/// Asks a server for the rows that [`Names::new`] takes; its tables are called otherwise where its dictionary is in
/// InnoDB. MySQL 8.0.15 leaves out the indexes of partitions; the table and partition are then still known from the file.
#[must_use]
pub const fn query(dictionary_in_innodb: bool) -> &'static str {
    match dictionary_in_innodb {
        true => QUERY_DICTIONARY,
        false => QUERY_SYS,
    }
}

const QUERY_SYS: &str = "SELECT i.SPACE AS space_id, i.INDEX_ID AS index_id, \
     t.NAME AS table_name, i.NAME AS index_name, i.TYPE AS index_type \
     FROM information_schema.INNODB_SYS_INDEXES i \
     JOIN information_schema.INNODB_SYS_TABLES t ON t.TABLE_ID = i.TABLE_ID";

const QUERY_DICTIONARY: &str = "SELECT i.SPACE AS space_id, i.INDEX_ID AS index_id, \
     t.NAME AS table_name, i.NAME AS index_name, i.TYPE AS index_type \
     FROM information_schema.INNODB_INDEXES i \
     JOIN information_schema.INNODB_TABLES t ON t.TABLE_ID = i.TABLE_ID";

/// The bit of an index's type that says it holds the rows themselves.
const CLUSTERED: u32 = 1;

/// One index, as [`query`] gives it: the fields are the columns, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    /// The tablespace that it is in.
    pub space_id: u32,
    /// Its id, which each of its pages carries.
    pub index_id: u64,
    /// The table in the server's own spelling: `bank/accounts#P#p0`.
    pub table: String,
    /// The index's name.
    pub index: String,
    /// Bits: 1 clustered, 2 unique, 32 full-text, 64 spatial.
    pub index_type: u32,
}

/// What the server calls its indexes.
#[derive(Debug, Clone, Default)]
pub struct Names {
    indexes: HashMap<(u32, u64), IndexRow>,
}

/// What a page belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageName {
    /// The table, when the page is in one table's own file or its index is known.
    pub table: Option<TableName>,
    /// The index, when the page is of an index that is known.
    pub index: Option<String>,
    /// Whether that index can be rebuilt from the rows; nothing if not known.
    pub secondary: Option<bool>,
    /// What the page holds.
    pub page_type: PageType,
}

impl IndexRow {
    /// Reads a row of one of the queries, column by column; nothing if one makes no sense.
    #[must_use]
    pub fn of_columns(columns: [Option<&str>; 5]) -> Option<Self> {
        let [space_id, index_id, table, index, index_type] = columns;
        Some(Self {
            space_id: space_id?.parse().ok()?,
            index_id: index_id?.parse().ok()?,
            table: table?.to_owned(),
            index: index?.to_owned(),
            index_type: index_type?.parse().ok()?,
        })
    }
}

impl Names {
    /// Adds rows, for what was not known yet.
    pub fn add(&mut self, rows: impl IntoIterator<Item = IndexRow>) {
        for row in rows {
            self.indexes
                .entry((row.space_id, row.index_id))
                .or_insert(row);
        }
    }

    /// Returns whether the dictionary knows an index by that id in that tablespace.
    #[must_use]
    pub fn knows(&self, space_id: u32, index_id: u64) -> bool {
        self.indexes.contains_key(&(space_id, index_id))
    }

    /// Takes the rows of one of the queries.
    #[must_use]
    pub fn new(rows: impl IntoIterator<Item = IndexRow>) -> Self {
        let indexes = rows
            .into_iter()
            .map(|row| ((row.space_id, row.index_id), row))
            .collect();
        Self { indexes }
    }

    /// Says what a page belongs to. `file_name` is a path whose last two parts are schema and
    /// file (`data/bank/accounts.ibd`); `space_id` is the tablespace by page 0 of that file.
    ///
    /// A damaged page may claim anything: its index counts only if the server knows one with that
    /// id in this tablespace.
    #[must_use]
    pub fn describe(&self, file_name: &str, space_id: u32, page: &PageHeader) -> PageName {
        let known = page
            .index_id
            .and_then(|index_id| self.indexes.get(&(space_id, index_id)));
        let from_file = TableName::of_file(file_name);
        PageName {
            table: known
                .map(|row| TableName::of_dictionary(&row.table))
                .or(from_file),
            index: known.map(|row| row.index.clone()),
            secondary: known.map(|row| row.index_type & CLUSTERED == 0),
            page_type: page.page_type,
        }
    }
}

impl PageName {
    /// Returns the statement that rebuilds the damaged index, where that is possible: only a
    /// secondary index holds nothing that the rows do not.
    ///
    /// It rebuilds the table from its rows and never reads the damaged index. Dropping the index
    /// alone would be quicker, but takes down MySQL 8.0.15 when its root page is damaged.
    #[must_use]
    pub fn rebuild_sql(&self) -> Option<String> {
        match (&self.table, self.secondary) {
            (Some(table), Some(true)) => Some(format!("ALTER TABLE {} FORCE", table.quoted())),
            _ => None,
        }
    }
}

impl fmt::Display for PageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.table, &self.index) {
            (Some(table), Some(index)) => {
                let kind = match self.secondary {
                    Some(true) => "secondary index",
                    _ => "clustered index",
                };
                write!(f, "{table}, {kind} {index}")
            }
            (Some(table), None) => write!(f, "{table}, {} page", self.page_type),
            (None, _) => write!(f, "{} page", self.page_type),
        }
    }
}

#[cfg(test)]
mod tests;
