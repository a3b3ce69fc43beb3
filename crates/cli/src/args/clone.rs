//! `clone`.

use super::{BackupLock, Connection, Locking, MappedRoot, Remote};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel clone --target /srv/data                        The server on this host
  evenkeel clone --target /srv/data --ssh root@db1         The server on db1; its files come here
  evenkeel clone --target /srv/data --ssh root@db1 --owner mysql --stop-applier
  evenkeel clone --target /srv/data --ssh root@db1 --like /var/lib/mysql

With --stop-applier, a clone of a replica can become another replica of its source. With --like, only what
differs from the old files here is sent. With --ssh, owners of files are the other host's numbers: give --owner
if the account has another number here. Directories outside the data directory become TARGET-ID, or what
--map-root says.

The target is always on this host; with --ssh, the server is on the other one (the opposite of restore). It must
be new or empty. A server cannot start on it until every byte is in place and synced. If the clone is
interrupted, the same command again takes it up.";

const SSH: &str = "\
The server is on this host, with its option files and the snapshot; the target stays here. Nothing needs to be installed \
there. The value is passed to ssh: `root@db1`";
const COMPRESS_AT: &str = "\
Whether what is sent is compressed: on the server's host (source), or not at all (repository), which saves CPU time on \
the server but sends more over the link";

/// Copy a running server's files into an empty directory, here or from another host.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("ssh", |arg| arg.help(SSH)),
    mut_arg("compress_at", |arg| arg.help(COMPRESS_AT))
)]
pub struct CloneServer {
    /// The directory on this host that becomes the data directory.
    #[arg(long, value_name = "DIR")]
    pub target: PathBuf,
    /// An old data directory on this host, of a stopped server (the broken replica's): its blocks are used where
    /// they are equal. It is only read.
    #[arg(long, value_name = "DIR")]
    pub like: Option<PathBuf>,
    /// The directory for a root that is outside the data directory; repeat for each.
    #[arg(long, value_name = "ID=DIR")]
    pub map_root: Vec<MappedRoot>,
    /// Make this user and its group the owner of the files [default: the original owners, if run as root].
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,

    /// How to take the snapshot; `evenkeel doctor` shows what works there.
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        help_heading = "Snapshot"
    )]
    pub snapshot: CloneSnapshot,
    /// The directory on the server's host for the snapshot; repeat if the server's files are on several
    /// filesystems [default: a directory next to the server's].
    #[arg(long, value_name = "DIR", help_heading = "Snapshot")]
    pub snapshot_dir: Vec<PathBuf>,
    /// The size of the snapshot of a thick LVM volume [default: 20 % of the volume].
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Snapshot")]
    pub snapshot_size: Option<u64>,
    /// On a replica: stop the SQL thread (applier) while the files are frozen, to know its position in the
    /// source's binary log. Such a clone can become another replica of that source. The thread starts again
    /// before any data is read.
    #[arg(long, help_heading = "Snapshot")]
    pub stop_applier: bool,

    /// Read at most this many bytes per second: `100M`.
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Effort")]
    pub rate: Option<u64>,
    /// The zstd level of what crosses the link, -7 to 19.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Effort",
          allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-7..=19))]
    pub level: i32,
    /// How many threads read and compress [default: one per core].
    #[arg(long = "threads", value_name = "N", help_heading = "Effort",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub workers: Option<u16>,

    /// The lock during the snapshot.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Locking"
    )]
    pub lock: BackupLock,
    /// Timeouts of the lock.
    #[command(flatten)]
    pub locking: Locking,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
}

/// How to take the snapshot.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneSnapshot {
    /// The best method that works for this server there.
    Auto,
    /// A read-only snapshot of the btrfs subvolume.
    Btrfs,
    /// A reflink clone of every file (XFS, btrfs).
    Reflink,
    /// A snapshot of the LVM volume, thin or thick.
    Lvm,
}
