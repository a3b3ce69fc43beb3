//! Flavours and versions, out of what `VERSION()` says.

use evenkeel_op::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whose server it is. Percona Server counts as MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// MariaDB Server.
    MariaDb,
    /// MySQL, and what is built from it.
    MySql,
}

impl Flavour {
    /// Returns the flavour from `VERSION()` and `version_comment`. Some distributors keep
    /// "MariaDB" out of the one, some out of the other.
    #[must_use]
    pub fn of(version_text: &str, version_comment: &str) -> Self {
        let says = |text: &str| text.to_ascii_lowercase().contains("mariadb");
        if says(version_text) || says(version_comment) {
            Self::MariaDb
        } else {
            Self::MySql
        }
    }

    /// Returns the name to show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        }
    }

    /// Returns the name in documents and in names of files.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
        }
    }

    /// Returns how the server's program is called: `mariadbd` since MariaDB 10.5.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadbd",
            Self::MySql => "mysqld",
        }
    }

    /// Returns the variable that tells a server from others which replicate from each other: MariaDB has no
    /// `server_uuid`.
    #[must_use]
    pub const fn identity_variable(self) -> &'static str {
        match self {
            Self::MariaDb => "server_id",
            Self::MySql => "server_uuid",
        }
    }
}

impl FromStr for Flavour {
    type Err = Error;

    /// Reads what [`Flavour::id`] returns.
    fn from_str(id: &str) -> Result<Self> {
        [Self::MariaDb, Self::MySql]
            .into_iter()
            .find(|flavour| flavour.id() == id)
            .ok_or_else(|| Error::usage(format!("'{id}' is neither mariadb nor mysql")))
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A server version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 10 of 10.11.14.
    pub major: u16,
    /// 11 of 10.11.14.
    pub minor: u16,
    /// 14 of 10.11.14.
    pub patch: u16,
}

impl Version {
    /// Makes a version.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Returns the series, within which files and locks are the same: 10.11 of 10.11.14.
    #[must_use]
    pub fn series(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = Error;

    /// Reads the numbers at the start of `VERSION()`: `10.11.14-MariaDB-0+deb12u2-log`. A MariaDB
    /// that hides behind `5.5.5-`, as it does in the handshake, is looked through.
    fn from_str(text: &str) -> Result<Self> {
        let shown = match text.strip_prefix("5.5.5-") {
            Some(rest) if Flavour::of(rest, "") == Flavour::MariaDb => rest,
            _ => text,
        };
        let end = shown
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(shown.len());
        let mut numbers = shown[..end].split('.').map(str::parse::<u16>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => {
                Ok(Self::new(major, minor, patch))
            }
            _ => Err(Error::refused(format!("'{text}' is not a server version"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        for (text, flavour, version) in [
            ("10.11.14-MariaDB-0+deb12u2", Flavour::MariaDb, "10.11.14"),
            ("5.5.5-10.11.14-MariaDB-log", Flavour::MariaDb, "10.11.14"),
            ("11.8.6-MariaDB-5 from Debian", Flavour::MariaDb, "11.8.6"),
            ("5.7.22-log", Flavour::MySql, "5.7.22"),
            ("8.0.15", Flavour::MySql, "8.0.15"),
            ("8.4.6-6", Flavour::MySql, "8.4.6"),
            ("9.7.0-1", Flavour::MySql, "9.7.0"),
            ("5.5.5-m3", Flavour::MySql, "5.5.5"),
        ] {
            let read: Version = text.parse().unwrap();
            assert_eq!(read.to_string(), version);
            assert_eq!(Flavour::of(text, ""), flavour);
        }
        assert_eq!(Flavour::of("10.6.1", "MariaDB Server"), Flavour::MariaDb);
        assert!("banana".parse::<Version>().is_err());
        assert!("8.0".parse::<Version>().is_err());
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(Version::new(10, 11, 0) > Version::new(10, 9, 9));
        assert!(Version::new(8, 0, 30) > Version::new(8, 0, 4));
    }
}
