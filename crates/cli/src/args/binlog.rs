//! `binlog`.

use super::{Connection, EncryptTo, Keys, Remote};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const BINLOG: &str = "\
Examples:
  evenkeel binlog archive /backup/shop                     Follow the server until SIGTERM
  evenkeel binlog archive /backup/shop --until-current     Once, from a timer
  evenkeel binlog list /backup/shop                        What is archived, and what is missing
  evenkeel restore /backup/shop --target DIR --to '2026-11-20 10:41:07'";

/// Archive binary logs, for restores to any point in time.
#[derive(Args, Debug)]
#[command(after_help = BINLOG, subcommand_required = true, arg_required_else_help = true)]
pub struct Binlog {
    /// What to do.
    #[command(subcommand)]
    pub verb: BinlogVerb,
}

/// What to do with binary logs.
#[derive(Subcommand, Debug)]
pub enum BinlogVerb {
    /// Receive a server's binary logs as a replica does, and store them in the repository.
    Archive(Box<BinlogArchive>),
    /// Show which binary logs are archived, and what is missing.
    List(BinlogList),
    /// Write archived binary logs as files again.
    Extract(BinlogExtract),
}

const ARCHIVE: &str = "\
Examples:
  evenkeel binlog archive /backup/shop                          Follow the server until SIGTERM
  evenkeel binlog archive /backup/shop --until-current          Once, from a timer
  evenkeel binlog archive /backup/shop --rotate-seconds 60      Fewer, larger objects
  evenkeel binlog archive /backup/shop --ssh root@db1           By the socket of another host
  evenkeel binlog archive /backup/shop --semi-sync              Commits wait until they are archived
  evenkeel binlog archive /backup/shop -h db2                   After a failover: go on with db2
  evenkeel binlog archive /backup/shop --metrics /var/lib/prometheus/node-exporter/shop-binlog.prom

Begins with the oldest binary log that the server has, and goes on where the archive ends. A server
that restarts is waited for. The account needs REPLICATION SLAVE and REPLICATION CLIENT (MariaDB:
BINLOG MONITOR). Exit code 4: the server has deleted what the archive lacks.";

/// Receive a server's binary logs as a replica does, and store them in the repository.
#[derive(Args, Debug)]
#[command(after_help = ARCHIVE)]
pub struct BinlogArchive {
    /// The repository; an empty or new directory becomes one.
    pub repository: PathBuf,
    /// End when everything is archived that the server has written until now.
    #[arg(long, visible_alias = "once")]
    pub until_current: bool,
    /// Go on behind binary logs that the server has deleted, and note the gap.
    #[arg(long)]
    pub allow_gap: bool,
    /// Store what came when it is this much.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = super::size)]
    pub rotate_bytes: u64,
    /// Store what came when it is this old: an archive is behind its server by that, and by the time
    /// that storing takes.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = super::span)]
    pub rotate_seconds: Duration,
    /// Acknowledge each transaction to the server when it is in the repository, as a semi-synchronous
    /// replica does: what a client was told is committed is archived.
    #[arg(long)]
    pub semi_sync: bool,
    /// Keep up in this file how far the archive is behind, and what came of the run, in the format of
    /// node_exporter's textfile collector.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
    /// For whom it is encrypted when it is made.
    #[command(flatten)]
    pub encrypt: EncryptTo,
}

const LIST: &str = "\
Examples:
  evenkeel binlog list /backup/shop
  evenkeel binlog list /backup/shop --json | jq '.sources[].timelines[].gaps'";

/// Show which binary logs are archived, and what is missing.
#[derive(Args, Debug)]
#[command(after_help = LIST)]
pub struct BinlogList {
    /// The repository.
    pub repository: PathBuf,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}

const EXTRACT: &str = "\
Examples:
  evenkeel binlog extract /backup/shop /tmp/logs
  mariadb-binlog --verbose /tmp/logs/binlog.000042

Each file is what the server wrote, as far as it is archived.";

/// Write archived binary logs as files again.
#[derive(Args, Debug)]
#[command(after_help = EXTRACT)]
pub struct BinlogExtract {
    /// The repository.
    pub repository: PathBuf,
    /// The directory to write into; must be empty or not exist.
    #[arg(value_name = "DIR")]
    pub into: PathBuf,
    /// Of which server, by its name in `binlog list` [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Of which history, by its name in `binlog list` [default: the newest].
    #[arg(long, value_name = "NAME")]
    pub timeline: Option<String>,
    /// What opens it.
    #[command(flatten)]
    pub keys: Keys,
}
