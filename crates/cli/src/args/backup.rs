//! `backup`.

use super::{Around, Connection, EncryptTo, KeepRules, Keys, Locking, Remote, Waiting};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel backup /backup/shop                      The server on this host, by its socket
  evenkeel backup /backup/shop --full               Everything again, leaning on no generation
  evenkeel backup /backup/shop --against 12         Differential: what changed since generation 12
  evenkeel backup /backup/shop --ssh root@db1       A server on another host, the repository here
  evenkeel backup /backup/shop --stop-applier       A replica, to seed other replicas with
  evenkeel backup /backup/shop --snapshot hook --hook './take.sh' --hook-release './drop.sh'
  evenkeel backup /backup/shop --snapshot copy --datadir /var/lib/mysql     A stopped server
  evenkeel backup /backup/vm1 --volume /dev/vg/vm1                          No server: a volume
  evenkeel backup /backup/shop --keep-daily 7 --keep-weekly 5 --prune \\
                  --metrics /var/lib/prometheus/node-exporter/shop.prom     From a timer

A path that does not exist, or an empty directory, becomes a repository; a directory that holds
anything else is refused. The generation exists once its manifest is written, and not before. Only
then, and at once, keep rules are applied; the generation that was just made always stays.";

/// Back up a server's files while it runs: everything once, then only what changed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Backup {
    /// The repository, a directory or the URL of an object store; the first backup makes it.
    pub repository: PathBuf,
    /// In an object store: the storage class of what is large, by the store's own name for it
    /// [default: the bucket's].
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Read and store everything, leaning on no earlier generation.
    #[arg(long, conflicts_with = "against")]
    pub full: bool,
    /// Store what changed since generation N instead of since the newest one.
    #[arg(long, value_name = "N", value_parser = super::generation)]
    pub against: Option<u32>,
    /// The server moved here, or was set up anew: go on in a repository that holds backups of another
    /// host, data directory or server_uuid.
    #[arg(long)]
    pub new_source: bool,
    /// Read everything, and fail if a block changed where the snapshot said none did.
    #[arg(long)]
    pub audit: bool,
    /// Go on when an InnoDB page is corrupt, store it as it is, and end with exit code 3.
    #[arg(long)]
    pub keep_corrupt: bool,

    /// How to freeze the files for a moment; `evenkeel doctor` says what works here.
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        help_heading = "Snapshot"
    )]
    pub snapshot: SnapshotMethod,
    /// Where to keep the snapshot; repeat for files that lie on several filesystems [default: a
    /// directory beside the server's].
    #[arg(long, value_name = "DIR", help_heading = "Snapshot")]
    pub snapshot_dir: Vec<PathBuf>,
    /// With a thick LVM volume: how large its snapshot is made [default: 20 % of the volume].
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Snapshot")]
    pub snapshot_size: Option<u64>,
    /// With reflink: freeze the server's process while its files are cloned, instead of splicing
    /// the redo log's checkpoint.
    #[arg(long, help_heading = "Snapshot")]
    pub stop: bool,
    /// On a replica: let its applier (SQL thread) stand while the files are frozen, so that the place
    /// in the source's binary log is known: such a backup seeds new replicas of the same source.
    /// It goes on before anything is read.
    #[arg(long, conflicts_with = "datadir", help_heading = "Snapshot")]
    pub stop_applier: bool,
    /// The data directory of a server that is stopped (with `--snapshot copy`).
    #[arg(long, value_name = "DIR", help_heading = "Snapshot")]
    pub datadir: Option<PathBuf>,
    /// Back up this block device or file (a virtual machine's disk) instead of a server; repeat for
    /// several, each of an instant of its own.
    #[arg(long, value_name = "PATH", help_heading = "Snapshot",
          conflicts_with_all = ["datadir", "stop", "keep_corrupt"])]
    pub volume: Vec<PathBuf>,
    /// With `--snapshot hook`: the command that takes the snapshot, run under our lock; its last
    /// line of output is the path at which the data directory can then be read.
    #[arg(
        long,
        alias = "snapshot-hook",
        value_name = "COMMAND",
        help_heading = "Snapshot"
    )]
    pub hook: Option<String>,
    /// With `--snapshot hook`: the command that drops the snapshot after it was read.
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "hook",
        help_heading = "Snapshot"
    )]
    pub hook_release: Option<String>,

    /// With `--snapshot engine`: the server's hot-copy tool [default: mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE", help_heading = "Snapshot")]
    pub engine_tool: Option<PathBuf>,

    /// Read at most this many bytes per second: `100M`.
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Effort")]
    pub rate: Option<u64>,
    /// How much of its throughput the server may lose to the reading, in percent: what it answers is
    /// watched and reading rests in between, but never for more than 31/32 of the time. 100: never
    /// rest.
    #[arg(long, value_name = "PERCENT", default_value_t = 5, help_heading = "Effort",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub max_impact: u8,
    /// How hard zstd compresses, 1 to 19.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Effort",
          value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// How many threads read and compress [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N", help_heading = "Effort",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,

    /// What to keep once the generation is complete; all, when no rule is given.
    #[command(flatten)]
    pub keep: KeepRules,
    /// After that, free the space of what no generation needs any more, as `prune` does.
    #[arg(long, help_heading = "Keep rules")]
    pub prune: bool,

    /// Write what came of the run to this file, in the format of node_exporter's textfile collector;
    /// after a failed run too.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,

    /// What to lock with while the files are frozen.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Locking"
    )]
    pub lock: BackupLock,
    /// How long to put up with it.
    #[command(flatten)]
    pub locking: Locking,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// What else to run.
    #[command(flatten)]
    pub around: Around,
    /// For whom.
    #[command(flatten)]
    pub encrypt: EncryptTo,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
}

/// How to freeze the files for a moment.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMethod {
    /// The best that works for this server here.
    Auto,
    /// A read-only snapshot of the btrfs subvolume.
    Btrfs,
    /// A reflink clone of every file (XFS, btrfs).
    Reflink,
    /// A snapshot of the LVM volume, thin or thick.
    Lvm,
    /// The files themselves, of a server that is stopped.
    Copy,
    /// Your own command.
    Hook,
    /// No snapshot: mariadb-backup or xtrabackup copies the files.
    Engine,
}

/// What to lock with while the files are frozen. Which lock a backup needs follows from the server
/// and the snapshot; a wish can only make it stronger, or leave it out where it is not needed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupLock {
    /// The mildest that makes the image consistent: BACKUP STAGE or LOCK INSTANCE where they exist.
    Auto,
    /// FLUSH TABLES WITH READ LOCK: every write waits.
    Ftwrl,
    /// No lock at all; only where the snapshot is one instant by itself.
    None,
}
