//! `replica`.

use super::{Servers, span};
use clap::{Args, Subcommand};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel replica status db1 db2 db3           Who replicates from whom, and how far behind
  evenkeel replica diagnose db1 db2 db3         What is wrong, what mends it, and what not to do";

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
    /// Name what is wrong with replicas, with the evidence, what mends it, and what not to do.
    Diagnose(ReplicaDiagnose),
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
    /// A table whose newest row says when it was written: at DATETIME(6), in UTC. 'health run --write-table' keeps one.
    #[arg(long, value_name = "DATABASE.TABLE", help_heading = "Servers")]
    pub heartbeat: Option<String>,
}

const DIAGNOSE: &str = "\
Examples:
  evenkeel replica diagnose db1 db2 db3
  evenkeel replica diagnose --fleet /etc/evenkeel/fleet.toml -u monitor -p
  evenkeel replica diagnose db3 --check-table shop.orders    Reads all of the table and its indexes
  evenkeel replica diagnose db1 db2 --json | jq '.findings[] | {server, failure, class, repair}'

Every server is asked twice, a second apart; what both answers say is found. Name the source and the other replicas
too: some failures (a position that is ahead, transactions of a replica's own, a server number that is used twice)
show only beside them. What could not be checked without them is named.

Class says who may mend it. automatic: it can do no harm. planned: a person looks at the plan first. never: only a
person can know what is right. wait: it mends itself.

Nothing is changed by this command.

Exit code: 0 if nothing is wrong, 4 if something is, 3 if nothing was found but a server did not answer or something
could not be checked, 13 or 14 if no server answered.";

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
