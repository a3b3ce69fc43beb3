//! What is compared, and how gently.

use evenkeel_op::{Error, Result};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::Program;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A comparison of a replica with its source.
#[derive(Debug, Clone)]
pub struct ChecksumRequest {
    /// The replica.
    pub replica: ConnectOptions,
    /// Its source; without one, the server that the replica names, with the replica's own account.
    pub source: Option<ConnectOptions>,
    /// Which of its sources, by the name of the channel, where it has several.
    pub channel: Option<String>,
    /// What is compared.
    pub selection: ChecksumSelection,
    /// How gently.
    pub limits: ChecksumLimits,
    /// How the watchdog of the stopped SQL thread is started.
    pub watchdog: Program,
    /// Where the state is kept, to continue from there.
    pub state: Option<PathBuf>,
    /// How many rows are named, of each table.
    pub named_rows: usize,
}

/// Databases and tables; all of them, if none is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChecksumSelection {
    /// Databases.
    pub databases: Vec<String>,
    /// Tables.
    pub tables: Vec<TableName>,
}

/// How gently.
#[derive(Debug, Clone)]
pub struct ChecksumLimits {
    /// Connections to each side that read.
    pub threads: usize,
    /// How long a statement that reads should take.
    pub chunk_time: Duration,
    /// Rest while a replica is farther behind.
    pub lag: Option<Duration>,
    /// Replicas besides the compared one whose lag counts.
    pub other_replicas: Vec<ConnectOptions>,
    /// Rest while a side runs more statements of others.
    pub threads_running: Option<u64>,
    /// No view is kept for longer: servers keep old rows for it.
    pub snapshot: Duration,
    /// How long the SQL thread may take to stop, the lock of the source to come, and the SQL thread may stay at one
    /// transaction on its way to the source's place.
    pub deadline: Duration,
}

/// A table, by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// Its database.
    pub database: String,
    /// Its name there.
    pub table: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

impl FromStr for TableName {
    type Err = Error;

    /// Reads `database.table`. The first point is the one between them.
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

impl ChecksumSelection {
    /// Returns whether a table is meant.
    #[must_use]
    pub fn has(&self, name: &TableName) -> bool {
        let all = self.databases.is_empty() && self.tables.is_empty();
        all || self.databases.contains(&name.database) || self.tables.contains(name)
    }
}
