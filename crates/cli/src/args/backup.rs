//! `backup`.

use super::{Around, Connection, EncryptTo, KeepRules, Keys, Locking, Remote, Waiting};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel backup /backup/shop                      The server on this host, by its socket
  evenkeel backup /backup/shop --full               Everything again
  evenkeel backup /backup/shop --against 12         Differential: what changed since generation 12
  evenkeel backup /backup/shop --ssh root@db1       A server on another host, the repository here
  evenkeel backup /backup/shop --stop-applier       A replica, to seed other replicas from
  evenkeel backup /backup/shop --snapshot hook --hook './take.sh' --hook-release './drop.sh'
  evenkeel backup /backup/shop --snapshot copy --datadir /var/lib/mysql     A stopped server
  evenkeel backup /backup/vm1 --volume /dev/vg/vm1                          A volume, not a server
  evenkeel backup /backup/shop --keep-daily 7 --keep-weekly 5 --prune \\
                  --metrics /var/lib/prometheus/node-exporter/shop.prom     From a timer

A new path or an empty directory becomes a repository; a directory with other files is refused. A generation
does not exist until its manifest is written. Keep rules are applied right after that. They never remove the
new generation.";

/// Back up a server's files while it runs: everything once, then only what changed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Backup {
    /// The repository: a directory or the URL of an object store. The first backup creates it.
    pub repository: PathBuf,
    /// The object store's storage class for packs, by the store's name for it [default: the bucket's].
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Read and store everything; depend on no earlier generation.
    #[arg(long, conflicts_with = "against")]
    pub full: bool,
    /// Store what changed since generation N instead of since the newest one.
    #[arg(long, value_name = "N", value_parser = super::generation)]
    pub against: Option<u32>,
    /// Continue in a repository that has backups of another host, data directory or server_uuid, because the
    /// server moved or was reinstalled.
    #[arg(long)]
    pub new_source: bool,
    /// Read everything, and fail if a block has changed although the snapshot reports it as unchanged.
    #[arg(long)]
    pub audit: bool,
    /// If an InnoDB page is corrupt, store it as it is, continue, and end with exit code 3.
    #[arg(long)]
    pub keep_corrupt: bool,

    /// How to take the snapshot; `evenkeel doctor` shows what works here.
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "auto",
        help_heading = "Snapshot"
    )]
    pub snapshot: SnapshotMethod,
    /// The directory for the snapshot; repeat if the server's files are on several filesystems [default: a
    /// directory next to the server's].
    #[arg(long, value_name = "DIR", help_heading = "Snapshot")]
    pub snapshot_dir: Vec<PathBuf>,
    /// The size of the snapshot of a thick LVM volume [default: 20 % of the volume].
    #[arg(long, value_name = "SIZE", value_parser = super::size, help_heading = "Snapshot")]
    pub snapshot_size: Option<u64>,
    /// With reflink: pause the server's process while its files are cloned, instead of splicing the redo
    /// log's checkpoint.
    #[arg(long, help_heading = "Snapshot")]
    pub stop: bool,
    /// On a replica: stop the SQL thread (applier) while the files are frozen, to record its position in the
    /// source's binary log. Such a backup can seed new replicas of that source. The thread starts again
    /// before the backup reads any data.
    #[arg(long, conflicts_with = "datadir", help_heading = "Snapshot")]
    pub stop_applier: bool,
    /// The data directory of a stopped server (with `--snapshot copy`).
    #[arg(long, value_name = "DIR", help_heading = "Snapshot")]
    pub datadir: Option<PathBuf>,
    /// Back up this block device or file (a virtual machine's disk) instead of a server. Repeat for several;
    /// each is frozen at its own time.
    #[arg(long, value_name = "PATH", help_heading = "Snapshot",
          conflicts_with_all = ["datadir", "stop", "keep_corrupt"])]
    pub volume: Vec<PathBuf>,
    /// With `--snapshot hook`: the command that takes the snapshot. It runs while the server is locked. Its
    /// last line of output must be the path of the frozen data directory.
    #[arg(
        long,
        alias = "snapshot-hook",
        value_name = "COMMAND",
        help_heading = "Snapshot"
    )]
    pub hook: Option<String>,
    /// With `--snapshot hook`: the command that removes the snapshot after the backup.
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
    /// How much throughput the server may lose to the backup, in percent. evenkeel measures the server's
    /// throughput and rests between reads, for at most 31/32 of the time. 100: never rest.
    #[arg(long, value_name = "PERCENT", default_value_t = 5, help_heading = "Effort",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub max_impact: u8,
    /// The zstd level, -7 to 19 [default: 1, and -3 while other programs keep the processors busy: that takes a
    /// third of the processor time, and more space].
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Effort",
          value_parser = clap::value_parser!(i32).range(-7..=19))]
    pub level: Option<i32>,
    /// How many threads read and compress [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N", help_heading = "Effort",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,

    /// What to keep once the generation is complete; without a rule, everything.
    #[command(flatten)]
    pub keep: KeepRules,
    /// After forgetting, free unneeded space as `prune` does.
    #[arg(long, help_heading = "Keep rules")]
    pub prune: bool,

    /// Write the run's result to this file for node_exporter's textfile collector, even if the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,

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
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Commands before and after.
    #[command(flatten)]
    pub around: Around,
    /// For whom it is encrypted.
    #[command(flatten)]
    pub encrypt: EncryptTo,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
}

/// How to take the snapshot.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMethod {
    /// The best method that works for this server here.
    Auto,
    /// A read-only snapshot of the btrfs subvolume.
    Btrfs,
    /// A reflink clone of every file (XFS, btrfs).
    Reflink,
    /// A snapshot of the LVM volume, thin or thick.
    Lvm,
    /// The files themselves; the server must be stopped.
    Copy,
    /// Your own command.
    Hook,
    /// No snapshot: mariadb-backup or xtrabackup copies the files.
    Engine,
}

/// The lock during the snapshot. The server and the snapshot method decide which lock is needed; this option
/// can only choose a stronger one, or none if none is needed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupLock {
    /// The weakest lock that makes the image consistent: BACKUP STAGE or LOCK INSTANCE if the server has
    /// them.
    Auto,
    /// FLUSH TABLES WITH READ LOCK: every write waits.
    Ftwrl,
    /// No lock; allowed only if the snapshot is consistent by itself.
    None,
}
