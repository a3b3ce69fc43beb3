//! Which privileges an account has, out of `SHOW GRANTS`.

use super::version::{Flavour, Version};
use crate::connect::Session;
use evenkeel_op::{ErrorKind, Result};
use std::collections::BTreeSet;
use std::fmt;

/// A global privilege that some operation needs. Each server has its own name for some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Privilege {
    /// `FLUSH …`, and `BACKUP STAGE` on MariaDB.
    Reload,
    /// `LOCK INSTANCE FOR BACKUP`; only MySQL 8 and later have it.
    BackupAdmin,
    /// See other accounts' sessions and the tables of `INFORMATION_SCHEMA.INNODB_…`.
    Process,
    /// `SHOW MASTER STATUS` and `SHOW BINARY LOGS`.
    ReplicationClient,
    /// `SHOW SLAVE STATUS`.
    ReplicaMonitor,
    /// `KILL` other accounts' sessions.
    KillOthers,
    /// `SELECT` on every table, as `CHECK TABLE` and the size queries want it.
    SelectAll,
    /// `STOP SLAVE` and `START SLAVE`.
    ReplicationAdmin,
    /// See which tables have triggers.
    Trigger,
}

impl Privilege {
    /// Returns the grants any one of which gives this privilege on a server; none when the server
    /// has no such privilege.
    fn grants(self, flavour: Flavour, version: Version) -> &'static [&'static str] {
        let split = Version::new(10, 5, 2);
        // From here on SUPER no longer contains the privileges that were split off it.
        let apart = Version::new(11, 0, 1);
        let mysql_8 = flavour == Flavour::MySql && version >= Version::new(8, 0, 0);
        match (self, flavour) {
            (Self::Reload, _) => &["RELOAD"],
            (Self::BackupAdmin, _) if mysql_8 => &["BACKUP_ADMIN"],
            (Self::BackupAdmin, _) => &[],
            (Self::Process, _) => &["PROCESS"],
            (Self::SelectAll, _) => &["SELECT"],
            (Self::Trigger, _) => &["TRIGGER"],
            (Self::ReplicationClient, Flavour::MariaDb) if version >= apart => &["BINLOG MONITOR"],
            (Self::ReplicationClient, Flavour::MariaDb) if version >= split => {
                &["BINLOG MONITOR", "REPLICATION CLIENT", "SUPER"]
            }
            (Self::ReplicaMonitor, Flavour::MariaDb) if version >= apart => {
                &["SLAVE MONITOR", "REPLICA MONITOR"]
            }
            (Self::ReplicaMonitor, Flavour::MariaDb) if version >= split => &[
                "SLAVE MONITOR",
                "REPLICA MONITOR",
                "REPLICATION SLAVE ADMIN",
                "SUPER",
            ],
            (Self::ReplicationClient | Self::ReplicaMonitor, _) => &["REPLICATION CLIENT", "SUPER"],
            (Self::KillOthers, Flavour::MariaDb) if version >= apart => &["CONNECTION ADMIN"],
            (Self::KillOthers, Flavour::MariaDb) if version >= split => {
                &["CONNECTION ADMIN", "SUPER"]
            }
            (Self::KillOthers, _) if mysql_8 => &["CONNECTION_ADMIN", "SUPER"],
            (Self::KillOthers, _) => &["SUPER"],
            (Self::ReplicationAdmin, Flavour::MariaDb) if version >= apart => {
                &["REPLICATION SLAVE ADMIN"]
            }
            (Self::ReplicationAdmin, Flavour::MariaDb) if version >= split => {
                &["REPLICATION SLAVE ADMIN", "SUPER"]
            }
            (Self::ReplicationAdmin, _) if mysql_8 => &["REPLICATION_SLAVE_ADMIN", "SUPER"],
            (Self::ReplicationAdmin, _) => &["SUPER"],
        }
    }

    /// Returns the name to `GRANT … ON *.*` on a server.
    #[must_use]
    pub fn grant_name(self, flavour: Flavour, version: Version) -> &'static str {
        self.grants(flavour, version)
            .first()
            .copied()
            .unwrap_or("USAGE")
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reload => "RELOAD",
            Self::BackupAdmin => "BACKUP_ADMIN",
            Self::Process => "PROCESS",
            Self::ReplicationClient => "REPLICATION CLIENT",
            Self::ReplicaMonitor => "REPLICA MONITOR",
            Self::KillOthers => "CONNECTION ADMIN",
            Self::SelectAll => "SELECT",
            Self::ReplicationAdmin => "REPLICATION SLAVE ADMIN",
            Self::Trigger => "TRIGGER",
        })
    }
}

/// Returns those of `needs` that the session's account does not have. A privilege that this server
/// does not know is never missing.
///
/// Errors: those of the session.
pub fn missing_privileges(session: &mut Session, needs: &[Privilege]) -> Result<Vec<Privilege>> {
    let lines = match session.rows("SHOW GRANTS") {
        Ok(rows) => rows,
        // --skip-grant-tables: everybody may do everything.
        Err(error) if error.kind() == ErrorKind::Refused => {
            let open = session.rows("SELECT COUNT(*) FROM mysql.user").is_ok()
                && error.to_string().contains("skip-grant-tables");
            return if open { Ok(Vec::new()) } else { Err(error) };
        }
        Err(error) => return Err(error),
    };
    let text = session.value("SELECT VERSION()")?.unwrap_or_default();
    let comment = session.variable("version_comment")?.unwrap_or_default();
    let flavour = Flavour::of(&text, &comment);
    let version = text.parse()?;
    let held = held(lines.iter().filter_map(|row| row.at(0)));
    Ok(needs
        .iter()
        .copied()
        .filter(|need| !satisfied(need.grants(flavour, version), &held))
        .collect())
}

fn satisfied(grants: &[&str], held: &BTreeSet<String>) -> bool {
    grants.is_empty()
        || held.contains("ALL PRIVILEGES")
        || grants.iter().any(|grant| held.contains(*grant))
}

/// Returns the names of the global privileges in the lines of `SHOW GRANTS`. One that was revoked for a schema
/// (MySQL's `partial_revokes`) is not global.
fn held<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut revoked = BTreeSet::new();
    let each = |list: &str| -> Vec<String> {
        list.split(',')
            .map(|name| name.trim().to_uppercase())
            .collect()
    };
    for line in lines {
        if let Some((list, _)) = line
            .strip_prefix("REVOKE ")
            .and_then(|rest| rest.split_once(" ON "))
        {
            revoked.extend(each(list));
        }
        let Some(rest) = line.strip_prefix("GRANT ") else {
            continue;
        };
        // Roles have no ON; grants on one schema or table do not help.
        let Some((list, _)) = rest.split_once(" ON *.* TO ") else {
            continue;
        };
        names.extend(each(list));
    }
    names.retain(|name| !revoked.contains(name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIA: (Flavour, Version) = (Flavour::MariaDb, Version::new(10, 11, 14));
    const MYSQL_5: (Flavour, Version) = (Flavour::MySql, Version::new(5, 7, 22));
    const MYSQL_8: (Flavour, Version) = (Flavour::MySql, Version::new(8, 0, 15));

    fn has(server: (Flavour, Version), need: Privilege, lines: &[&str]) -> bool {
        satisfied(
            need.grants(server.0, server.1),
            &held(lines.iter().copied()),
        )
    }

    #[test]
    fn global_grants_count_and_others_do_not() {
        let lines = [
            "GRANT RELOAD, BINLOG MONITOR ON *.* TO `b`@`localhost` IDENTIFIED BY PASSWORD '*X'",
            "GRANT PROCESS ON `x`.* TO `b`@`localhost`",
            "GRANT `role` TO `b`@`localhost`",
        ];
        assert!(has(MARIA, Privilege::Reload, &lines));
        assert!(has(MARIA, Privilege::ReplicationClient, &lines));
        assert!(!has(MARIA, Privilege::Process, &lines));
        assert!(!has(MARIA, Privilege::KillOthers, &lines));
    }

    #[test]
    fn what_was_revoked_for_a_schema_is_not_global() {
        let lines = [
            "GRANT SELECT, TRIGGER, RELOAD ON *.* TO `b`@`%`",
            "REVOKE TRIGGER ON `shop`.* FROM `b`@`%`",
        ];
        assert!(!has(MYSQL_8, Privilege::Trigger, &lines));
        assert!(has(MYSQL_8, Privilege::Reload, &lines));
        assert!(has(MYSQL_8, Privilege::Trigger, &lines[..1]));
    }

    #[test]
    fn everything_is_everything() {
        let lines = ["GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost' WITH GRANT OPTION"];
        for need in [Privilege::Reload, Privilege::KillOthers, Privilege::Process] {
            assert!(has(MYSQL_5, need, &lines) && has(MARIA, need, &lines));
        }
    }

    #[test]
    fn each_server_has_its_own_names() {
        assert!(has(MYSQL_5, Privilege::BackupAdmin, &[]));
        assert!(!has(MYSQL_8, Privilege::BackupAdmin, &[]));
        let dynamic = ["GRANT BACKUP_ADMIN,CONNECTION_ADMIN ON *.* TO `b`@`%`"];
        assert!(has(MYSQL_8, Privilege::BackupAdmin, &dynamic));
        assert!(has(MYSQL_8, Privilege::KillOthers, &dynamic));
        let root = ["GRANT SUPER ON *.* TO `r`@`%`"];
        let newer = (Flavour::MariaDb, Version::new(11, 8, 2));
        assert!(has(MARIA, Privilege::KillOthers, &root));
        assert!(!has(newer, Privilege::KillOthers, &root));
    }
}
