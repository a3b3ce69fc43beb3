//! The commands that work on a repository without a server.

use super::{Amount, Around, EncryptTo, Keys, MappedRoot, Part, Remote, Waiting};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const GENERATIONS: &str = "\
Examples:
  evenkeel generations /backup/shop           One line per generation
  evenkeel generations /backup/shop 12        Files, coordinates and settings of generation 12
  evenkeel generations /backup/shop --json | jq '.generations[-1].coordinates'";

/// List the generations of a repository, or show one in detail.
#[derive(Args, Debug)]
#[command(after_help = GENERATIONS)]
pub struct Generations {
    /// The repository.
    pub repository: PathBuf,
    /// Show this generation in detail.
    #[arg(value_name = "N", value_parser = super::generation)]
    pub generation: Option<u32>,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

const RESTORE: &str = "\
Examples:
  evenkeel restore /backup/shop --target /srv/restored
  evenkeel restore /backup/shop --generation 12 --target /srv/restored --owner mysql
  evenkeel restore /backup/shop --target /srv/data --map-root redo=/fast/redo
  evenkeel restore /backup/shop --target /srv/data --ssh root@db2     To another host
  evenkeel restore /backup/shop --target /srv/data --to '2026-11-20 10:41:07'
  evenkeel restore /backup/vm1 --onto /dev/vg/vm1 --execute     Overwrite a volume

The target must be new or empty. A server cannot start on it until every byte is in place and synced. Each
block is read once, from the generation that stored it.";

/// Restore a generation into an empty directory.
#[derive(Args, Debug)]
#[command(after_help = RESTORE)]
pub struct Restore {
    /// The repository.
    pub repository: PathBuf,
    /// The directory that becomes the data directory; volumes become sparse files in it. With --ssh, it is on
    /// the other host.
    #[arg(
        long,
        alias = "output",
        value_name = "DIR",
        required_unless_present = "onto"
    )]
    pub target: Option<PathBuf>,
    /// The generation to restore [default: the newest; with --to, the nearest before the point].
    #[arg(long, value_name = "N", value_parser = super::generation)]
    pub generation: Option<u32>,
    /// Apply archived binary logs up to this point: a time ('2026-11-20 10:41:07'), a transaction
    /// (gtid:0-1-23), the one before it (before:0-1-23), or a position (binlog.000042:1234).
    #[arg(long, value_name = "POINT", conflicts_with = "onto")]
    pub to: Option<String>,
    /// With `--to` and a time: what to do if times in the log go backward around it. Stop before the first
    /// transaction of that time or later (first), or after the last earlier transaction (last), with exit
    /// code 3 [default: refuse, and name both positions].
    #[arg(long, value_name = "WHICH", requires = "to")]
    pub times_go_back: Option<GoBack>,
    /// With `--to`: the server program that applies the logs [default: mariadbd or mysqld, as the generation
    /// needs].
    #[arg(long, value_name = "FILE", requires = "to")]
    pub server_binary: Option<PathBuf>,
    /// The directory for a root that was outside the data directory; repeat for each.
    #[arg(long, value_name = "ID=DIR")]
    pub map_root: Vec<MappedRoot>,
    /// Make this user and its group the owner of the files [default: the original owners, if run as root].
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Overwrite this block device or file with a volume, only where they differ. It must not be in use.
    /// Without `--execute` the plan is only shown.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "map_root", "owner"])]
    pub onto: Option<PathBuf>,
    /// With `--onto`: the volume of the generation [default: the only one].
    #[arg(long, value_name = "NAME", requires = "onto")]
    pub volume: Option<String>,
    /// With `--onto`: carry out the plan.
    #[arg(long, requires = "onto")]
    pub execute: bool,
    /// How many threads write [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// Commands before and after.
    #[command(flatten)]
    pub around: Around,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// For a generation made with `--snapshot engine`: the hot-copy tool that prepares it [default:
    /// mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE")]
    pub engine_tool: Option<PathBuf>,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

/// Which of the two positions of an ambiguous time.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoBack {
    /// Before the first transaction of that time or later.
    First,
    /// After the last earlier transaction.
    Last,
}

const VERIFY: &str = "\
Examples:
  evenkeel verify /backup/shop                     Every byte of the newest generation
  evenkeel verify /backup/shop --all               All generations, archived logs too
  evenkeel verify /backup/shop --boot              Also start a server on it
  evenkeel verify /backup/shop --boot --mount      The same without a full restore
  evenkeel verify s3://vault/shop --all --part 3/30      A thirtieth of the content; tomorrow 4/30
  evenkeel verify /backup/shop --boot --server-binary /opt/mysql/bin/mysqld

Verify reads backups with the code of restore. --boot restores into a scratch directory, starts the server
without networking, waits for crash recovery, and checks every table. It then records in the repository when
the generation was last proved restorable. Exit codes: 4 something is damaged; 3 everything that was checked
is intact, but without a reader's key not everything could be checked.";

/// Read every byte of a backup as restore would; with --boot, start a server on it.
#[derive(Args, Debug)]
#[command(after_help = VERIFY)]
pub struct Verify {
    /// The repository.
    pub repository: PathBuf,
    /// The generation to verify [default: the newest].
    #[arg(long, value_name = "N", value_parser = super::generation, conflicts_with = "all")]
    pub generation: Option<u32>,
    /// Verify every generation.
    #[arg(long)]
    pub all: bool,
    /// Read all metadata and a random sample of the content, given as a share (`5%`) or an amount (`10G`).
    #[arg(long, value_name = "PERCENT|SIZE", value_parser = super::amount, conflicts_with = "boot")]
    pub sample: Option<Amount>,
    /// With `--sample`: read the same sample as an earlier run, by its number.
    #[arg(long, value_name = "NUMBER", requires = "sample")]
    pub seed: Option<u64>,
    /// Read all metadata and the K-th of N parts of the content. All N parts together cover everything.
    #[arg(long, value_name = "K/N", conflicts_with_all = ["boot", "sample"])]
    pub part: Option<Part>,
    /// Restore into a scratch directory, start a server on it and check its tables.
    #[arg(long)]
    pub boot: bool,
    /// With --boot: mount the generation instead of restoring it. Only what the server reads is fetched, so
    /// little space is needed.
    #[arg(long, requires = "boot")]
    pub mount: bool,
    /// The server program to start [default: mariadbd or mysqld, as the generation needs].
    #[arg(long, value_name = "FILE", requires = "boot")]
    pub server_binary: Option<PathBuf>,
    /// For a generation made with `--snapshot engine`: the hot-copy tool that prepares it [default:
    /// mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE", requires = "boot")]
    pub engine_tool: Option<PathBuf>,
    /// The directory that --boot restores into [default: next to the repository, or in /var/tmp if other
    /// users cannot access the repository's directory, because the server does not run as root].
    #[arg(long, value_name = "DIR", requires = "boot")]
    pub scratch: Option<PathBuf>,
    /// Write the run's result to this file for node_exporter's textfile collector, even if the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// Commands before and after.
    #[command(flatten)]
    pub around: Around,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

const FORGET: &str = "\
Examples:
  evenkeel forget /backup/shop --keep-last 7                         Show what would be forgotten
  evenkeel forget /backup/shop --keep-daily 7 --keep-weekly 5 --execute
  evenkeel forget /backup/shop --generation 3 --generation 4 --execute

A generation is kept if any rule keeps it. Without --execute the plan is only shown. Any generation can be
forgotten; the others stay complete. `prune` frees the space.";

/// Forget generations that the keep rules do not keep, or that you name.
#[derive(Args, Debug)]
#[command(after_help = FORGET)]
pub struct Forget {
    /// The repository.
    pub repository: PathBuf,
    /// What to keep.
    #[command(flatten)]
    pub keep: KeepRules,
    /// Forget exactly this generation; repeat for more.
    #[arg(long, value_name = "N", value_parser = super::generation, conflicts_with = "KeepRules")]
    pub generation: Vec<u32>,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// Write the run's result to this file for node_exporter's textfile collector, even if the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// Commands before and after.
    #[command(flatten)]
    pub around: Around,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
}

/// What to keep.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Keep rules")]
pub struct KeepRules {
    /// Keep the newest N generations.
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,
    /// Keep the newest generation of each of the last N hours that have one.
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<usize>,
    /// Keep the newest generation of each of the last N days that have one.
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<usize>,
    /// Keep the newest generation of each of the last N weeks that have one.
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<usize>,
    /// Keep the newest generation of each of the last N months that have one.
    #[arg(long, value_name = "N")]
    pub keep_monthly: Option<usize>,
    /// Keep the newest generation of each of the last N years that have one.
    #[arg(long, value_name = "N")]
    pub keep_yearly: Option<usize>,
    /// Keep all generations younger than this: `14d`.
    #[arg(long, value_name = "TIME", value_parser = super::age)]
    pub keep_within: Option<Duration>,
}

impl KeepRules {
    /// Returns whether any rule was given.
    #[must_use]
    pub fn is_any(&self) -> bool {
        let numbers = [
            self.keep_last,
            self.keep_hourly,
            self.keep_daily,
            self.keep_weekly,
            self.keep_monthly,
            self.keep_yearly,
        ];
        self.keep_within.is_some() || numbers.iter().any(Option::is_some)
    }
}

/// By default, a pack is rewritten if less than this percentage of it is needed.
pub const PRUNE_MIN_LIVE: u8 = 50;

const PRUNE: &str = "\
Examples:
  evenkeel prune /backup/shop                           Show what would be freed
  evenkeel prune /backup/shop --execute
  evenkeel prune /backup/shop --min-live 80 --execute   Rewrite more, free more

Prune rewrites each pack of which less than --min-live percent is needed, and then deletes packs that nothing
needs. It also deletes archived binary logs that no generation can use. Without --execute the plan is only
shown.";

/// Free the space of blocks and files that no generation needs.
#[derive(Args, Debug)]
#[command(after_help = PRUNE)]
pub struct Prune {
    /// The repository.
    pub repository: PathBuf,
    /// Rewrite a pack if less than this percentage of it is still needed.
    #[arg(long, value_name = "PERCENT", default_value_t = PRUNE_MIN_LIVE,
          value_parser = super::percent)]
    pub min_live: u8,
    /// Store rewritten packs in this storage class of the object store.
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// Write the run's result to this file for node_exporter's textfile collector, even if the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// Commands before and after.
    #[command(flatten)]
    pub around: Around,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

const REPOSITORY: &str = "\
Examples:
  evenkeel repository copy /backup/shop s3://vault/shop    Copy new generations
  evenkeel repository rebuild /backup/shop                 Show what a rebuilt head would list";

/// Copy a repository, or repair it.
#[derive(Args, Debug)]
#[command(after_help = REPOSITORY, subcommand_required = true, arg_required_else_help = true)]
pub struct RepositoryCare {
    /// What to do.
    #[command(subcommand)]
    pub verb: RepositoryVerb,
}

impl RepositoryCare {
    /// Returns what is to be copied, if that is to be done.
    #[must_use]
    pub fn copy(&self) -> Option<&RepositoryCopy> {
        match &self.verb {
            RepositoryVerb::Copy(args) => Some(args),
            RepositoryVerb::Rebuild(_) => None,
        }
    }
}

/// What to do with a repository.
#[derive(Subcommand, Debug)]
pub enum RepositoryVerb {
    /// Copy generations to a second repository: first all of them, then only new ones.
    Copy(Box<RepositoryCopy>),
    /// Rebuild a lost, damaged or outdated head from the existing generations.
    Rebuild(Rebuild),
}

const COPY: &str = "\
Examples:
  evenkeel repository copy /backup/shop s3://vault/shop
  evenkeel repository copy /backup/shop /srv/vault/shop --ssh root@vault      To another host's disk
  evenkeel repository copy /backup/shop /mnt/disk --last 1                    Only the newest
  evenkeel repository copy /backup/shop s3://vault/shop --encrypt-to age1... --storage-class STANDARD_IA

If TO is new, it becomes an exact copy, object by object, with the same generation numbers. This needs no key,
and the same keys open both repositories. With --encrypt-to or --decrypt, or if TO is an independent
repository, generations are rewritten block by block and get TO's own numbers. This needs the keys of both
repositories. In both cases, the next copy sends only what is new. Copy removes nothing from TO: run `forget`
and `prune` there.";

/// Copy generations to a second repository: first all of them, then only new ones.
#[derive(Args, Debug)]
#[command(after_help = COPY)]
pub struct RepositoryCopy {
    /// The repository to copy.
    pub from: PathBuf,
    /// The repository to copy to: a new or empty place, an earlier copy, or another repository. With --ssh,
    /// it is on the other host.
    pub to: PathBuf,
    /// Copy this generation; repeat for more [default: all that are newer than those in TO].
    #[arg(long, value_name = "N", value_parser = super::generation, conflicts_with = "latest")]
    pub generation: Vec<u32>,
    /// Copy the newest N generations.
    #[arg(long = "last", alias = "latest", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub latest: Option<u32>,
    /// Copy only generations of this source, as shown by `generations`.
    #[arg(long)]
    pub source: Option<String>,
    /// Read at most this much per second: `50M`.
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub rate: Option<u64>,
    /// How many threads copy [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// Store packs in this storage class of TO's object store.
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Write TO unencrypted although FROM is encrypted.
    #[arg(long, conflicts_with_all = ["encrypt_to", "encrypt_passphrase_file"])]
    pub decrypt: bool,
    /// Commands before and after.
    #[command(flatten)]
    pub around: Around,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// The keys of FROM, and of TO if it has its own.
    #[command(flatten)]
    pub keys: Keys,
    /// For whom a new TO is encrypted.
    #[command(flatten)]
    pub encrypt: EncryptTo,
}

const REBUILD: &str = "\
Examples:
  evenkeel repository rebuild /backup/shop                  Show what the rebuilt head would list
  evenkeel repository rebuild /backup/shop --execute
  evenkeel verify /backup/shop --all                        Afterwards: is everything there?

The file `head` lists the generations. It is rebuilt from the generations themselves; only the times of the
last `verify --boot` are lost. An intact head is not changed. Without --execute the plan is only shown. Exit
code 3: done, but something could not be read and was left out.";

/// Rebuild a lost, damaged or outdated head from the existing generations.
#[derive(Args, Debug)]
#[command(after_help = REBUILD)]
pub struct Rebuild {
    /// The repository.
    pub repository: PathBuf,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// Waiting for other runs.
    #[command(flatten)]
    pub waiting: Waiting,
}
