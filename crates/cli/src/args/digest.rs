//! `digest`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel digest /var/log/mysql/slow.log                     The statements that cost the most
  evenkeel digest slow.log.2.gz slow.log.1.gz slow.log        Rotated logs, as one
  evenkeel digest slow.log --since 2h --sort latency          Of the last two hours, the slowest
  evenkeel digest slow.log --database shop --match 'orders'   Only those in shop that name orders
  evenkeel digest slow.log --html digest.html                 A page with plots, to pass on
  evenkeel digest monday.log --json > monday.json
  evenkeel digest tuesday.log --compare monday.json           What is new, gone, slower, faster

Statements that differ in their values only are one class. Reads slow query logs and general query logs of
MySQL and MariaDB, plain or compressed with gzip or zstd; a general log says nothing of times. Strings in
statements that mention a password are never shown. Exit codes: 3 when entries could not be read: how many
and where is said.";

/// Show which statements cost the most, from a server's logs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Digest {
    /// The logs; - reads standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What the files are [default: seen from their contents].
    #[arg(long, value_name = "KIND")]
    pub source: Option<DigestSource>,
    /// How many classes the report shows; the JSON document has all that are kept.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub top: u16,
    /// Which classes come first.
    #[arg(long, value_name = "BY", default_value = "time")]
    pub sort: DigestSort,
    /// Also write the report as an HTML page with plots.
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,
    /// Also compare with an earlier digest: what this command printed with --json.
    #[arg(long, value_name = "BEFORE.json")]
    pub compare: Option<PathBuf>,
    /// Only statements from this time on: `2026-11-28 10:00`, or `2h` for so long ago.
    #[arg(long, value_name = "TIME", help_heading = "Which statements")]
    pub since: Option<String>,
    /// Only statements before this time.
    #[arg(long, value_name = "TIME", help_heading = "Which statements")]
    pub until: Option<String>,
    /// Only statements of this account; may be given several times.
    #[arg(long = "user", value_name = "NAME", help_heading = "Which statements")]
    pub users: Vec<String>,
    /// Only statements with this default database; may be given several times.
    #[arg(
        long = "database",
        value_name = "NAME",
        help_heading = "Which statements"
    )]
    pub databases: Vec<String>,
    /// Only statements from this host; may be given several times.
    #[arg(long = "host", value_name = "NAME", help_heading = "Which statements")]
    pub hosts: Vec<String>,
    /// Only statements whose text matches this regular expression.
    #[arg(
        long = "match",
        value_name = "REGEX",
        help_heading = "Which statements"
    )]
    pub matching: Option<String>,
    /// How many classes are kept; the statements of all others are counted together.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Classes")]
    pub classes: u32,
    /// By which rules statements are alike.
    #[arg(
        long,
        value_name = "RULES",
        default_value = "evenkeel",
        help_heading = "Classes"
    )]
    pub fingerprint: DigestRules,
    /// The server's sql_mode: ANSI_QUOTES and NO_BACKSLASH_ESCAPES decide what is a string.
    #[arg(
        long,
        value_name = "MODES",
        default_value = "",
        help_heading = "Classes"
    )]
    pub sql_mode: String,
}

/// What a file of statements is.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestSource {
    /// The slow query log.
    SlowLog,
    /// The general query log.
    GeneralLog,
}

/// Which classes come first.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestSort {
    /// Those that took the most time in all.
    Time,
    /// Those that ran most often.
    Count,
    /// Those of which one took longest, by the 95th percentile.
    Latency,
    /// Those that failed most often.
    Errors,
}

/// By which rules statements are alike.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestRules {
    /// A lexer's: names with digits stay apart.
    Evenkeel,
    /// Those of pt-query-digest, with the same identifiers.
    Pt,
}
