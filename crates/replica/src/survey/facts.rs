//! What a server says of itself and of what it replicates.

use evenkeel_binlog::GtidSet;
use evenkeel_server::abilities::{Abilities, GtidKind};
use evenkeel_server::replication::{Channel, Position};

/// Who a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// As the server writes it: `10.11.14-MariaDB-log`.
    pub version: String,
    /// Number of the server among those that replicate.
    pub id: u64,
    /// MySQL: what tells it from all others.
    pub uuid: Option<String>,
    /// The name of its host, as it sees it.
    pub hostname: String,
    /// The port that it listens at.
    pub port: u16,
    /// Clients without a special privilege cannot write.
    pub is_read_only: bool,
}

/// A file of a binary log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedFile {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// MySQL: why a worker of an applier stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerError {
    /// Of which channel.
    pub channel: String,
    /// The server's number of the error.
    pub number: u32,
    /// What it says, with the transaction that it was at.
    pub text: String,
}

/// A thread of the server that is at something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Its number, for KILL.
    pub id: u64,
    /// The account; `system user` for those that replicate.
    pub user: String,
    /// What it was told to do: `Query`, `Sleep`, `Slave_SQL`.
    pub command: String,
    /// For so many seconds.
    pub seconds: u64,
    /// What it does, in the server's words.
    pub does: String,
    /// Its statement, or the beginning of it.
    pub statement: String,
    /// Seconds for which its transaction is open, if it has one.
    pub transaction_s: Option<u64>,
    /// Seconds for which it has been waiting for a row that another transaction has locked, if it does.
    pub row_wait_s: Option<u64>,
}

/// All that a server said.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Who it is.
    pub identity: Identity,
    /// What it can do.
    pub abilities: Abilities,
    /// One for each source.
    pub channels: Vec<Channel>,
    /// Parallel workers of each applier; 0 when it works alone.
    pub workers: u64,
    /// What was applied by GTIDs. MariaDB: `gtid_slave_pos`. MySQL: `gtid_executed`.
    pub applied: GtidSet,
    /// What its own binary log has had. MariaDB: `gtid_binlog_state`. MySQL: `gtid_executed`.
    pub logged: GtidSet,
    /// The three sets of GTIDs are what the server says, and not merely empty.
    pub knows_gtids: bool,
    /// MySQL: of that, what the binary log does not have any more.
    pub purged: GtidSet,
    /// Where its own binary log ends; absent when it is off.
    pub log_end: Option<Position>,
    /// The files of its binary log, oldest first.
    pub log_files: Vec<LoggedFile>,
    /// MySQL: why workers stopped.
    pub worker_errors: Vec<WorkerError>,
    /// Of tables that errors name and that exist: the names of their unique keys.
    pub unique_keys: Vec<((String, String), Vec<String>)>,
    /// Its threads that are at something, and those with an open transaction.
    pub busy: Vec<Busy>,
    /// Channels that stand without an error and whose relay log is not there, each with what the server says.
    pub relay_logs_gone: Vec<(String, String)>,
    /// Age of the newest heartbeat in seconds.
    pub heartbeat_s: Option<f64>,
    /// A thread waits for free space: what would hang was not asked.
    pub is_out_of_space: bool,
    /// What was not answered, each with the reason.
    pub refused: Vec<String>,
}

impl Facts {
    /// Returns how it names transactions.
    #[must_use]
    pub fn gtid_kind(&self) -> GtidKind {
        self.abilities.gtid
    }
}
