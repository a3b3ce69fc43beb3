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
  evenkeel mount /backup/shop /mnt --generation 12         Generation 12, read-only
  evenkeel mount /backup/shop /mnt --writable-scratch /var/tmp/scratch
  evenkeel mount /backup/shop /mnt --writable-scratch /srv/restored --fill --owner mysql

The command reports when the mount is ready; the mount stays until Ctrl-C, SIGTERM or umount. With
--writable-scratch, it also prints the command that starts a server on the files. The server's writes go to
the scratch directory, which is removed afterwards; the backup does not change. --fill fetches everything else
in the background, until the scratch directory is a full restore that no longer needs the repository. While a
repository is mounted, nothing in it can be forgotten or pruned. Exit code 3: --fill did not finish; run the
same command again to resume.";

/// Show backups as files without restoring them; a server can start on one.
#[derive(Args, Debug)]
#[command(after_help = MOUNT)]
pub struct Mount {
    /// The repository.
    pub repository: PathBuf,
    /// The mount point: an empty directory.
    pub mountpoint: PathBuf,
    /// Only generations of this source: HOST or HOST:DIR, as shown by `generations`.
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only this generation, or `latest` [default: all; with --writable-scratch, the newest].
    #[arg(long, value_name = "N")]
    pub generation: Option<MountedGeneration>,
    /// Make one generation writable. Writes go to this directory, which is removed afterwards.
    #[arg(long, value_name = "DIR")]
    pub writable_scratch: Option<PathBuf>,
    /// Fetch everything in the background, so that the scratch directory becomes a full restore, which is
    /// kept.
    #[arg(long, requires = "writable_scratch")]
    pub fill: bool,
    /// With --fill: fetch at most this much per second.
    #[arg(long, value_name = "SIZE", requires = "fill", value_parser = super::size)]
    pub rate: Option<u64>,
    /// Keep the scratch directory; the same command, run again, resumes with it.
    #[arg(long, requires = "writable_scratch")]
    pub keep: bool,
    /// Make this user and its group the owner of the files [default: the original owners, if run as root].
    #[arg(long, value_name = "USER", requires = "writable_scratch")]
    pub owner: Option<String>,
    /// Memory for decompressed blocks.
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = super::size)]
    pub cache: u64,
    /// For a generation made with `--snapshot engine`: the hot-copy tool that prepares it [default:
    /// mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE", requires = "writable_scratch")]
    pub engine_tool: Option<PathBuf>,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

/// Which generation to mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountedGeneration {
    /// The newest.
    Latest,
    /// The one with this number.
    Number(u32),
}

impl FromStr for MountedGeneration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "latest" => Ok(Self::Latest),
            _ => super::generation(text)
                .map(Self::Number)
                .map_err(|error| error.hint("or use the word latest for the newest")),
        }
    }
}
