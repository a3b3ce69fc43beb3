//! Which hot-copy tool copies a server's files while it runs.

use super::Flavour;

/// A hot-copy tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HotCopyTool {
    /// mariadb-backup, for MariaDB.
    MariaDbBackup,
    /// Percona XtraBackup, for MySQL.
    XtraBackup,
}

impl HotCopyTool {
    pub(super) const fn of(flavour: Flavour) -> Self {
        match flavour {
            Flavour::MariaDb => Self::MariaDbBackup,
            Flavour::MySql => Self::XtraBackup,
        }
    }

    /// Returns which tool it is that prints this when asked for its version: `… based on MariaDB server 10.11.19 …`,
    /// `… based on MySQL server 8.0.35 …`.
    #[must_use]
    pub fn of_output(said: &str) -> Self {
        Self::of(match said.contains("MariaDB") {
            true => Flavour::MariaDb,
            false => Flavour::MySql,
        })
    }

    /// Returns the names of its program, today's first: mariabackup until MariaDB 10.4.
    #[must_use]
    pub const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::MariaDbBackup => &["mariadb-backup", "mariabackup"],
            Self::XtraBackup => &["xtrabackup"],
        }
    }

    /// Returns the name of its program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.programs()[0]
    }

    /// Returns what to install to have it.
    #[must_use]
    pub const fn package(self) -> &'static str {
        match self {
            Self::MariaDbBackup => "the package mariadb-backup",
            Self::XtraBackup => "Percona XtraBackup",
        }
    }

    /// Returns the name of the servers that it copies.
    #[must_use]
    pub const fn server(self) -> &'static str {
        match self {
            Self::MariaDbBackup => Flavour::MariaDb.name(),
            Self::XtraBackup => Flavour::MySql.name(),
        }
    }
}
