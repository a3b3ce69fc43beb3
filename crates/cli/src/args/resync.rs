//! `replica resync`.

use super::{BackupLock, CloneSnapshot, Connection, Locking, Remote, span};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel replica resync --datadir /var/lib/mysql --ssh root@db2             The plan
  evenkeel replica resync --datadir /var/lib/mysql --ssh root@db2 --execute
  evenkeel replica resync --datadir /srv/b --socket /run/a.sock --execute     The sibling is on this host
  evenkeel replica resync --datadir /var/lib/mysql --ssh root@db2 --start-with 'systemctl start mariadb' \\
      --broken-socket /run/mysqld/mysqld.sock --server-binary /usr/sbin/mariadbd --execute    It does not run

Run it on the host of the broken replica, and name a healthy replica of the same source, the sibling. The broken
server is stopped, and the sibling is cloned beside its data directory: of the old files, equal blocks are used. A
private server on the clone is told its position in the source's binary log, with the sibling's own account and
password for the source. Then both directories are exchanged by one rename, the server starts on the new files with
its own options, server_id and UUID, and is waited for until it has caught up. The old files are removed last.

If it fails before the exchange, the old server starts again on its old files. If it is killed, the same command
continues. The source is never asked for anything.

The connection options are the sibling's. The broken server is asked with the same account, at the socket of the
process that runs on the data directory.";

const SSH: &str = "\
The sibling is on this host, with its option files and the snapshot. Nothing needs to be installed there. The value is \
passed to ssh: `root@db2`";
const COMPRESS_AT: &str = "\
Whether what is sent is compressed: on the sibling's host (source), or not at all (repository), which saves CPU time on \
the sibling but sends more over the link";

/// Make a broken replica new from a healthy one, in place.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("ssh", |arg| arg.help(SSH)),
    mut_arg("compress_at", |arg| arg.help(COMPRESS_AT))
)]
pub struct ReplicaResync {
    /// The broken replica's data directory, on this host.
    #[arg(long, value_name = "DIR")]
    pub datadir: PathBuf,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// Keep the old files, beside the data directory.
    #[arg(long)]
    pub keep_old: bool,

    /// The sibling may replicate from another source than the broken server: after a failover, for example.
    #[arg(long)]
    pub other_source: bool,

    /// The broken server's socket [default: the one that its process listens at].
    #[arg(long, value_name = "FILE", help_heading = "The broken server")]
    pub broken_socket: Option<PathBuf>,
    /// Stop the server with this command, run by `sh -c`.
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "start_with",
        help_heading = "The broken server"
    )]
    pub stop_with: Option<String>,
    /// Start the server with this command, run by `sh -c`. Needed if it does not run.
    #[arg(long, value_name = "COMMAND", help_heading = "The broken server")]
    pub start_with: Option<String>,
    /// Its program, for the private server [default: the one that runs].
    #[arg(long, value_name = "FILE", help_heading = "The broken server")]
    pub server_binary: Option<PathBuf>,
    /// How long it may take to stop.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span, help_heading = "The broken server")]
    pub stop_deadline: Duration,
    /// How long it may take to answer again.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span, help_heading = "The broken server")]
    pub start_deadline: Duration,
    /// How long it may take to catch up with the source.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span, help_heading = "The broken server")]
    pub catch_up_deadline: Duration,

    /// How to take the snapshot of the sibling.
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        help_heading = "Snapshot"
    )]
    pub snapshot: CloneSnapshot,
    /// The directory on the sibling's host for the snapshot; repeat if its files are on several filesystems
    /// [default: a directory next to the server's].
    #[arg(long, value_name = "DIR", help_heading = "Snapshot")]
    pub snapshot_dir: Vec<PathBuf>,
    /// The size of the snapshot of a thick LVM volume [default: 20 % of the volume].
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Snapshot")]
    pub snapshot_size: Option<u64>,

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
    /// The sibling.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
}
