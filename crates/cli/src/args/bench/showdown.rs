//! `bench showdown`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const SHOWDOWN: &str = "\
Examples:
  evenkeel bench showdown --quick                             A first look, in a few minutes
  evenkeel bench showdown --work /srv/t --filesystem xfs --report showdown.html
  evenkeel bench showdown -w 4 -c 8 -r 5 -l 60 --every 20 --repeat 4      An hour or so
  evenkeel bench showdown --only mariadb-dump --only evenkeel-reflink --repeat 5
  evenkeel bench showdown --method 'mine=./backup.sh {socket} {output}' --restore 'mine=./restore.sh {output} {target}'

Loads TPC-C into a private server once. Each round begins with that, runs the transactions, and runs one
method in a loop meanwhile; the last backup is restored, and proved to start. The order is random. In
commands stand {socket}, {datadir}, {output}, {database}, {threads}, {evenkeel} and, for a restore, {target}
or the {socket} of an empty server. What cannot be measured here is left out, and told.

Exit codes: 3 a method failed, the others were measured; 4 what was restored broke a condition of the tables.";

/// Compare ways to back up: what each costs a server under load, and how fast it is restored.
#[derive(Args, Debug)]
#[command(after_help = SHOWDOWN)]
pub struct BenchShowdown {
    /// The server's program, or the installed one: `mariadb` or `mysql` [default: the installed one].
    #[arg(long, value_name = "PATH|mariadb|mysql")]
    pub server: Option<PathBuf>,
    /// One warehouse, 4 connections, ramp-up 3 s, measure 10 s, one round each, but for what is said: a
    /// look at whether all works, and no measurement.
    #[arg(long)]
    pub quick: bool,

    /// Measure this method, beside none at all; may be given several times [default: all that are known].
    #[arg(long, value_name = "NAME", help_heading = "Methods")]
    pub only: Vec<String>,
    /// Measure this command too; may be given several times.
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Methods", value_parser = named)]
    pub method: Vec<(String, String)>,
    /// How that is restored: a command with {target}, an empty directory, or with the {socket} of a server
    /// to load into.
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Methods", value_parser = named)]
    pub restore: Vec<(String, String)>,
    /// Restore nothing, and so prove nothing.
    #[arg(long, help_heading = "Methods")]
    pub no_restore: bool,
    /// How many threads methods use that can have several.
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Methods",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// How many warehouses, of about 90 MB each [default: 10].
    #[arg(long, short = 'w', value_name = "N", help_heading = "Load",
          value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub warehouses: Option<u16>,
    /// A hundredth of the items and customers: for a look at whether all works, never to measure.
    #[arg(long, help_heading = "Load")]
    pub tiny: bool,
    /// How many connections [default: 16].
    #[arg(long, short = 'c', value_name = "N", help_heading = "Load",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: Option<u16>,
    /// How long before anything counts; seconds without a unit [default: 60].
    #[arg(long, short = 'r', value_name = "TIME", help_heading = "Load", value_parser = super::seconds)]
    pub ramp_up: Option<Duration>,
    /// How long is measured [default: 300].
    #[arg(long, short = 'l', value_name = "TIME", help_heading = "Load", value_parser = super::seconds)]
    pub measure: Option<Duration>,
    /// Begin a backup this long after the last one began, at the earliest: what takes no time at all would
    /// else run all the time [default: as soon as the last one has ended].
    #[arg(long, value_name = "TIME", default_value = "0", hide_default_value = true, value_parser = super::seconds,
          help_heading = "Load")]
    pub every: Duration,
    /// Rounds of each method; with fewer than four no winner can be told from chance [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Load")]
    pub repeat: Option<u16>,
    /// Take the order and the transactions of an earlier run [default: random].
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub seed: Option<u64>,

    /// The servers' buffer pool [default: 1G].
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size, help_heading = "Server")]
    pub buffer_pool: Option<u64>,
    /// The servers' innodb_flush_log_at_trx_commit.
    #[arg(long, value_name = "0|1|2", default_value_t = 1, help_heading = "Server",
          value_parser = clap::value_parser!(u8).range(0..=2))]
    pub flush_log: u8,
    /// Run without a binary log.
    #[arg(long, help_heading = "Server")]
    pub no_binlog: bool,
    /// Give the servers this option too: `--server-option=--innodb-log-file-size=1G`; may be given several
    /// times.
    #[arg(
        long,
        value_name = "OPTION",
        allow_hyphen_values = true,
        help_heading = "Server"
    )]
    pub server_option: Vec<String>,
    /// Put the data directories on this filesystem, made for it in a file below --work; only for root.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "here",
        help_heading = "Server"
    )]
    pub filesystem: FilesystemKind,
    /// How large that is made; the file takes only what is written [default: enough for the tables].
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size, help_heading = "Server")]
    pub filesystem_size: Option<u64>,
    /// Work in this directory, and keep the tables there for the next run [default: a new one below the
    /// temporary directory, removed at the end].
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub work: Option<PathBuf>,

    /// Write all of it into this file, as one HTML page.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Draw the throughput that each method left into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// What the data directories lie on.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesystemKind {
    /// Whatever there is.
    Here,
    /// XFS with reflinks.
    Xfs,
    /// btrfs.
    Btrfs,
    /// ext4.
    Ext4,
}

/// Parses a name and a command.
fn named(text: &str) -> Result<(String, String), String> {
    let (name, command) = text.split_once('=').ok_or("not NAME=COMMAND")?;
    match name.is_empty() || command.trim().is_empty() {
        true => Err("not NAME=COMMAND".to_owned()),
        false => Ok((name.to_owned(), command.to_owned())),
    }
}
