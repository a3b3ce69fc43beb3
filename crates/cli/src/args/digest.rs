//! `digest`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel digest /var/log/mysql/slow.log                     The statements that cost the most
  evenkeel digest slow.log.2.gz slow.log.1.gz slow.log        Rotated logs, read as one
  evenkeel digest slow.log --since 2h --sort latency          The slowest of the last two hours
  evenkeel digest slow.log --database shop --match 'orders'   Only those in shop that mention orders
  evenkeel digest slow.log --html digest.html                 A page with plots, to share
  evenkeel digest shop.pcap                                   What tcpdump captured
  evenkeel digest shop.capture                                What 'evenkeel capture --directory' wrote
  evenkeel digest --server db1 --for 10m                      What db1 runs, by its performance_schema
  evenkeel digest monday.log --json > monday.json
  evenkeel digest tuesday.log --compare monday.json           What is new, gone, slower, faster
  evenkeel digest slow.log --history shop.db --since yesterday --until today --keep 90d
  evenkeel digest --history shop.db --periods                 Which periods the history has
  evenkeel digest --history shop.db --compare yesterday today
  evenkeel digest --history shop.db --forget 7 --execute      A period that was added by mistake
  evenkeel digest slow.log --explain db2 --top 5              And how db2 would run them

Statements that differ only in their values are one class. The command reads slow query logs and general query
logs of MySQL and MariaDB, captured packets (pcap, pcapng), plain or compressed with gzip or zstd, and captures
in Parquet: a directory or single files. A general log does not say how long statements took. Strings in statements that mention a password are never shown. Exit code 3: some entries
could not be read; the report says how many, and where.";

/// Show which statements cost the most, from a server's logs or captured packets.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Digest {
    /// The logs, captures, or directories of captures (also s3://BUCKET/FOLDER); - reads standard input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Instead of logs, read what this server's performance_schema remembers, as it runs: a host, HOST:PORT, or the
    /// path of a Unix socket.
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["files", "periods", "period", "source", "port"], help_heading = "Server")]
    pub server: Option<String>,
    /// How long to read it.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", requires = "server", value_parser = super::span, help_heading = "Server")]
    pub span: Duration,
    /// How often to ask it: what it forgets in between is missed, and counted.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "server", value_parser = super::span, help_heading = "Server")]
    pub interval: Duration,
    /// The kind of file [default: detected from the contents].
    #[arg(long, value_name = "KIND")]
    pub source: Option<DigestSource>,
    /// The port that the server listens on, for captured packets; repeat for several.
    #[arg(long, value_name = "PORT", default_value = "3306",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// A file with the identity that encrypted captures open with; repeat for several.
    #[arg(long, value_name = "FILE")]
    pub identity: Vec<PathBuf>,
    /// How many classes the report shows; the JSON document has all classes that are kept.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub top: u16,
    /// Which classes come first.
    #[arg(long, value_name = "BY", default_value = "time")]
    pub sort: DigestSort,
    /// Also write the report as an HTML page with plots.
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,
    /// Also compare with an earlier digest: a file with the --json output of this command, or a period of the
    /// history. With two periods and no logs, compare these.
    #[arg(long, value_name = "BEFORE", num_args = 1..=2)]
    pub compare: Vec<PathBuf>,
    /// Only statements from this time on: `2026-11-28 10:00`, `2h` for two hours ago, `yesterday`, `today`.
    #[arg(long, value_name = "TIME", help_heading = "Which statements")]
    pub since: Option<String>,
    /// Only statements before this time.
    #[arg(long, value_name = "TIME", help_heading = "Which statements")]
    pub until: Option<String>,
    /// Only statements of this account; may be repeated.
    #[arg(long = "user", value_name = "NAME", help_heading = "Which statements")]
    pub users: Vec<String>,
    /// Only statements with this default database; may be repeated.
    #[arg(
        long = "database",
        value_name = "NAME",
        help_heading = "Which statements"
    )]
    pub databases: Vec<String>,
    /// Only statements from this host; may be repeated.
    #[arg(long = "host", value_name = "NAME", help_heading = "Which statements")]
    pub hosts: Vec<String>,
    /// Only statements whose text matches this regular expression.
    #[arg(
        long = "match",
        value_name = "REGEX",
        help_heading = "Which statements"
    )]
    pub matching: Option<String>,
    /// Let this server EXPLAIN the sample of each class that the report shows: a host, HOST:PORT, or the path of a
    /// Unix socket. Only queries that read; to plan them, a server may run their subqueries and stored functions.
    #[arg(long, value_name = "SERVER", help_heading = "Server")]
    pub explain: Option<String>,
    /// How long one EXPLAIN may take.
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "explain", value_parser = super::span, help_heading = "Server")]
    pub explain_timeout: Duration,
    /// Read how to connect to the server of --server, --explain or --history from this option file only.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub defaults_file: Option<PathBuf>,
    /// Where it is kept.
    #[command(flatten)]
    pub kept: DigestHistory,
    /// How many classes are kept; statements of all other classes are counted together.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Classes")]
    pub classes: u32,
    /// The rules that assign statements to classes.
    #[arg(
        long,
        value_name = "RULES",
        default_value = "evenkeel",
        help_heading = "Classes"
    )]
    pub fingerprint: DigestRules,
    /// The server's sql_mode: ANSI_QUOTES and NO_BACKSLASH_ESCAPES change what counts as a string.
    #[arg(
        long,
        value_name = "MODES",
        default_value = "",
        help_heading = "Classes"
    )]
    pub sql_mode: String,
}

/// Where digests are kept.
#[derive(Args, Debug)]
#[command(next_help_heading = "History")]
pub struct DigestHistory {
    /// Keep the digest as a period of this history: an SQLite file, which is made if it does not exist, or
    /// mysql://[USER@]HOST[:PORT][/SCHEMA]. Without logs, read periods from it.
    #[arg(long, value_name = "PLACE")]
    pub history: Option<PathBuf>,
    /// The name under which periods follow each other [default: the path of the log, without .1, .gz and the like].
    #[arg(long, value_name = "NAME", requires = "history")]
    pub history_name: Option<String>,
    /// Remove periods from the history that ended longer ago: `90d`.
    #[arg(long, value_name = "TIME", requires = "history", value_parser = super::age)]
    pub keep: Option<Duration>,
    /// Show what removing this period from the history would remove, named as for --period; --execute removes it.
    #[arg(long, value_name = "PERIOD", requires = "history", conflicts_with_all = ["files", "server", "periods", "period", "compare", "keep", "html", "explain"])]
    pub forget: Option<String>,
    /// With --forget: do it.
    #[arg(long, requires = "forget")]
    pub execute: bool,
    /// Compare with the history, but add nothing to it.
    #[arg(long, requires_all = ["history", "compare"], conflicts_with_all = ["keep", "period", "periods"])]
    pub no_add: bool,
    /// List the periods of the history.
    #[arg(long, requires = "history", conflicts_with_all = ["files", "period", "compare"])]
    pub periods: bool,
    /// Show this period of the history: its number, `today`, `yesterday`, `2026-11-24` or
    /// `2026-11-24T10:00/2h`.
    #[arg(
        long,
        value_name = "PERIOD",
        requires = "history",
        conflicts_with = "files"
    )]
    pub period: Option<String>,
}

/// The kind of file.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestSource {
    /// The slow query log.
    SlowLog,
    /// The general query log.
    GeneralLog,
    /// Captured packets: pcap or pcapng.
    Packets,
}

/// Which classes come first.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestSort {
    /// Those that took the most time in total.
    Time,
    /// Those that ran most often.
    Count,
    /// Those with the highest latency, by the 95th percentile.
    Latency,
    /// Those that failed most often.
    Errors,
}

/// The rules that assign statements to classes.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestRules {
    /// evenkeel's own: names with different digits stay separate.
    Evenkeel,
    /// Those of pt-query-digest, with the same identifiers.
    Pt,
}
