//! One global transaction id.

use evenkeel_op::Error;
use std::fmt;
use std::str::FromStr;

/// A transaction's id, as its server family writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gtid {
    /// MySQL: `3e11fa47-71ca-11e1-9e33-c80aa9429562:23`.
    MySql {
        /// The server that it was first written on.
        server: [u8; 16],
        /// Its number there.
        number: u64,
    },
    /// MariaDB: `0-1-23`.
    MariaDb {
        /// Replication domain.
        domain: u32,
        /// The server that it was first written on.
        server: u32,
        /// Its number in the domain.
        sequence: u64,
    },
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql { server, number } => {
                for (at, byte) in server.iter().enumerate() {
                    let dash = if matches!(at, 4 | 6 | 8 | 10) {
                        "-"
                    } else {
                        ""
                    };
                    write!(f, "{dash}{byte:02x}")?;
                }
                write!(f, ":{number}")
            }
            Self::MariaDb {
                domain,
                server,
                sequence,
            } => write!(f, "{domain}-{server}-{sequence}"),
        }
    }
}

impl FromStr for Gtid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = match text.split_once(':') {
            Some((server, number)) => parse_mysql(server, number),
            None => parse_mariadb(text),
        };
        parsed.ok_or_else(|| {
            Error::usage(format!("'{text}' is not the GTID of one transaction"))
                .hint("MySQL: 3e11fa47-71ca-11e1-9e33-c80aa9429562:23, MariaDB: 0-1-23")
        })
    }
}

fn parse_mysql(server: &str, number: &str) -> Option<Gtid> {
    let digits: Vec<u8> = server
        .bytes()
        .filter(|byte| *byte != b'-')
        .map(|byte| {
            char::from(byte)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        })
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|two| two[0] << 4 | two[1])
        .collect();
    let dashes = server.len() == 36 && digits.len() == 32;
    Some(Gtid::MySql {
        server: bytes.try_into().ok().filter(|_| dashes)?,
        number: number.parse().ok().filter(|number| *number > 0)?,
    })
}

fn parse_mariadb(text: &str) -> Option<Gtid> {
    let mut parts = text.split('-');
    let gtid = Gtid::MariaDb {
        domain: parts.next()?.parse().ok()?,
        server: parts.next()?.parse().ok()?,
        sequence: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(gtid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["3e11fa47-71ca-11e1-9e33-c80aa9429562:23", "0-1-23"] {
            assert_eq!(text.parse::<Gtid>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn sets_and_nonsense_are_no_gtid() {
        for text in [
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23",
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:0",
            "3e11fa47:1",
            "0-1-2,1-1-3",
            "0-1",
            "",
            "é-1-1",
        ] {
            assert!(text.parse::<Gtid>().is_err(), "{text}");
        }
    }
}
