//! `health`.

use super::{Connection, Watched, size, span};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Where `health run` obeys, unless it is named.
const CONTROL: &str = "/run/evenkeel/health.sock";

const EXAMPLES: &str = "\
Examples:
  evenkeel health check --expect read-only --max-lag 30s       Once, for Nagios and scripts
  evenkeel health run --http 0.0.0.0:9200 --agent 0.0.0.0:9201
  evenkeel health drain --reason 'upgrade to 11.8'
  evenkeel health undrain";

/// Say whether clients may use a server: once, or to a load balancer, without flapping.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct Health {
    /// What to do.
    #[command(subcommand)]
    pub verb: HealthVerb,
}

/// What to do about health.
#[derive(Subcommand, Debug)]
pub enum HealthVerb {
    /// Check a server once; output and exit codes are those of Nagios plugins.
    Check(Box<HealthCheck>),
    /// Check servers again and again, and answer load balancers.
    Run(Box<HealthRun>),
    /// Take a server out of use, or only give it no new clients.
    Drain(HealthDrain),
    /// Put a server back into use: end a drain, a hold, and what only a person ends.
    Undrain(HealthUndrain),
    /// Show what `health run` says about its servers.
    Status(HealthStatus),
}

const CHECK: &str = "\
Examples:
  evenkeel health check
  evenkeel health check -h db1 --expect writable --table shop.orders
  evenkeel health check --expect read-only --max-lag 30s --warn-lag 5s --min-disk 10G
  evenkeel health check --query 'SELECT id FROM shop.orders LIMIT 1' --timeout 2s

Prints one line with performance data. Exit codes are those of Nagios plugins, and differ from all other
commands of evenkeel: 0 OK, 1 WARNING (--warn-lag), 2 CRITICAL (do not use this server), 3 UNKNOWN (a check
could not be made, for example because the account lacks a privilege, or the command line is wrong).

The first word of a problem says what it is: refused, hung (nothing is answered), stuck (one statement is not),
connections, login, role, replication, lag, disk, galera, unreadable, unwritable, query.";

/// Check a server once.
#[derive(Args, Debug)]
#[command(after_help = CHECK)]
pub struct HealthCheck {
    /// What is checked.
    #[command(flatten)]
    pub checks: HealthChecks,
    /// With --max-lag: from this lag on it is a warning.
    #[arg(long, value_name = "TIME", value_parser = span, requires = "max_lag", help_heading = "Checks")]
    pub warn_lag: Option<Duration>,
    /// How to reach it.
    #[command(flatten)]
    pub connection: Connection,
}

/// What is checked, besides that the server answers in time.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Checks")]
pub struct HealthChecks {
    /// Give up after this time: then the server is down.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub timeout: Duration,
    /// What the server should be to its clients.
    #[arg(long, value_name = "ROLE", default_value = "any")]
    pub expect: HealthRole,
    /// This statement must succeed. It runs as it is: it must not change data.
    #[arg(long, value_name = "SQL")]
    pub query: Option<String>,
    /// This table must be readable; repeat for more.
    #[arg(long, value_name = "DATABASE.TABLE")]
    pub table: Vec<String>,
    /// Where clients can write, writing a row into this table must work, in time; elsewhere, its newest row says how
    /// far behind the server is (--max-lag). Make it: id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6).
    #[arg(long, value_name = "DATABASE.TABLE")]
    pub write_table: Option<String>,
    /// Replication must run, from at least one source.
    #[arg(long)]
    pub replicating: bool,
    /// Replication must run, and be at most this far behind. A writable server may have no source.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub max_lag: Option<Duration>,
    /// So many connections must be free.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub min_connections: u64,
    /// So much space must be free below the data directory, which must be on this host.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub min_disk: Option<u64>,
    /// The data directory [default: ask the server, if it is reached over its Unix socket].
    #[arg(long, value_name = "DIR", requires = "min_disk")]
    pub datadir: Option<PathBuf>,
    /// The server must be a synced member of a Galera cluster's primary component.
    #[arg(long)]
    pub galera: bool,
}

/// What a server should be.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthRole {
    /// Either.
    Any,
    /// Clients can write.
    Writable,
    /// Clients cannot write: read_only is on.
    ReadOnly,
}

const RUN: &str = "\
Examples:
  evenkeel health run --http 0.0.0.0:9200 --expect writable
  evenkeel health run --http :9200 --agent :9201 --max-lag 30s --state-directory /var/lib/evenkeel/health
  evenkeel health run --fleet /etc/evenkeel/fleet.toml --http 127.0.0.1:9200 --interval 1s
  evenkeel health run --action /etc/evenkeel/moved --action-user haproxy
  evenkeel health run --block 3306 --block-exempt 10.0.7.0/24 --expect writable

Over HTTP, /any, /primary (writable) and /replica (read-only; ?max_lag=5s) answer 200: use it; 404: drained, no
new clients (HAProxy: http-check disable-on-404); 503: do not use it; 400: no such server or path. With several
servers, it is /SERVER/any; / lists all; /metrics is for Prometheus. Each answer comes from memory, and is 503 if
the last probe ended longer ago than two intervals. An agent check (HAProxy: agent-check, agent-send 'SERVER\\n')
is answered with 'up ready 100%', 'up drain', 'maint' or 'down #reason'.

The action is run without a shell and without arguments whenever the state changes, and after each start, for the
first state. It gets EVENKEEL_SERVER, EVENKEEL_STATE (up, down, draining, maintenance), EVENKEEL_BEFORE (the state
that it last ran for without a failure; empty after a start), EVENKEEL_CAUSE and EVENKEEL_REASON. If it fails, it
is run again. It is not run when this process itself was stopped or is short of something ('stalled').

--block has its own table, inet evenkeel_health_PORT. Who is connected stays. After a start it is as it was left
until the first verdict. At an orderly end it is removed if the server is up, and stays otherwise: to open the
port then, nft delete table inet evenkeel_health_PORT. If nft fails, that is said and tried again.

Exit code, after --count: 0 if every server is up, 4 if not, 1 if changes or the state could not be written. 130 or
143 after a signal.";

/// Check servers again and again, and answer load balancers.
#[derive(Args, Debug)]
#[command(after_help = RUN)]
pub struct HealthRun {
    /// Answer HTTP requests here: ADDRESS:PORT, or :PORT for every address.
    #[arg(long, value_name = "ADDRESS", help_heading = "Answers")]
    pub http: Option<String>,
    /// Answer HAProxy's agent checks here.
    #[arg(long, value_name = "ADDRESS", help_heading = "Answers")]
    pub agent: Option<String>,
    /// To agent checks, give less weight the more threads run; with so many, the least: 10 %.
    #[arg(long, value_name = "N", requires = "agent", help_heading = "Answers",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub full_load: Option<u64>,
    /// Run this program when a server's state changes.
    #[arg(long, value_name = "PROGRAM", help_heading = "Answers")]
    pub action: Option<PathBuf>,
    /// Run it as this user: a name or UID:GID [default: nobody, if root runs this].
    #[arg(
        long,
        value_name = "USER",
        requires = "action",
        help_heading = "Answers"
    )]
    pub action_user: Option<String>,
    /// Kill its process group after this time.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span, help_heading = "Answers")]
    pub action_timeout: Duration,
    /// While the server is not for use, refuse new TCP connections to this port of this host, with nftables. Only
    /// for a single server.
    #[arg(long, value_name = "PORT", help_heading = "Answers",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub block: Option<u16>,
    /// Never refuse this address or network; repeat for more. What comes over loopback is never refused.
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "block",
        help_heading = "Answers"
    )]
    pub block_exempt: Vec<String>,
    /// While it is down or in maintenance, end connections, too, with their next packet. The server does not hear of
    /// it: a transaction of theirs keeps its locks there until the server notices.
    #[arg(long, requires = "block", help_heading = "Answers")]
    pub block_sessions: bool,
    /// Obey `health drain`, `undrain` and `status` at this socket: /run/evenkeel/health.sock is where they look.
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub control: Option<PathBuf>,
    /// Keep drains and failures here, for the next start [default: systemd's StateDirectory].
    #[arg(long, value_name = "DIR", help_heading = "Answers")]
    pub state_directory: Option<PathBuf>,
    /// When servers turn up and down.
    #[command(flatten)]
    pub rules: HealthRules,
    /// What is checked.
    #[command(flatten)]
    pub checks: HealthChecks,
    /// Which servers, and when.
    #[command(flatten)]
    pub watched: Watched,
}

/// When a server turns up and down.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Rules")]
pub struct HealthRules {
    /// So many failures in a row turn a server down.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub fall: u32,
    /// So many successes in a row turn it up.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub rise: u32,
    /// Once down, it stays down for at least this long.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span)]
    pub min_down: Duration,
    /// From the second failure within the window on, it stays down for this long, and twice as long each time.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span)]
    pub hold: Duration,
    /// No hold is longer.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = span)]
    pub max_hold: Duration,
    /// After so many failures within the window, it stays down until `health undrain`; 0 for never.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub max_failures: u32,
    /// How long a failure is remembered.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    pub window: Duration,
}

const DRAIN: &str = "\
Examples:
  evenkeel health drain                                  The only server: no new clients
  evenkeel health drain db1 --reason 'upgrade to 11.8'
  evenkeel health drain db1 --maintenance                No clients at all

It is kept across restarts of 'health run' that has a --state-directory, until 'health undrain'. A maintenance is
stricter than a drain, and only 'health undrain' ends it.";

/// Take a server out of use, or only give it no new clients.
#[derive(Args, Debug)]
#[command(after_help = DRAIN)]
pub struct HealthDrain {
    /// Its name for `health run` [default: the only one].
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// Why: shown to everyone who asks.
    #[arg(long, value_name = "TEXT", default_value = "drained by hand")]
    pub reason: String,
    /// No clients at all, whatever checks say.
    #[arg(long)]
    pub maintenance: bool,
    /// The socket of `health run`.
    #[arg(long, value_name = "FILE", default_value = CONTROL)]
    pub control: PathBuf,
}

const UNDRAIN: &str = "\
Examples:
  evenkeel health undrain
  evenkeel health undrain db1

Failures of the past are forgotten, too. The server turns up with its next good checks.";

/// Put a server back into use.
#[derive(Args, Debug)]
#[command(after_help = UNDRAIN)]
pub struct HealthUndrain {
    /// Its name for `health run` [default: the only one].
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// The socket of `health run`.
    #[arg(long, value_name = "FILE", default_value = CONTROL)]
    pub control: PathBuf,
}

const STATUS: &str = "\
Examples:
  evenkeel health status
  evenkeel health status --json | jq '.servers[] | select(.state != \"up\")'

Exit code: 4 if a server is not up.";

/// Show what `health run` says about its servers.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub struct HealthStatus {
    /// The socket of `health run`.
    #[arg(long, value_name = "FILE", default_value = CONTROL)]
    pub control: PathBuf,
}
