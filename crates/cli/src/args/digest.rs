//! `digest`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel digest /var/log/mysql/slow.log                     The statements that cost the most
  evenkeel digest slow.log.2.gz slow.log.1.gz slow.log        Rotated logs, read as one
  evenkeel digest slow.log --since 2h --sort latency          The slowest of the last two hours
  evenkeel digest slow.log --database shop --match 'orders'   Only those in shop that mention orders
  evenkeel digest slow.log --html digest.html                 A page with plots, to share
  evenkeel digest shop.pcap                                   What tcpdump captured
  evenkeel digest shop.capture                                What 'evenkeel capture --directory' wrote
  evenkeel digest monday.log --json > monday.json
  evenkeel digest tuesday.log --compare monday.json           What is new, gone, slower, faster

Statements that differ only in their values are one class. The command reads slow query logs and general query
logs of MySQL and MariaDB, captured packets (pcap, pcapng), plain or compressed with gzip or zstd, and captures
in Parquet: a directory or single files. A general log does not say how long statements took. Strings in statements that mention a password are never shown. Exit code 3: some entries
could not be read; the report says how many, and where.";

/// Show which statements cost the most, from a server's logs or captured packets.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Digest {
    /// The logs, captures, or directories of captures (also s3://BUCKET/FOLDER); - reads standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
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
    /// Also compare with an earlier digest: a file with the --json output of this command.
    #[arg(long, value_name = "BEFORE.json")]
    pub compare: Option<PathBuf>,
    /// Only statements from this time on: `2026-11-28 10:00`, or `2h` for two hours ago.
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
