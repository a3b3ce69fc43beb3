//! How far a replica is behind: by the server's word, by a heartbeat, by bytes, by transactions.

use crate::survey::{Facts, LoggedFile};
use evenkeel_binlog::{Gtid, GtidSet};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::replication::{Channel, Position};
use serde::Serialize;

/// How far behind one channel is; absent where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Lag {
    /// Seconds, as the server says: 0 also while its source is frozen, and while a long transaction runs there.
    pub said_s: Option<u64>,
    /// Age in seconds of the newest heartbeat: what it says includes the time between two heartbeats.
    pub heartbeat_s: Option<f64>,
    /// Bytes that the source logged and the replica has not fetched.
    pub to_fetch_bytes: Option<u64>,
    /// Bytes that the replica fetched and has not applied.
    pub to_apply_bytes: Option<u64>,
    /// Transactions of the source that are not applied, where both have GTIDs.
    pub transactions: Option<u64>,
}

impl Lag {
    /// Compares a replica with its source, if that was asked too.
    #[must_use]
    pub fn of(replica: &Facts, channel: &Channel, source: Option<&Facts>) -> Self {
        let files = source.map(|facts| facts.log_files.as_slice());
        let between = |from: Option<&Position>, to: Option<&Position>| {
            bytes_between(from?, to?, files.unwrap_or_default())
        };
        let end = source.and_then(|facts| facts.log_end.as_ref());
        Self {
            said_s: channel.lag_s,
            heartbeat_s: replica.heartbeat_s,
            to_fetch_bytes: between(channel.received.as_ref(), end),
            to_apply_bytes: between(channel.executed.as_ref(), channel.received.as_ref()),
            transactions: source.and_then(|source| transactions(replica, source)),
        }
    }
}

/// Counts the bytes from one position to another; 0 where the first is ahead, as it may be when it was asked for later.
/// `None` where a file between them is not known.
fn bytes_between(from: &Position, to: &Position, files: &[LoggedFile]) -> Option<u64> {
    if from.file == to.file {
        return Some(to.position.saturating_sub(from.position));
    }
    let at = |name: &str| files.iter().position(|file| file.name == name);
    let (first, last) = (at(&from.file)?, at(&to.file)?);
    if first > last {
        return Some(0);
    }
    let whole: u64 = files[first..last].iter().map(|file| file.bytes).sum();
    Some((whole + to.position).saturating_sub(from.position))
}

fn transactions(replica: &Facts, source: &Facts) -> Option<u64> {
    if replica.flavour() != source.flavour() || source.logged.is_empty() {
        return None;
    }
    match source.flavour() {
        Flavour::MySql => Some(count(&source.logged.without(&replica.applied))),
        Flavour::MariaDb => {
            let number = |set: &GtidSet, of: u32| {
                set.lasts().into_iter().find_map(|gtid| match gtid {
                    Gtid::MariaDb {
                        domain, sequence, ..
                    } if domain == of => Some(sequence),
                    _ => None,
                })
            };
            let behind = source.logged.lasts().into_iter().map(|gtid| match gtid {
                Gtid::MariaDb {
                    domain, sequence, ..
                } => sequence.saturating_sub(number(&replica.applied, domain).unwrap_or(0)),
                Gtid::MySql { .. } => 0,
            });
            Some(behind.sum())
        }
    }
}

/// Counts MySQL's transactions.
#[must_use]
pub fn count(set: &GtidSet) -> u64 {
    intervals(set)
        .map(|(_, first, last)| last - first + 1)
        .sum()
}

/// Returns MySQL's intervals, each with its server's UUID and both ends.
pub fn intervals(set: &GtidSet) -> impl Iterator<Item = (String, u64, u64)> {
    let text = set.to_string();
    let mut found = Vec::new();
    for part in text.split(',') {
        let mut words = part.trim().split(':');
        let Some(uuid) = words.next() else { continue };
        for word in words {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
                found.push((uuid.to_owned(), first, last));
            }
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, position: u64) -> Position {
        let file = file.to_owned();
        Position { file, position }
    }

    #[test]
    fn bytes_are_counted_over_files() {
        let files = ["b.1", "b.2", "b.3"].map(|name| LoggedFile {
            name: name.to_owned(),
            bytes: 1000,
        });
        let count = |from: Position, to: Position| bytes_between(&from, &to, &files);
        assert_eq!(count(at("b.1", 400), at("b.1", 900)), Some(500));
        assert_eq!(count(at("b.1", 400), at("b.3", 100)), Some(1700));
        assert_eq!(count(at("b.3", 100), at("b.1", 400)), Some(0));
        assert_eq!(count(at("b.2", 500), at("b.2", 400)), Some(0));
        assert_eq!(count(at("b.0", 4), at("b.1", 400)), None, "purged");
    }

    #[test]
    fn mysqls_transactions_are_counted() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set = |text: &str| format!("{uuid}:{text}").parse::<GtidSet>().unwrap();
        assert_eq!(count(&set("1-20:25").without(&set("1-15:17-19"))), 3);
        assert_eq!(count(&GtidSet::default()), 0);
    }
}
