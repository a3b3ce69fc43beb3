//! `settings` and `doctor`: looking without touching.

use super::{Connection, Remote};
use clap::Args;
use std::path::PathBuf;

const SETTINGS: &str = "\
Examples:
  evenkeel settings                          Which settings `evenkeel` would use, and why
  evenkeel settings --for backup -h db1      Also reads the group [evenkeel-backup]

Later wins: environment, system option files, --defaults-extra-file, ~/.my.cnf, login path, flags.
Groups read: [client], [client-server], [client-mariadb], [evenkeel], and [evenkeel-VERB]; by
doctor, [evenkeel-backup] too.
Passwords are not shown.";

/// Show every connection setting and where it came from.
#[derive(Args, Debug)]
#[command(after_help = SETTINGS)]
pub struct Settings {
    /// As this command would see them.
    #[arg(long = "for", value_name = "VERB")]
    pub verb: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

const DOCTOR: &str = "\
Examples:
  evenkeel doctor                            The server on this host, by its socket
  evenkeel doctor /backup/shop               Also: can others on this host read its backups?
  evenkeel doctor -u backup -p --snapshot-dir /var/lib/mysql-snapshots
  evenkeel doctor --ssh root@db1             The server on another host
  evenkeel doctor --json | jq '.methods[] | select(.usable)'

Nothing is locked, written or changed, except that a server that a killed backup left stopped is resumed.
Exit code 4: a backup would be refused.";

/// Check what a backup of this server needs, and which snapshot methods work here.
#[derive(Args, Debug)]
#[command(after_help = DOCTOR)]
pub struct Doctor {
    /// The repository of its backups: also check whether a backup can go there, and whether others on this
    /// host can read it. With --ssh it is on this host.
    pub repository: Option<PathBuf>,
    /// Where snapshots would be kept; repeat for files on several filesystems.
    #[arg(long, value_name = "DIR")]
    pub snapshot_dir: Vec<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
}
