//! `qps` and `top`.

use super::Connection;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const QPS: &str = "\
Examples:
  evenkeel qps                                        This host's server, each second, until Ctrl-C
  evenkeel qps db1 db2:3307 --interval 5s -u monitor -p
  evenkeel qps --fleet /etc/evenkeel/fleet.toml       Every server in the list, and their total
  evenkeel qps --fleet fleet.toml shop blog --count 10
  evenkeel qps --json --count 1 | jq .total.queries_per_s

Rates are queries per second of clients, from the server's own counters, over the time between two of its
answers; the first line comes after one interval. What evenkeel itself asks is not counted. Instead of a rate,
a column may have: starting (not reached yet), first (nothing to compare with yet), slow (no answer in time),
down, refused (wrong password or missing privilege), failed, restart (the server was restarted). The reason is
on standard error. The total is the sum of the servers that have a rate. Columns after it are sums, too; commit
counts COMMIT statements. Where all columns do not fit on the terminal, each server has its own line.

Exit code: if a server has never answered, 3; if none has, 13 or 14, or what else was the reason. Otherwise 0
after --count, and 130 after Ctrl-C.";

/// Show queries per second of many servers, and their total.
#[derive(Args, Debug)]
#[command(after_help = QPS)]
pub struct Qps {
    /// Which servers, and when.
    #[command(flatten)]
    pub watched: Watched,
}

const TOP: &str = "\
Examples:
  evenkeel top                                        This host's server
  evenkeel top db1 db2:3307 -u monitor -p
  evenkeel top --fleet /etc/evenkeel/fleet.toml --interval 2s
  evenkeel top --once db1 db2                         One interval as plain text, for a mail
  evenkeel top --json --count 1 | jq '.servers[] | {server, lag: .sources[].lag_s}'

Keys: q quits, s sorts by the next column (name, queries, running threads, lag), arrows or 1 to 9 select a
server, Enter shows it in detail and back. Below the table are the classes of statements that took the most
time on the selected server, from performance_schema. Where that is off, as it is by default on MariaDB, use
'evenkeel capture'. Without a terminal, with --once or with --count, each interval is plain text.

The columns: queries, reads (SELECT), writes, commits and errors per second; connections, and running threads
(one is evenkeel's); hit%, pages that were in the buffer pool; disk/s, InnoDB's reads; dirty%, of the buffer
pool; waits/s, for row locks; history, the undo records to be purged; lag of a replica. An unknown value is -.

Exit codes are those of 'evenkeel qps'; after q it is 0 if every server has answered.";

/// Show what many servers do right now, live on the terminal.
#[derive(Args, Debug)]
#[command(after_help = TOP)]
pub struct Top {
    /// Which servers, and when.
    #[command(flatten)]
    pub watched: Watched,
    /// Show one interval as plain text, and end: --count 1.
    #[arg(long, conflicts_with = "count", help_heading = "Watching")]
    pub once: bool,
}

/// Which servers are watched, and when.
#[derive(Args, Debug)]
pub struct Watched {
    /// Which servers.
    #[command(flatten)]
    pub which: Servers,
    /// The time between two questions to a server.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::span, help_heading = "Watching")]
    pub interval: Duration,
    /// End after this many intervals [default: at Ctrl-C].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Watching")]
    pub count: Option<u64>,
}

/// Which servers, and how to reach them.
#[derive(Args, Debug)]
pub struct Servers {
    /// HOST, HOST:PORT or a socket's path; with --fleet, names from the list. Without any: the server that the
    /// connection options name.
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
    /// The servers in this list, with their own connection options: the file of `evenkeel fleet`.
    #[arg(long, value_name = "FLEET.toml", help_heading = "Connection")]
    pub fleet: Option<PathBuf>,
    /// How to reach them.
    #[command(flatten)]
    pub connection: Connection,
}
