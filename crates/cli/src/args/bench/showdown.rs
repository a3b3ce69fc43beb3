//! `bench showdown`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const SHOWDOWN: &str = "\
Examples:
  evenkeel bench showdown --quick                             A first look, in a few minutes
  evenkeel bench showdown --work /srv/t --filesystem xfs --report showdown.html
  evenkeel bench showdown -w 4 -c 8 -r 5 -l 60 --every 20 --repeat 4      About an hour
  evenkeel bench showdown --only mariadb-dump --only evenkeel-reflink --repeat 5
  evenkeel bench showdown --method 'mine=./backup.sh {socket} {output}' --restore 'mine=./restore.sh {output} {target}'

The benchmark loads TPC-C into a private server once. Each round starts from that state. It runs the
transactions, and meanwhile runs one method in a loop. Then it restores the last backup and starts a server on
it. The order of rounds is random. Commands can use {socket}, {datadir}, {output}, {database}, {threads} and
{evenkeel}. A restore can use {target}, or the {socket} of an empty server. Methods that cannot be measured
here are listed as left out.

Exit codes: 3 a method failed, but the others were measured; 4 a restored database violates a TPC-C
condition.";

/// Compare backup methods: what each costs a server under load, and how fast it restores.
#[derive(Args, Debug)]
#[command(after_help = SHOWDOWN)]
pub struct BenchShowdown {
    /// The path of the server program, or `mariadb` or `mysql` for the installed one [default: the installed
    /// one].
    #[arg(long, value_name = "PATH|mariadb|mysql")]
    pub server: Option<PathBuf>,
    /// Try it out with one warehouse, 4 connections, 3 s of ramp-up, 10 s of measuring and one round of each
    /// method, unless set otherwise. This is not a measurement.
    #[arg(long)]
    pub quick: bool,

    /// Measure only this method and the undisturbed server; repeat for several methods [default: all known
    /// methods].
    #[arg(long, value_name = "NAME", help_heading = "Methods")]
    pub only: Vec<String>,
    /// Also measure this backup command, under this name; repeat for several.
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Methods", value_parser = named)]
    pub method: Vec<(String, String)>,
    /// The command that restores the backup of that method. It uses {target} (an empty directory), or the
    /// {socket} of a server to load into.
    #[arg(long, value_name = "NAME=COMMAND", help_heading = "Methods", value_parser = named)]
    pub restore: Vec<(String, String)>,
    /// Do not restore; then nothing proves that the backups restore.
    #[arg(long, help_heading = "Methods")]
    pub no_restore: bool,
    /// How many threads to use for methods that support several.
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Methods",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// How many warehouses, of about 90 MB each [default: 10].
    #[arg(long, short = 'w', value_name = "N", help_heading = "Load",
          value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub warehouses: Option<u16>,
    /// Load only a hundredth of the items and customers, to try it out; not for measurements.
    #[arg(long, help_heading = "Load")]
    pub tiny: bool,
    /// How many connections [default: 16].
    #[arg(long, short = 'c', value_name = "N", help_heading = "Load",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: Option<u16>,
    /// The ramp-up time, which is not measured; a number without a unit is in seconds [default: 60].
    #[arg(long, short = 'r', value_name = "TIME", help_heading = "Load", value_parser = super::values::seconds)]
    pub ramp_up: Option<Duration>,
    /// How long to measure [default: 300].
    #[arg(long, short = 'l', value_name = "TIME", help_heading = "Load", value_parser = super::values::seconds)]
    pub measure: Option<Duration>,
    /// Start backups at least this far apart, so that a fast method does not run all the time [default: start
    /// each when the previous one has ended].
    #[arg(long, value_name = "TIME", default_value = "0", hide_default_value = true, value_parser = super::values::seconds,
          help_heading = "Load")]
    pub every: Duration,
    /// How many rounds of each method; fewer than four cannot tell a winner from chance [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Load")]
    pub repeat: Option<u16>,
    /// Repeat the order and the transactions of an earlier run [default: random].
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
    /// Also start the servers with this option: `--server-option=--innodb-log-file-size=1G`; repeat for
    /// several.
    #[arg(
        long,
        value_name = "OPTION",
        allow_hyphen_values = true,
        help_heading = "Server"
    )]
    pub server_option: Vec<String>,
    /// Put the data directories on this filesystem, which is created in a file in the --work directory (needs
    /// root).
    #[arg(
        long,
        value_name = "KIND",
        default_value = "here",
        help_heading = "Server"
    )]
    pub filesystem: FilesystemKind,
    /// The size of that filesystem; the file is sparse [default: enough for the tables].
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size, help_heading = "Server")]
    pub filesystem_size: Option<u64>,
    /// Work in this directory, and keep the tables there for the next run [default: a new directory in the
    /// temporary directory, removed at the end].
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub work: Option<PathBuf>,

    /// Write a report to this file: one HTML page.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Plot the throughput under each method to this SVG file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// The filesystem of the data directories.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesystemKind {
    /// The existing filesystem.
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
