//! `replica heal`.

use super::{AskedServers, span};
use clap::Args;
use evenkeel_replica::heal::HealClass;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel replica heal db1 db2 db3   What would be done, and what forbids it
  evenkeel replica heal db1 db2 db3 --allow restart,relay-reset --execute \\
      --journal /var/lib/evenkeel/heal
  evenkeel replica heal --fleet FLEET.toml --allow restart --execute \\
      --journal /var/lib/evenkeel/heal --every 30s --hook /usr/local/bin/page
  evenkeel replica heal --history --journal /var/lib/evenkeel/heal

Name the source and all its replicas. They are diagnosed as by 'replica
diagnose'. Without --execute, each failure is shown with its repair and with
every rule that forbids it. With --execute, what no rule forbids is repaired:
one replica at a time, and all servers are looked at again before the next.
Afterwards the replica is compared with its source, row by row.

Classes for --allow:
  restart      start a thread that gave up: after a lock wait, after a source
               that was away or refused the login, after gaps of workers
  relay-reset  delete a damaged relay log, and fetch it again from where the
               SQL thread is
  row-repair   make rows that differ the source's, as 'replica repair' does
  resync       only names the command: it runs on the replica's own host

Nothing is done while the source does not answer, on a delayed replica, where
clients can write on a replica (read_only is off), while something could not
be checked, when most replicas of a source have the same failure, to the last
healthy replica, or a second time within an hour (--max-repairs). A thread
that was stopped without an error stays stopped. Nothing is ever skipped or
written on a source, and no replica is promoted: --hook passes on what is not
healed. A second healer is refused by a lock on the source (GET_LOCK), which
ends with its session.

If it is killed, a watchdog starts the threads that were stopped, and the same
command does the rest.

Privileges: those of 'replica diagnose' and 'replica checksum'; on replicas
also RELOAD (MySQL), and for row-repair those of 'replica repair'.

Exit code: 0 if nothing is wrong, or all of it was repaired and its rows are
equal; 3 if some of it was, or something could not be checked or compared; 4 if
something is wrong and nothing was repaired; 11 if another healer is at work.
With --every, 130 or 143 when it is stopped.";

/// Repair replicas by itself, as far as it is allowed: first as a plan.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReplicaHeal {
    /// Which servers.
    #[command(flatten)]
    pub asked: AskedServers,
    /// Allow repairs of this class; repeat for more, or separate them by commas.
    #[arg(
        long,
        value_name = "CLASS",
        value_delimiter = ',',
        help_heading = "Repairs"
    )]
    pub allow: Vec<HealClass>,
    /// Do it.
    #[arg(long, help_heading = "Repairs")]
    pub execute: bool,
    /// Look again and again, this time apart, until it is stopped.
    #[arg(long, value_name = "TIME", value_parser = span, requires = "execute", help_heading = "Repairs")]
    pub every: Option<Duration>,
    /// Do not repair a replica more often within an hour.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Repairs",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_repairs: u32,
    /// Do not repair more rows one by one.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Repairs",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_rows: u32,
    /// Compare every replica with nothing wrong with its source: reads all rows.
    #[arg(long, conflicts_with = "every", help_heading = "Repairs")]
    pub find_drift: bool,
    /// Do not compare a repaired replica with its source.
    #[arg(long, help_heading = "Repairs")]
    pub no_compare: bool,
    /// A repaired replica may take this time until nothing is wrong with it.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span, help_heading = "Repairs")]
    pub settle: Duration,
    /// This program is at work here and repairs no replicas: orchestrator, replication-manager, maxscale or vitess;
    /// repeat for more.
    #[arg(long, value_name = "PROGRAM", help_heading = "Repairs")]
    pub beside: Vec<String>,
    /// Keep the journal in this directory [default: `heal` in $STATE_DIRECTORY].
    #[arg(long, value_name = "DIR", help_heading = "Journal")]
    pub journal: Option<PathBuf>,
    /// Show what was seen and done.
    #[arg(long, conflicts_with_all = ["execute", "allow", "every", "hook", "drain", "find_drift"],
          help_heading = "Journal")]
    pub history: bool,
    /// Drain a replica before it is repaired: the socket of `health run` that checks it under the same name.
    #[arg(
        long,
        value_name = "FILE",
        requires = "execute",
        help_heading = "Others"
    )]
    pub drain: Option<PathBuf>,
    /// Wait this time for its clients.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span, requires = "drain",
          help_heading = "Others")]
    pub drain_wait: Duration,
    /// Run this program for each failure that is not healed.
    #[arg(
        long,
        value_name = "PROGRAM",
        requires = "execute",
        help_heading = "Others"
    )]
    pub hook: Option<PathBuf>,
    /// Run it as this user: a name or UID:GID [default: nobody, if root runs this].
    #[arg(long, value_name = "USER", requires = "hook", help_heading = "Others")]
    pub hook_user: Option<String>,
    /// Kill its process group after this time.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span, requires = "hook",
          help_heading = "Others")]
    pub hook_timeout: Duration,
}
