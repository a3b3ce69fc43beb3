//! What was typed. Nothing here knows what it means: that is `settings`.

mod around;
mod backup;
mod baseline;
mod bench;
mod binlog;
mod capture;
mod check;
mod clone;
mod connection;
mod cron;
mod data_directory;
mod demo;
mod digest;
mod dump;
mod far_side;
mod fleet;
mod heal;
mod health;
mod import;
mod inspect;
mod keys;
mod live;
mod load;
mod lock;
mod mount;
mod plugin;
mod prewarm;
mod queue;
mod repair;
mod replay;
mod replica;
mod repository;
mod resync;
mod ssh;
mod url;
mod values;
mod waiting;

pub use around::Around;
pub use backup::{Backup, BackupLock, SnapshotMethod};
pub use baseline::{
    BaselineCare, BaselineDrop, BaselineList, BaselineOf, BaselineRollback, BaselineSave,
    BaselineVerb,
};
pub use bench::{
    Bench, BenchCache, BenchCompare, BenchCompression, BenchInserts, BenchOltp, BenchRecovery,
    BenchShowdown, BenchTpcc, BenchVerb, Experiment, FilesystemKind, OltpCompat, OltpDistribution,
    OltpLoad, OltpMode, OltpRun, OltpVerb, TpccCheck, TpccLoad, TpccRun, TpccVerb,
};
pub use binlog::{Binlog, BinlogArchive, BinlogExtract, BinlogList, BinlogVerb};
pub use capture::{Capture, CaptureFormat};
pub use check::Check;
pub use clone::{CloneServer, CloneSnapshot};
pub use connection::{Connection, SslModeArg};
pub use cron::Cron;
pub use data_directory::DataDirectory;
pub use demo::Demo;
pub use digest::{Digest, DigestHistory, DigestRules, DigestSort, DigestSource};
pub use dump::{Dump, DumpFormat, DumpLock};
pub use far_side::{Attach, Helper, HelperVerb, Session};
pub use fleet::Fleet;
pub use heal::ReplicaHeal;
pub use health::{
    Health, HealthCheck, HealthChecks, HealthDrain, HealthRole, HealthRules, HealthRun,
    HealthStatus, HealthUndrain, HealthVerb,
};
pub use import::{Import, ImportIndexes};
pub use inspect::{Doctor, Settings};
pub use keys::{EncryptTo, Keys, KeysAdd, KeysCare, KeysGenerate, KeysList, KeysRemove, KeysVerb};
pub use live::{Qps, Servers, Top, Watched};
pub use load::{Load, LoadIndexes, LoadMethod};
pub use lock::{Lock, LockMethod, Locking, LongQueryKind};
pub use mount::{Mount, MountedGeneration};
pub use plugin::{
    Plugin, PluginInstall, PluginName, PluginServer, PluginStatus, PluginUninstall, PluginVerb,
    SqlForm,
};
pub use prewarm::{Pages, Prewarm, Reader};
pub use queue::{
    Queue, QueueCheck, QueueCompact, QueueForward, QueuePeek, QueueSalvage, QueueStatus,
    QueueTarget, QueueVerb,
};
pub use repair::ReplicaRepair;
pub use replay::{Replay, ReplayOrder, ReplayRounds, Speed};
pub use replica::{
    AskedServers, Comparison, Replica, ReplicaChecksum, ReplicaDiagnose, ReplicaStatus, ReplicaVerb,
};
pub use repository::{
    Forget, Generations, GoBack, KeepRules, PRUNE_MIN_LIVE, Prune, Rebuild, RepositoryCare,
    RepositoryCopy, RepositoryVerb, Restore, Verify,
};
pub use resync::ReplicaResync;
pub use ssh::{CompressAt, Remote};
pub use url::{Url, UrlCoded, UrlGrep, UrlMode, UrlStats, UrlTable, UrlTrain, UrlVerb};
pub use values::{
    Amount, Hidden, MappedRoot, Part, age, amount, generation, percent, recipient, size, span,
};
pub use waiting::Waiting;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  evenkeel doctor                               What works for the server on this host
  evenkeel backup /backup/shop                  First everything, then only what changed
  evenkeel generations /backup/shop             What you can restore
  evenkeel restore /backup/shop --target DIR    The newest generation, into an empty directory
  evenkeel verify /backup/shop --boot           Restore, start a server on it, check the tables

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done, 4 found a difference or damage, 10 no such
repository, 11 busy, 12 wrong key, 13 server unreachable, 14 refused by the server, 15 timed out waiting for a
lock, 130/143 interrupted and cleaned up.";

/// Keeps MySQL and MariaDB servers on an even keel: hot, incremental backups that are proved to
/// restore.
#[derive(Parser, Debug)]
#[command(
    name = "evenkeel",
    version,
    after_help = EXAMPLES,
    disable_help_flag = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Output options.
    #[command(flatten)]
    pub output: Output,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Output options.
#[derive(Args, Debug, Clone, Default)]
pub struct Output {
    /// Print one JSON document on standard output; errors are JSON too.
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Add the answer as plain text to the JSON document, for `fleet` to show.
    #[arg(long, global = true, hide = true, requires = "json")]
    pub with_text: bool,
    /// Print nothing unless something fails.
    #[arg(long, short = 'q', global = true, help_heading = "Output")]
    pub quiet: bool,
    /// The format of standard error: plain text, or one JSON object per line with `time`, `level` and
    /// `message`.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        global = true,
        help_heading = "Output"
    )]
    pub log_format: LogFormat,
    /// Start each line of standard error with the local time.
    #[arg(long, global = true, help_heading = "Output")]
    pub log_timestamps: bool,
    /// Print help with the most common options.
    #[arg(long, short = '?', global = true, action = ArgAction::HelpShort, help_heading = "Output")]
    help: Option<bool>,
    /// Print help with all options and more detail.
    #[arg(long, global = true, action = ArgAction::HelpLong, help_heading = "Output")]
    help_all: Option<bool>,
}

/// How standard error is written.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Plain text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl Verb {
    /// Returns the host to work on, for verbs that may work on another one.
    #[must_use]
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Backup(args) => Some(&args.remote),
            Self::Restore(args) => Some(&args.remote),
            Self::Clone(args) => Some(&args.remote),
            Self::Verify(args) => Some(&args.remote),
            Self::Doctor(args) => Some(&args.remote),
            Self::Binlog(args) => match &args.verb {
                BinlogVerb::Archive(args) => Some(&args.remote),
                BinlogVerb::List(_) | BinlogVerb::Extract(_) => None,
            },
            Self::Repository(care) => care.copy().map(|args| &args.remote),
            _ => None,
        }
    }

    /// Returns the commands to be run around it, for verbs that have such, with the verb's name and the repository.
    #[must_use]
    pub fn around(&self) -> Option<(&Around, &'static str, &Path)> {
        match self {
            Self::Backup(args) => Some((&args.around, "backup", &args.repository)),
            Self::Restore(args) => Some((&args.around, "restore", &args.repository)),
            Self::Verify(args) => Some((&args.around, "verify", &args.repository)),
            Self::Forget(args) => Some((&args.around, "forget", &args.repository)),
            Self::Prune(args) => Some((&args.around, "prune", &args.repository)),
            Self::Repository(care) => {
                let copy = care.copy()?;
                Some((&copy.around, "repository copy", &copy.from))
            }
            _ => None,
        }
    }
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Back up a server's files while it runs: everything once, then only what changed.
    Backup(Box<Backup>),
    /// List the generations of a repository, or show one in detail.
    Generations(Generations),
    /// Restore a generation into an empty directory.
    Restore(Restore),
    /// Copy a running server's files into an empty directory, here or from another host.
    Clone(Box<CloneServer>),
    /// Show backups as files without restoring them; a server can start on one.
    Mount(Box<Mount>),
    /// Read every byte of a backup as restore would; with --boot, start a server on it.
    Verify(Verify),
    /// Check the InnoDB pages of a server, of any files, or of a generation.
    Check(Box<Check>),
    /// Archive binary logs for point-in-time restores.
    Binlog(Binlog),
    /// Forget generations that the keep rules do not keep, or that you name.
    Forget(Forget),
    /// Free the space of blocks and files that no generation needs.
    Prune(Prune),
    /// Speed up startup after a crash: read what the server needs into memory, in parallel.
    Prewarm(Prewarm),
    /// Copy a repository, or repair it.
    Repository(RepositoryCare),
    /// Manage who can open an encrypted repository.
    Keys(KeysCare),
    /// Save the state of a data directory, and roll back to it in a second.
    Baseline(BaselineCare),
    /// Show the statements that clients send, from packets, relayed connections, logs or the server.
    Capture(Box<Capture>),
    /// Show queries per second of many servers, and their total.
    Qps(Box<Qps>),
    /// Show what many servers do right now, live on the terminal.
    Top(Box<Top>),
    /// Show replicas and their sources, and say what is wrong with them.
    Replica(Box<Replica>),
    /// Say whether clients may use a server: once, or to a load balancer, without flapping.
    Health(Box<Health>),
    /// Measure servers and storage.
    Bench(Bench),
    /// Write a server's tables to files, in parallel and point-in-time consistent.
    Dump(Box<Dump>),
    /// Load a dump into a server, in parallel; an interrupted load resumes.
    Load(Box<Load>),
    /// Run a file of SQL statements, in parallel where the order does not matter.
    Import(Box<Import>),
    /// Show which statements cost the most, from a server's logs or captured packets.
    Digest(Box<Digest>),
    /// Replay captured statements on another server, and compare the outcome.
    Replay(Box<Replay>),
    /// Compress URLs to codes that sort and can be searched like the URLs.
    Url(Url),
    /// Install, upgrade and uninstall functions and queues on a server.
    Plugin(Plugin),
    /// Manage queues on a server, or check and salvage their files.
    Queue(Queue),
    /// Run a command while the server is locked for a backup.
    Lock(Box<Lock>),
    /// Run a command from cron: one at a time, logged, silent unless it fails.
    Cron(Cron),
    /// Run a command for every server in a list, several at a time.
    Fleet(Fleet),
    /// Show every connection setting and where it came from.
    Settings(Settings),
    /// Check whether a backup of this server can run, and which snapshot methods work here.
    Doctor(Doctor),
    /// Demonstrate backup and restore on a throwaway server under load.
    Demo(Demo),
    /// Serve another host. Started by `--ssh`, not by people.
    #[command(hide = true)]
    Helper(Helper),
}
