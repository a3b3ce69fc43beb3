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
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

const RESTORE: &str = "\
Examples:
  evenkeel restore /backup/shop --target /srv/restored
  evenkeel restore /backup/shop --generation 12 --target /srv/restored --owner mysql
  evenkeel restore /backup/shop --target /srv/data --map-root redo=/fast/redo
  evenkeel restore /backup/shop --target /srv/data --ssh root@db2     Onto another host
  evenkeel restore /backup/shop --target /srv/data --to '2026-11-20 10:41:07'
  evenkeel restore /backup/vm1 --onto /dev/vg/vm1 --execute     A volume, over what is there

The target must be empty or not exist. Until every byte is in place and synced, it holds nothing
that a server would start on. Each block is read once, from whichever generation stored it.";

/// Restore a generation into an empty directory.
#[derive(Args, Debug)]
#[command(after_help = RESTORE)]
pub struct Restore {
    /// The repository.
    pub repository: PathBuf,
    /// The directory that becomes the data directory; volumes become sparse files in it. With --ssh
    /// it is on the other host.
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
    /// Go on to a point in time, with binary logs that were archived: up to a time
    /// ('2026-11-20 10:41:07'), with a transaction (gtid:0-1-23), before it (before:0-1-23), or up to
    /// a position (binlog.000042:1234).
    #[arg(long, value_name = "POINT", conflicts_with = "onto")]
    pub to: Option<String>,
    /// With `--to` and a time, where times in the log go back behind it: stop before the first
    /// transaction of that time or later, or behind the last earlier one. The exit code is 3 then
    /// [default: refuse, and name both places].
    #[arg(long, value_name = "WHICH", requires = "to")]
    pub times_go_back: Option<GoBack>,
    /// With `--to`: the server that applies the logs [default: mariadbd or mysqld of the
    /// generation's kind].
    #[arg(long, value_name = "FILE", requires = "to")]
    pub server_binary: Option<PathBuf>,
    /// Place a root that lay outside the data directory; repeat for each.
    #[arg(long, value_name = "ID=DIR")]
    pub map_root: Vec<MappedRoot>,
    /// Give the files to this user and its group [default: as they were, when root].
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Overwrite this block device or file with a volume, where they differ; it must not be in use.
    /// Without `--execute` the plan is shown and nothing happens.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "map_root", "owner"])]
    pub onto: Option<PathBuf>,
    /// With `--onto`: which volume of the generation [default: the only one].
    #[arg(long, value_name = "NAME", requires = "onto")]
    pub volume: Option<String>,
    /// With `--onto`: do it.
    #[arg(long, requires = "onto")]
    pub execute: bool,
    /// How many threads write [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// What else to run.
    #[command(flatten)]
    pub around: Around,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// Of a generation made with `--snapshot engine`: the tool that copied it, which has to prepare
    /// it [default: mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE")]
    pub engine_tool: Option<PathBuf>,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

/// Which of the two places that a time may be.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoBack {
    /// Before the first transaction of that time or later.
    First,
    /// Behind the last earlier one.
    Last,
}

const VERIFY: &str = "\
Examples:
  evenkeel verify /backup/shop                     Every byte of the newest generation
  evenkeel verify /backup/shop --all               Every byte of everything, archived logs too
  evenkeel verify /backup/shop --boot              And start a server on it
  evenkeel verify /backup/shop --boot --mount      The same without a full restore
  evenkeel verify s3://vault/shop --all --part 3/30      A thirtieth of the content; tomorrow 4/30
  evenkeel verify /backup/shop --boot --server-binary /opt/mysql/bin/mysqld

Reading is done by restore's own code. --boot restores into a scratch directory, starts the server
without networking, waits for recovery, checks every table, and records in the repository when the
generation was last proved restorable. Exit code 4: something is damaged. Exit code 3: all that was
checked is sound, but without a reader's key not everything could be.";

/// Read every byte of a backup as restore would, and on request start a server on it.
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
    /// Read all that describes the content, and a random sample of it: a share (`5%`) or an amount
    /// (`10G`).
    #[arg(long, value_name = "PERCENT|SIZE", value_parser = super::amount, conflicts_with = "boot")]
    pub sample: Option<Amount>,
    /// With `--sample`: choose as the run did that named this number.
    #[arg(long, value_name = "NUMBER", requires = "sample")]
    pub seed: Option<u64>,
    /// Read all that describes the content, and the K-th of N parts of it: all N together are
    /// everything.
    #[arg(long, value_name = "K/N", conflicts_with_all = ["boot", "sample"])]
    pub part: Option<Part>,
    /// Restore into a scratch directory, start a server on it and check its tables.
    #[arg(long)]
    pub boot: bool,
    /// With --boot: mount the generation in place of restoring it: only what the server reads is
    /// fetched, and little space is needed.
    #[arg(long, requires = "boot")]
    pub mount: bool,
    /// The server to start [default: mariadbd or mysqld of the generation's kind].
    #[arg(long, value_name = "FILE", requires = "boot")]
    pub server_binary: Option<PathBuf>,
    /// Of a generation made with `--snapshot engine`: the tool that copied it, which has to prepare
    /// it [default: mariadb-backup or xtrabackup].
    #[arg(long, value_name = "FILE", requires = "boot")]
    pub engine_tool: Option<PathBuf>,
    /// Where to restore to for --boot [default: beside the repository, or in /var/tmp where not everybody
    /// may enter the directories above it: the server does not run as root].
    #[arg(long, value_name = "DIR", requires = "boot")]
    pub scratch: Option<PathBuf>,
    /// Write what came of the run to this file, in the format of node_exporter's textfile collector;
    /// after a failed run too.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// What else to run.
    #[command(flatten)]
    pub around: Around,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

const FORGET: &str = "\
Examples:
  evenkeel forget /backup/shop --keep-last 7                         Show what would go
  evenkeel forget /backup/shop --keep-daily 7 --keep-weekly 5 --execute
  evenkeel forget /backup/shop --generation 3 --generation 4 --execute

A generation is kept when any rule holds it. Without --execute the plan is shown and nothing
happens. Any generation can go; the others stay whole. `prune` frees the space.";

/// Drop generations that no keep rule holds.
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
    /// Do it; without this the plan is shown and nothing happens.
    #[arg(long)]
    pub execute: bool,
    /// Write what came of the run to this file, in the format of node_exporter's textfile collector;
    /// after a failed run too.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// What else to run.
    #[command(flatten)]
    pub around: Around,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
}

/// What to keep.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Keep rules")]
pub struct KeepRules {
    /// Keep the newest N.
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,
    /// Keep the newest of each of the last N hours that have one.
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<usize>,
    /// Keep the newest of each of the last N days that have one.
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<usize>,
    /// Keep the newest of each of the last N weeks that have one.
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<usize>,
    /// Keep the newest of each of the last N months that have one.
    #[arg(long, value_name = "N")]
    pub keep_monthly: Option<usize>,
    /// Keep the newest of each of the last N years that have one.
    #[arg(long, value_name = "N")]
    pub keep_yearly: Option<usize>,
    /// Keep everything younger than this: `14d`.
    #[arg(long, value_name = "TIME", value_parser = super::span)]
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

/// Packs of which less than this percentage is needed are rewritten, unless another is said.
pub const PRUNE_MIN_LIVE: u8 = 50;

const PRUNE: &str = "\
Examples:
  evenkeel prune /backup/shop                           Show what would be freed
  evenkeel prune /backup/shop --execute
  evenkeel prune /backup/shop --min-live 80 --execute   Rewrite more, free more

Packs that nothing needs are deleted. A pack of which less than --min-live percent is needed is
rewritten first. Archived binary logs go that no generation can use any more. Without --execute the
plan is shown and nothing happens.";

/// Free the space of what no generation needs any more.
#[derive(Args, Debug)]
#[command(after_help = PRUNE)]
pub struct Prune {
    /// The repository.
    pub repository: PathBuf,
    /// Rewrite packs of which less than this percentage is still needed.
    #[arg(long, value_name = "PERCENT", default_value_t = PRUNE_MIN_LIVE,
          value_parser = super::percent)]
    pub min_live: u8,
    /// Put packs that are rewritten into this storage class of the object store.
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Do it; without this the plan is shown and nothing happens.
    #[arg(long)]
    pub execute: bool,
    /// Write what came of the run to this file, in the format of node_exporter's textfile collector;
    /// after a failed run too.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// What else to run.
    #[command(flatten)]
    pub around: Around,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

const REPOSITORY: &str = "\
Examples:
  evenkeel repository copy /backup/shop s3://vault/shop    What is new, to a second place
  evenkeel repository rebuild /backup/shop                 Show what a new head would name";

/// Copy a repository, or mend it.
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
    /// Copy generations to another place: the first time all, then what is new.
    Copy(Box<RepositoryCopy>),
    /// Make a lost, damaged or outdated head anew from the generations that are there.
    Rebuild(Rebuild),
}

const COPY: &str = "\
Examples:
  evenkeel repository copy /backup/shop s3://vault/shop
  evenkeel repository copy /backup/shop /srv/vault/shop --ssh root@vault      To another host's disk
  evenkeel repository copy /backup/shop /mnt/disk --last 1                    Only the newest
  evenkeel repository copy /backup/shop s3://vault/shop --encrypt-to age1... --storage-class STANDARD_IA

A new place becomes a copy with the same numbers, object by object; no key is needed, and whoever
opens the one opens the other. With --encrypt-to or --decrypt, or where a repository of its own is
already, generations are written anew, block by block, under numbers of that repository; then FROM
must be open, and what opens TO is given too. Either way the next copy sends what is new, and nothing
is removed from TO: it has its own `forget` and `prune`.";

/// Copy generations to another place: the first time all, then what is new.
#[derive(Args, Debug)]
#[command(after_help = COPY)]
pub struct RepositoryCopy {
    /// The repository to copy.
    pub from: PathBuf,
    /// Where to: an empty or new place, or one with an earlier copy or another repository. With --ssh
    /// it is on the other host.
    pub to: PathBuf,
    /// Copy this generation; repeat for more [default: all newer than what TO has].
    #[arg(long, value_name = "N", value_parser = super::generation, conflicts_with = "latest")]
    pub generation: Vec<u32>,
    /// Copy the newest N.
    #[arg(long = "last", alias = "latest", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub latest: Option<u32>,
    /// Copy only what was backed up from this source, as `generations` shows it.
    #[arg(long)]
    pub source: Option<String>,
    /// Read no more than this much a second: `50M`.
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub rate: Option<u64>,
    /// How many threads copy [default: one per core].
    #[arg(long = "threads", alias = "workers", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// Put packs into this storage class of TO's object store.
    #[arg(long, value_name = "CLASS")]
    pub storage_class: Option<String>,
    /// Write in clear what is encrypted in FROM.
    #[arg(long, conflicts_with_all = ["encrypt_to", "encrypt_passphrase_file"])]
    pub decrypt: bool,
    /// What else to run.
    #[command(flatten)]
    pub around: Around,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// What opens FROM, and TO where it has keys of its own.
    #[command(flatten)]
    pub keys: Keys,
    /// For whom a new TO is encrypted.
    #[command(flatten)]
    pub encrypt: EncryptTo,
}

const REBUILD: &str = "\
Examples:
  evenkeel repository rebuild /backup/shop                  Show what the new head would name
  evenkeel repository rebuild /backup/shop --execute
  evenkeel verify /backup/shop --all                        Afterwards: is everything there?

The file `head` says which generations there are. All but one thing it says is in the generations
too: when each was last proved to start is lost with it. A head that is whole is left as it is.
Without --execute the plan is shown and nothing happens. Exit code 3: done, but something was found
that could not be read, and is left out.";

/// Make a lost, damaged or outdated head anew from the generations that are there.
#[derive(Args, Debug)]
#[command(after_help = REBUILD)]
pub struct Rebuild {
    /// The repository.
    pub repository: PathBuf,
    /// Do it; without this the plan is shown and nothing happens.
    #[arg(long)]
    pub execute: bool,
    /// For other runs.
    #[command(flatten)]
    pub waiting: Waiting,
}
