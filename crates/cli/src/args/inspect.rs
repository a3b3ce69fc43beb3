//! `settings` and `doctor`: looking without touching.

use super::{Connection, Remote};
use clap::Args;
use std::path::PathBuf;

const SETTINGS: &str = "\
Examples:
  evenkeel settings                          Which settings `evenkeel` would use, and why
  evenkeel settings --for backup -h db1      Also reads the group [evenkeel-backup]

Later sources override earlier ones, in this order: environment, system option files, --defaults-extra-file,
~/.my.cnf, login path, flags. evenkeel reads the groups [client], [client-server], [client-mariadb],
[evenkeel] and [evenkeel-VERB]; doctor also reads [evenkeel-backup]. Passwords are not shown.";

/// Show every connection setting and where it came from.
#[derive(Args, Debug)]
#[command(after_help = SETTINGS)]
pub struct Settings {
    /// Show the settings that this command would use.
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

Doctor locks, writes and changes nothing, with one exception: if a killed backup left the server's process
stopped, doctor resumes it. Exit code 4: a backup would be refused.";

/// Check whether a backup of this server can run, and which snapshot methods work here.
#[derive(Args, Debug)]
#[command(after_help = DOCTOR)]
pub struct Doctor {
    /// Also check this repository: whether a backup can be written to it, and whether other users on this
    /// host can read it. The repository is on this host, even with --ssh.
    pub repository: Option<PathBuf>,
    /// The directory for snapshots; repeat if the server's files are on several filesystems.
    #[arg(long, value_name = "DIR")]
    pub snapshot_dir: Vec<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Which host.
    #[command(flatten)]
    pub remote: Remote,
}
