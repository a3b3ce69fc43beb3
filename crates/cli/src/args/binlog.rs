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

/// Archive binary logs for point-in-time restores.
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
    /// Write archived binary logs back to files.
    Extract(BinlogExtract),
}

const ARCHIVE: &str = "\
Examples:
  evenkeel binlog archive /backup/shop                          Follow the server until SIGTERM
  evenkeel binlog archive /backup/shop --until-current          Once, from a timer
  evenkeel binlog archive /backup/shop --rotate-seconds 60      Fewer, larger objects
  evenkeel binlog archive /backup/shop --ssh root@db1           A server on another host, by its socket
  evenkeel binlog archive /backup/shop -h db1 --compress        Over a slow network
  evenkeel binlog archive /backup/shop --semi-sync              Commits wait until they are archived
  evenkeel binlog archive /backup/shop -h db2                   After a failover: continue with db2
  evenkeel binlog archive /backup/shop --metrics /var/lib/prometheus/node-exporter/shop-binlog.prom

The first run starts with the server's oldest binary log; each later run resumes where the archive ends. If
the server restarts, the command waits for it. The account needs REPLICATION SLAVE and REPLICATION CLIENT
(MariaDB: BINLOG MONITOR). Exit code 4: the server has deleted logs that are not archived.";

/// Receive a server's binary logs as a replica does, and store them in the repository.
#[derive(Args, Debug)]
#[command(after_help = ARCHIVE)]
pub struct BinlogArchive {
    /// The repository; a new path or an empty directory becomes one.
    pub repository: PathBuf,
    /// Exit when everything that the server had written at the start is archived.
    #[arg(long, visible_alias = "once")]
    pub until_current: bool,
    /// If the server has deleted logs that are not archived, continue after them and record the gap.
    #[arg(long)]
    pub allow_gap: bool,
    /// Write a segment after this many bytes.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = super::size)]
    pub rotate_bytes: u64,
    /// Write a segment after this time. The archive lags behind the server by this time plus the time to
    /// store a segment.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = super::span)]
    pub rotate_seconds: Duration,
    /// Acknowledge each transaction once it is in the repository, as a semi-synchronous replica does. Then
    /// every commit that a client sees succeed is archived.
    #[arg(long)]
    pub semi_sync: bool,
    /// Have the server compress what it sends, if it can: for slow networks. It costs the server CPU time.
    #[arg(long)]
    pub compress: bool,
    /// Keep this file up to date with the archive's lag and the run's result, for node_exporter's textfile
    /// collector.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub metrics: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
    /// For whom a new one is encrypted.
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
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}

const EXTRACT: &str = "\
Examples:
  evenkeel binlog extract /backup/shop /tmp/logs
  mariadb-binlog --verbose /tmp/logs/binlog.000042

Each file is identical to the server's, up to where the archive ends.";

/// Write archived binary logs back to files.
#[derive(Args, Debug)]
#[command(after_help = EXTRACT)]
pub struct BinlogExtract {
    /// The repository.
    pub repository: PathBuf,
    /// The directory to write into: new or empty.
    #[arg(value_name = "DIR")]
    pub into: PathBuf,
    /// The server, by its name in `binlog list` [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// The timeline, by its name in `binlog list` [default: the newest].
    #[arg(long, value_name = "NAME")]
    pub timeline: Option<String>,
    /// The key.
    #[command(flatten)]
    pub keys: Keys,
}
