//! The servers that the queue engine is built for.

use evenkeel_testkit::TestServer;
use evenkeel_testkit::servers::{cache, mariadb_10_11, mariadb_11_8, mysql_9};
use std::path::PathBuf;

/// A server that the queue engine is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Debian's MariaDB 10.11.
    MariaDb10,
    /// MariaDB 11.8.
    MariaDb11,
    /// MySQL 9.
    MySql9,
}

impl Host {
    /// The server. Panics when it is missing.
    #[must_use]
    pub fn server(self) -> TestServer {
        match self {
            Self::MariaDb10 => mariadb_10_11(),
            Self::MariaDb11 => mariadb_11_8(),
            Self::MySql9 => mysql_9(),
        }
    }

    /// Whether a wait may stand in the WHERE of a statement that reads the queue.
    #[must_use]
    pub fn waits_in_where(self) -> bool {
        self != Self::MySql9
    }

    /// Where the handler for it is, below `queue/`.
    pub(super) fn family(self) -> &'static str {
        match self {
            Self::MariaDb10 | Self::MariaDb11 => "mariadb",
            Self::MySql9 => "mysql",
        }
    }

    /// The variable that tells the build which program it is for.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::MariaDb10 | Self::MariaDb11 => "MARIADBD",
            Self::MySql9 => "MYSQLD",
        }
    }

    /// What it is compiled against.
    pub(super) fn headers(self) -> PathBuf {
        cache().join(match self {
            Self::MariaDb10 => "mariadb-headers",
            Self::MariaDb11 => "mariadb-11.8-headers",
            Self::MySql9 => "mysql-9-headers",
        })
    }

    /// What it needs to load the plugin.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb10 | Self::MariaDb11 => &["--plugin-maturity=experimental"],
            Self::MySql9 => &[],
        }
    }
}
