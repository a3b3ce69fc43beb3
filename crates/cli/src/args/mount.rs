//! `mount`.

use super::{Keys, Waiting};
use clap::Args;
use evenkeel_op::Error;
use std::path::PathBuf;
use std::str::FromStr;

const MOUNT: &str = "\
Examples:
  evenkeel mount /backup/shop /mnt                         Every generation, read-only
  ls /mnt/db1:var-lib-mysql/latest/data/shop
  evenkeel mount /backup/shop /mnt --generation 12         One, read-only
  evenkeel mount /backup/shop /mnt --writable-scratch /var/tmp/scratch
  evenkeel mount /backup/shop /mnt --writable-scratch /srv/restored --fill --owner mysql

It stays until Ctrl-C, SIGTERM or umount, and says when it is ready. With --writable-scratch it
also says how a server is started on the files: what that writes goes into the scratch directory,
which is removed afterwards; the backup stays as it is. --fill brings everything else in the
background, until the scratch directory is a full restore that needs the repository no more.
Nothing is forgotten or pruned while it is mounted. Exit code 3: --fill had not come to its end;
the same command goes on.";

/// Show backups as files without restoring them, and on request start a server on one.
#[derive(Args, Debug)]
#[command(after_help = MOUNT)]
pub struct Mount {
    /// The repository.
    pub repository: PathBuf,
    /// Where to show it: an empty directory.
    pub mountpoint: PathBuf,
    /// Only generations of this source: HOST or HOST:DIR, as `generations` shows it.
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only this generation, or `latest` [default: all; with --writable-scratch, the newest].
    #[arg(long, value_name = "N")]
    pub generation: Option<MountedGeneration>,
    /// Make one generation writable: this directory takes what is written, and is removed afterwards.
    #[arg(long, value_name = "DIR")]
    pub writable_scratch: Option<PathBuf>,
    /// Bring everything in the background: DIR becomes a full restore, and is kept.
    #[arg(long, requires = "writable_scratch")]
    pub fill: bool,
    /// With --fill: bring no more than this a second.
    #[arg(long, value_name = "SIZE", requires = "fill", value_parser = super::size)]
    pub rate: Option<u64>,
    /// Keep the scratch directory; the same command goes on with it.
    #[arg(long, requires = "writable_scratch")]
    pub keep: bool,
    /// Give the files to this user and its group [default: as they were, when root].
    #[arg(long, value_name = "USER", requires = "writable_scratch")]
    pub owner: Option<String>,
    /// Memory for what was decompressed.
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = super::size)]
    pub cache: u64,
    /// Of a generation made with `--snapshot engine`: the tool that copied it, which has to prepare
    /// it [default: mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE", requires = "writable_scratch")]
    pub engine_tool: Option<PathBuf>,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

/// Which generation to mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountedGeneration {
    /// The newest.
    Latest,
    /// The one of this number.
    Number(u32),
}

impl FromStr for MountedGeneration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "latest" => Ok(Self::Latest),
            _ => super::generation(text)
                .map(Self::Number)
                .map_err(|error| error.hint("or give the word latest, for the newest")),
        }
    }
}
