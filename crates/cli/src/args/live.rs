//! `qps` and what it shares with other views of running servers.

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

/// Which servers are watched, and when.
#[derive(Args, Debug)]
pub struct Watched {
    /// HOST, HOST:PORT or a socket's path; with --fleet, names from the list. Without any: the server that the
    /// connection options name.
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
    /// The servers in this list, with their own connection options: the file of `evenkeel fleet`.
    #[arg(long, value_name = "FLEET.toml", help_heading = "Watching")]
    pub fleet: Option<PathBuf>,
    /// The time between two questions to a server.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::span, help_heading = "Watching")]
    pub interval: Duration,
    /// End after this many intervals [default: at Ctrl-C].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Watching")]
    pub count: Option<u64>,
    /// How to reach them.
    #[command(flatten)]
    pub connection: Connection,
}
