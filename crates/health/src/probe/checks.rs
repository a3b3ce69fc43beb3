//! What is looked at.

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What a server should be to its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expected {
    /// Either.
    #[default]
    Any,
    /// Clients can write.
    Writable,
    /// Clients cannot write.
    ReadOnly,
}

/// A table that is read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    database: String,
    table: String,
}

impl FromStr for TableName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => Ok(Self {
                database: database.to_owned(),
                table: table.to_owned(),
            }),
            _ => {
                Err(Error::usage(format!("'{text}' is not a table"))
                    .hint("write it as DATABASE.TABLE"))
            }
        }
    }
}

impl TableName {
    /// Returns a statement that writes the row of a server into it.
    pub(super) fn writes(&self, server_id: u64) -> String {
        let (database, table) = (quote_name(&self.database), quote_name(&self.table));
        format!("REPLACE INTO {database}.{table} (id, at) VALUES ({server_id}, UTC_TIMESTAMP(6))")
    }

    /// Returns a statement that says how old its newest row is, in seconds.
    pub(super) fn age(&self) -> String {
        let (database, table) = (quote_name(&self.database), quote_name(&self.table));
        format!(
            "SELECT TIMESTAMPDIFF(MICROSECOND, MAX(at), UTC_TIMESTAMP(6)) DIV 1000000 FROM {database}.{table}"
        )
    }

    /// Returns a statement that reads one row of it.
    pub(super) fn statement(&self) -> String {
        let (database, table) = (quote_name(&self.database), quote_name(&self.table));
        format!("SELECT 1 FROM {database}.{table} LIMIT 1")
    }
}

/// What is looked at, besides that the server answers.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// A statement that must succeed.
    pub query: Option<String>,
    /// What it should be.
    pub expected: Expected,
    /// Its replication must run.
    pub replicates: bool,
    /// How far behind its sources it may be.
    pub lag_max: Option<Duration>,
    /// So many bytes must be free below its data directory.
    pub disk_min: Option<u64>,
    /// Where that is on this host; `None` to ask the server.
    pub datadir: Option<PathBuf>,
    /// So many connections must be free.
    pub connections_min: u64,
    /// It must be a synced member of the primary component of a Galera cluster.
    pub galera: bool,
    /// Tables that must be readable.
    pub tables: Vec<TableName>,
    /// Where a row is written as long as clients can write, and read otherwise: how old it is says how far behind the
    /// server is.
    pub write_table: Option<TableName>,
}

impl Checks {
    /// Returns whether two statements are all there is to ask.
    pub(super) fn are_plain(&self) -> bool {
        let looks_at_disk = self.disk_min.is_some() || self.datadir.is_some();
        let looks_at_rows = !self.tables.is_empty() || self.write_table.is_some();
        !looks_at_disk && !looks_at_rows && !self.wants_replication() && self.query.is_none()
    }

    /// Returns whether its sources have to be asked for.
    pub(super) fn wants_replication(&self) -> bool {
        self.replicates || self.lag_max.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_quoted() {
        let table: TableName = "shop.or`ders".parse().unwrap();
        assert_eq!(table.statement(), "SELECT 1 FROM `shop`.`or``ders` LIMIT 1");
        for wrong in ["orders", ".orders", "shop.", ""] {
            assert!(wrong.parse::<TableName>().is_err(), "{wrong}");
        }
    }
}
