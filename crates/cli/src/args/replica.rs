//! `replica`.

use super::{Connection, ReplicaHeal, ReplicaRepair, ReplicaResync, Servers, span};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel replica status db1 db2 db3           Who replicates from whom, and how far behind
  evenkeel replica diagnose db1 db2 db3         What is wrong, what repairs it, and what not to do
  evenkeel replica checksum db2                 Whether db2 has the rows of its source
  evenkeel replica repair db2 --output PLAN     What would make them so
  evenkeel replica resync --datadir DIR --ssh root@db3    A new copy of db3's files in place of broken ones
  evenkeel replica heal db1 db2 db3             What could be repaired without you, and what forbids it";

/// Show replicas and their sources, and say what is wrong with them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct Replica {
    /// What to do.
    #[command(subcommand)]
    pub verb: ReplicaVerb,
}

/// What to do about replicas.
#[derive(Subcommand, Debug)]
pub enum ReplicaVerb {
    /// Show who replicates from whom, whether it runs, and how far behind it is.
    Status(ReplicaStatus),
    /// Name what is wrong with replicas, with the evidence, what repairs it, and what not to do.
    Diagnose(ReplicaDiagnose),
    /// Compare a replica with its source, row by row, while both are in use.
    Checksum(Box<ReplicaChecksum>),
    /// Make the rows of a replica those of its source: first as a plan.
    Repair(Box<ReplicaRepair>),
    /// Make a broken replica new from a healthy one, in place: first as a plan.
    Resync(Box<ReplicaResync>),
    /// Repair replicas by itself, as far as it is allowed: first as a plan.
    Heal(Box<ReplicaHeal>),
}

const STATUS: &str = "\
Examples:
  evenkeel replica status                                    This host's server
  evenkeel replica status db1 db2:3307 db3 -u monitor -p
  evenkeel replica status --fleet /etc/evenkeel/fleet.toml --heartbeat ops.heartbeat
  evenkeel replica status db1 db2 --json | jq '.servers[] | {server, channels: [.channels[].lag]}'

Name sources and replicas alike: who follows whom is found out. Behind says how far a replica is behind: in seconds
as the server says, or since the newest row of --heartbeat; in bytes and transactions, if the source was asked too.
The server's own word is 0 while its source is frozen, and while a long transaction runs there.

Privileges: REPLICATION CLIENT (MariaDB: REPLICA MONITOR and BINLOG MONITOR) and PROCESS.

Exit code: 0 if every server answered all of it, 3 if some did not, 13 or 14 (or what else was the reason) if none
did. Whether replication runs does not matter here: see 'evenkeel replica diagnose'.";

/// Show who replicates from whom.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub struct ReplicaStatus {
    /// Which servers.
    #[command(flatten)]
    pub asked: AskedServers,
    /// A table whose newest row says when it was written: at DATETIME(6), in UTC. 'health run --write-table' keeps one.
    #[arg(long, value_name = "DATABASE.TABLE", help_heading = "Servers")]
    pub heartbeat: Option<String>,
}

/// Which servers are asked once, and for how long.
#[derive(Args, Debug)]
pub struct AskedServers {
    /// Which servers.
    #[command(flatten)]
    pub which: Servers,
    /// Wait for a server's answers for at most this time.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span, help_heading = "Servers")]
    pub timeout: Duration,
}

const DIAGNOSE: &str = "\
Examples:
  evenkeel replica diagnose db1 db2 db3
  evenkeel replica diagnose --fleet /etc/evenkeel/fleet.toml -u monitor -p
  evenkeel replica diagnose db3 --check-table shop.orders    Reads all of the table and its indexes
  evenkeel replica diagnose db1 db2 --json | jq '.findings[] | {server, failure, class, repair}'

Every server is asked twice, a second apart; what may be over in a moment counts if both answers say it. Name the source and the other replicas
too: some failures (a position that is ahead, transactions of a replica's own, a server number that is used twice)
show only beside them, and are not looked for without.

Class says who may repair it. automatic: it can do no harm. planned: a person looks at the plan first. never: only a
person can know what is right. wait: it repairs itself.

Nothing is changed by this command; CHECK TABLE marks an index that it finds damaged.

Exit code: 0 if nothing is wrong, 4 if something is (also if a named server does not answer), 3 if nothing was found but
something could not be checked, 13 or 14 if no server answered.";

/// Name what is wrong with replicas.
#[derive(Args, Debug)]
#[command(after_help = DIAGNOSE)]
pub struct ReplicaDiagnose {
    /// Which servers.
    #[command(flatten)]
    pub asked: AskedServers,
    /// Run CHECK TABLE on this table of each replica; repeat for more. It reads the whole table.
    #[arg(long, value_name = "DATABASE.TABLE", help_heading = "Servers")]
    pub check_table: Vec<String>,
}

const CHECKSUM: &str = "\
Examples:
  evenkeel replica checksum db2 -u checker -p
  evenkeel replica checksum db2 --source db1 --database shop
  evenkeel replica checksum db2 --table shop.orders --json | jq '.tables[].differences'
  evenkeel replica checksum db2 --lag-of db3 --max-lag 1s --max-load 25 --state db2.state

Both servers stay in use. The replica's SQL thread is stopped for a moment, and both sides look at one and the same
place of the source's binary log; then it runs again, and what both saw is compared in pieces. What differs is
looked at a second time, at another place, and counts only if it still differs. On MySQL, writes on the source wait
while it looks (FLUSH TABLES WITH READ LOCK, for some milliseconds); on MariaDB nothing waits. If this command is
killed, its watchdog starts the SQL thread; if its whole host dies in that moment, START SLAVE SQL_THREAD does.

Rows of InnoDB are compared by SHA-256 of all their values: bytes, not as collations compare them. Columns and unique
keys are compared, too. Tables of other engines are named and not compared. What replication filters leave out is
named. With --state, an interrupted comparison continues where it was.

Privileges. On the replica: SELECT on *.*, REPLICATION CLIENT and REPLICATION_SLAVE_ADMIN (MySQL 5.7: SUPER instead;
MariaDB: REPLICA MONITOR and REPLICATION SLAVE ADMIN). On the source: SELECT on *.*, REPLICATION CLIENT (MariaDB: BINLOG MONITOR); on MySQL also RELOAD.

Exit code: 0 if everything is equal, 4 if something differs, 3 if something could not be compared.";

/// Compare a replica with its source, row by row, while both are in use.
#[derive(Args, Debug)]
#[command(after_help = CHECKSUM)]
pub struct ReplicaChecksum {
    /// What is compared.
    #[command(flatten)]
    pub comparison: Comparison,
    /// Name at most so many different rows of each table. All are counted.
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "What")]
    pub rows: usize,
    /// Keep here how far it is, and continue from there. The file is removed at the end.
    #[arg(long, value_name = "FILE", help_heading = "What")]
    pub state: Option<PathBuf>,
    /// A statement should take so long; pieces are sized accordingly.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = span, help_heading = "Load")]
    pub chunk_time: Duration,
    /// After this time, look at another place: servers keep all old rows for as long as somebody may look at them.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span, help_heading = "Load")]
    pub max_snapshot: Duration,
}

/// A replica that is compared with its source.
#[derive(Args, Debug)]
pub struct Comparison {
    /// The replica: HOST, HOST:PORT or a socket's path; with --fleet, a name from the list [default: the server that
    /// the connection options name].
    #[arg(value_name = "REPLICA")]
    pub replica: Option<String>,
    /// Its source, in the same way [default: the server that the replica fetches from, with the same account].
    #[arg(long, value_name = "SERVER")]
    pub source: Option<String>,
    /// The channel, if the replica has several sources.
    #[arg(long, value_name = "NAME")]
    pub channel: Option<String>,
    /// Compare only this database; repeat for more.
    #[arg(long, value_name = "DATABASE", help_heading = "What")]
    pub database: Vec<String>,
    /// Compare only this table; repeat for more.
    #[arg(long, value_name = "DATABASE.TABLE", help_heading = "What")]
    pub table: Vec<String>,
    /// Connections to each side that read.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Load",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: u8,
    /// Rest while a replica is farther behind.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span, help_heading = "Load")]
    pub max_lag: Duration,
    /// Another replica whose lag counts, too; repeat for more.
    #[arg(long, value_name = "SERVER", help_heading = "Load")]
    pub lag_of: Vec<String>,
    /// Rest while source or replica run more statements of others at once.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub max_load: Option<u64>,
    /// Wait at most this time for the SQL thread to stop, for the source's lock, and while the SQL thread stays at one
    /// transaction on its way to the source's place.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span, help_heading = "Load")]
    pub lock_deadline: Duration,
    /// The servers are in this list, with their own connection options: the file of `evenkeel fleet`.
    #[arg(long, value_name = "FLEET.toml", help_heading = "Connection")]
    pub fleet: Option<PathBuf>,
    /// How to reach them.
    #[command(flatten)]
    pub connection: Connection,
}
