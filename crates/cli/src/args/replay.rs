//! `replay`.

use super::{Connection, DigestSource};
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel replay shop.pcap --read-only -h test-db            Only what reads, as fast as it was
  evenkeel replay shop.pcap --allow-writes -h test-db --speed max
  evenkeel replay shop.capture --read-only -h test-db          What 'evenkeel capture --directory' wrote
  evenkeel replay slow.log --read-only -h test-db --warm-up 5m --html replay.html
  evenkeel replay shop.pcap --read-only -h masked-db --ignore-results    The data are not those of the capture
  evenkeel replay shop.pcap --allow-writes -h old --json > old.json
  evenkeel replay shop.pcap --allow-writes -h new --compare old.json    Is the new version slower?
  evenkeel replay shop.pcap --allow-writes --rounds 8 --baseline before --set innodb_flush_log_at_trx_commit=2 --execute
  evenkeel replay shop.pcap --allow-writes --rounds 8 --baseline before --against /run/mysqld/new.sock --execute

Each session of the capture is a session again. Its statements keep their order and, unless --speed says
otherwise, their times. A statement also waits for those of other sessions that it had seen the result of: they
were done before it was sent, and one of the two changed a table that both name. Prepared statements are
prepared again and run with their captured values; those of logs run as text. The report compares errors, rows
and latency with the capture, class by class.

For a fair comparison, restore the server's data to the state it had when the capture began, before each
replay: `evenkeel baseline` does that in a second. Never replay writes on a server whose data you need.

With --rounds, that is part of the command: before each replay, the server's data directory is rolled back to
a baseline, and the server is restarted. --against or --set name a variant B; A and B take turns. The report
says which classes differ between A and B by more than chance, and whose results differ. Without --execute,
the command shows what it would roll back.

Exit code 3: some statements could not be replayed; the report says why. Exit code 4: some had another outcome
than in the capture. If sessions were lost, it is 3, whatever else differs.";

/// Replay captured statements on another server, and compare the outcome.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES,
          group = ArgGroup::new("what").required(true).args(["read_only", "allow_writes"]))]
pub struct Replay {
    /// The capture (pcap, pcapng, a directory of captures, also s3://BUCKET/FOLDER) or log; - reads standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replay only what reads; the server refuses everything else.
    #[arg(long)]
    pub read_only: bool,
    /// Replay what writes, too. The server's data will change.
    #[arg(long)]
    pub allow_writes: bool,
    /// How fast: a factor, or `max` to send each statement as soon as the one before it is done.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    pub speed: Speed,
    /// Which order to keep: that of commits across sessions, or only that within each session.
    #[arg(long, value_name = "ORDER", default_value = "commits")]
    pub order: ReplayOrder,
    /// Replay the beginning of the capture, up to this time, without counting it.
    #[arg(long, value_name = "TIME", value_parser = super::span)]
    pub warm_up: Option<Duration>,
    /// Use another name for a default database; may be repeated.
    #[arg(long, value_name = "OLD=NEW")]
    pub map_database: Vec<String>,
    /// Use this default database in sessions of which the capture knows none: they were open before it began.
    #[arg(long, value_name = "NAME")]
    pub default_database: Option<String>,
    /// Do not compare what the returned rows contain, only how many there are.
    #[arg(long)]
    pub ignore_results: bool,
    /// Stop when a session is lost, instead of replaying the others.
    #[arg(long)]
    pub stop_on_loss: bool,
    /// Also compare with an earlier replay: a file with the --json output of this command.
    #[arg(long, value_name = "BEFORE.json")]
    pub compare: Option<PathBuf>,
    /// How many classes the report shows; the JSON document has all classes that are kept.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub top: u16,
    /// Also write the report as an HTML page with plots.
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,
    /// The kind of file [default: detected from the contents].
    #[arg(long, value_name = "KIND", help_heading = "The capture")]
    pub source: Option<DigestSource>,
    /// A file with the identity that an encrypted capture opens with; repeat for several.
    #[arg(long, value_name = "FILE", help_heading = "The capture")]
    pub identity: Vec<PathBuf>,
    /// The port that the captured server listened on; repeat for several.
    #[arg(long, value_name = "PORT", default_value = "3306", help_heading = "The capture",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub captured_port: Vec<u16>,
    /// The captured server's sql_mode: ANSI_QUOTES and NO_BACKSLASH_ESCAPES change what counts as a string.
    #[arg(
        long,
        value_name = "MODES",
        default_value = "",
        help_heading = "The capture"
    )]
    pub sql_mode: String,
    /// Where to keep the statements during the run [default: $TMPDIR or /tmp].
    #[arg(long, value_name = "DIR", help_heading = "The capture")]
    pub tmpdir: Option<PathBuf>,
    /// Only statements from this time on: `2026-11-28 10:00`, or `2h` for two hours ago.
    #[arg(long, value_name = "TIME", help_heading = "Which statements")]
    pub since: Option<String>,
    /// Only statements before this time.
    #[arg(long, value_name = "TIME", help_heading = "Which statements")]
    pub until: Option<String>,
    /// Only statements of this account; may be repeated.
    #[arg(long, value_name = "NAME", help_heading = "Which statements")]
    pub only_user: Vec<String>,
    /// Only statements with this default database; may be repeated.
    #[arg(long, value_name = "NAME", help_heading = "Which statements")]
    pub only_database: Vec<String>,
    /// Only statements from this host; may be repeated.
    #[arg(long, value_name = "NAME", help_heading = "Which statements")]
    pub only_host: Vec<String>,
    /// Again and again, and with what.
    #[command(flatten)]
    pub rounds: ReplayRounds,
    /// The server to replay on.
    #[command(flatten)]
    pub connection: Connection,
}

/// How often, and with which variants.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Rounds")]
pub struct ReplayRounds {
    /// Replay so many times, and report medians.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=30), conflicts_with = "compare")]
    pub rounds: Option<u16>,
    /// Roll the server's data directory back to this baseline before each replay. The server is restarted.
    #[arg(long, value_name = "NAME", requires = "rounds")]
    pub baseline: Option<String>,
    /// Variant B is this server: a host, HOST:PORT, or the path of a Unix socket; the account is the same.
    #[arg(long, value_name = "SERVER", requires = "rounds")]
    pub against: Option<String>,
    /// Variant B has this global variable; may be repeated.
    #[arg(long, value_name = "VARIABLE=VALUE", requires = "baseline")]
    pub set: Vec<String>,
    /// Carry out the plan; without this, it is only shown which data directories would be rolled back.
    #[arg(long, requires = "baseline")]
    pub execute: bool,
    /// Stop the server with this command, run by `sh -c`.
    #[arg(long, value_name = "COMMAND", requires_all = ["start_with", "baseline"])]
    pub stop_with: Option<String>,
    /// Start the server with this command, run by `sh -c`.
    #[arg(long, value_name = "COMMAND", requires = "stop_with")]
    pub start_with: Option<String>,
    /// Stop the server of --against with this command.
    #[arg(long, value_name = "COMMAND", requires_all = ["against_start_with", "baseline", "against"])]
    pub against_stop_with: Option<String>,
    /// Start the server of --against with this command.
    #[arg(long, value_name = "COMMAND", requires = "against_stop_with")]
    pub against_start_with: Option<String>,
    /// How long a server may take to stop.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::span)]
    pub stop_deadline: Duration,
    /// How long a server may take to answer again, including crash recovery.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::span)]
    pub start_deadline: Duration,
}

/// Which order to keep.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayOrder {
    /// A statement waits for those of other sessions whose changes it had seen.
    Commits,
    /// Sessions do not wait for each other. Results may differ from the capture.
    Sessions,
}

/// How fast to replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// So many times as fast.
    Times(f64),
    /// As fast as the server answers.
    Max,
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times: Option<f64> = text.parse().ok();
    times
        .filter(|times| (0.001..=1000.0).contains(times))
        .map(Speed::Times)
        .ok_or_else(|| "give a factor from 0.001 to 1000, or max".to_owned())
}
