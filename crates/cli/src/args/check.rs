//! `check`.

use super::{Connection, Keys};
use clap::Args;
use std::path::PathBuf;

const CHECK: &str = "\
Examples:
  evenkeel check                                    The running server on this host, by its socket
  evenkeel check --datadir /var/lib/mysql           A stopped server
  evenkeel check /mnt/snapshot                      Any directory with InnoDB files, or single files
  evenkeel check --repository /backup/shop          The newest generation, without restoring it
  evenkeel check --datadir /var/lib/mysql --heal-from /backup/shop              Show what can be healed
  evenkeel check --datadir /var/lib/mysql --heal-from /backup/shop --execute

Check reads every page. It checks the page's checksum and position, and compares its LSN with the end of the
redo log. Each finding names the table and index, and how to repair them. For a secondary index, the finding
includes the statement that rebuilds it. With --heal-from, a finding also names the newest generation with a
good copy. The copy is written back only if the damaged page itself proves that it had the same version. The
damaged page is kept. Exit code 4: something is damaged. Exit code 3: no damage was found, but not everything
could be read.";

/// Check the InnoDB pages of a server, of any files, or of a generation.
#[derive(Args, Debug)]
#[command(after_help = CHECK)]
pub struct Check {
    /// Check these files, or the InnoDB files in these directories, instead of a server's files. Symbolic
    /// links in the directories are not followed.
    #[arg(value_name = "PATH", conflicts_with_all = ["datadir", "repository"])]
    pub paths: Vec<PathBuf>,
    /// The data directory of a stopped server.
    #[arg(long, value_name = "DIR", conflicts_with = "repository")]
    pub datadir: Option<PathBuf>,
    /// Check a generation of this repository.
    #[arg(long, value_name = "REPOSITORY")]
    pub repository: Option<PathBuf>,
    /// The generation to check with --repository, or to take copies from with --heal-from [default: the
    /// newest; with --heal-from, any].
    #[arg(long, value_name = "N", value_parser = super::generation)]
    pub generation: Option<u32>,
    /// Look for good copies of damaged pages in this repository; with --execute, write them back.
    #[arg(long, value_name = "REPOSITORY", conflicts_with_all = ["repository", "paths"],
          help_heading = "Healing")]
    pub heal_from: Option<PathBuf>,
    /// Save damaged pages in this directory before they are overwritten [default: DIR.damaged-pages, next to
    /// the data directory DIR].
    #[arg(
        long,
        value_name = "DIR",
        requires = "heal_from",
        help_heading = "Healing"
    )]
    pub keep_damaged: Option<PathBuf>,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long, requires = "heal_from", help_heading = "Healing")]
    pub execute: bool,
    /// Read at most this many bytes per second: `100M`.
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Effort")]
    pub rate: Option<u64>,
    /// How many threads read [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N", help_heading = "Effort",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// The key of the repository.
    #[command(flatten)]
    pub keys: Keys,
}
