//! Sets of transactions: what a server has executed, what an archive holds.

use crate::Gtid;
use evenkeel_op::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A set of transactions of either family.
///
/// MySQL's are exact. MariaDB says, for each server in a domain, the last of its transactions: it has
/// that one and what the server wrote before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidSet {
    /// By server, intervals with both ends included: sorted, apart from each other.
    mysql: BTreeMap<[u8; 16], Vec<(u64, u64)>>,
    mariadb: BTreeMap<u32, Domain>,
}

/// A domain: the last number of each server, and which server wrote last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Domain {
    servers: BTreeMap<u32, u64>,
    last: u32,
}

impl GtidSet {
    /// Adds one transaction.
    pub fn add(&mut self, gtid: &Gtid) {
        match *gtid {
            Gtid::MySql { server, number } => self.add_range(server, number, number),
            Gtid::MariaDb {
                domain,
                server,
                sequence,
            } => {
                let domain = self.mariadb.entry(domain).or_default();
                let had = domain.servers.entry(server).or_default();
                *had = sequence.max(*had);
                domain.last = server;
            }
        }
    }

    fn add_range(&mut self, server: [u8; 16], first: u64, last: u64) {
        let list = self.mysql.entry(server).or_default();
        let at = list.partition_point(|&(_, end)| end.saturating_add(1) < first);
        let (mut low, mut high) = (first, last);
        let mut until = at;
        // Swallow every interval that touches the new one.
        while until < list.len() && list[until].0 <= high.saturating_add(1) {
            low = low.min(list[until].0);
            high = high.max(list[until].1);
            until += 1;
        }
        list.splice(at..until, [(low, high)]);
    }

    /// Returns whether a transaction is among them.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        match gtid {
            Gtid::MySql { server, number } => self.has_range(server, *number, *number),
            Gtid::MariaDb {
                domain,
                server,
                sequence,
            } => self
                .mariadb
                .get(domain)
                .and_then(|domain| domain.servers.get(server))
                .is_some_and(|last| sequence <= last),
        }
    }

    fn has_range(&self, server: &[u8; 16], first: u64, last: u64) -> bool {
        let list = self.mysql.get(server).map_or(&[][..], Vec::as_slice);
        list.iter().any(|&(low, high)| low <= first && last <= high)
    }

    /// Returns whether every transaction of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, of: &Self) -> bool {
        self.without(of).is_empty()
    }

    /// Returns what is in this set and not in the other. Of MariaDB's, where the other has a part of
    /// what a server wrote, that server's last transaction stands for the rest.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        for (server, list) in &self.mysql {
            let taken = other.mysql.get(server).map_or(&[][..], Vec::as_slice);
            for &(first, last) in list {
                let mut from = first;
                for &(low, high) in taken.iter().filter(|one| one.1 >= first && one.0 <= last) {
                    if low > from {
                        rest.add_range(*server, from, low - 1);
                    }
                    from = from.max(high.saturating_add(1));
                }
                if from <= last {
                    rest.add_range(*server, from, last);
                }
            }
        }
        for gtid in self.mariadb_all() {
            if !other.contains(&gtid) {
                rest.add(&gtid);
            }
        }
        rest
    }

    /// Returns whether both have transactions that were first written on the same server.
    #[must_use]
    pub fn is_related(&self, other: &Self) -> bool {
        let mysql = self.mysql.keys().any(|key| other.mysql.contains_key(key));
        let mariadb = self.mariadb.iter().any(|(id, domain)| {
            let theirs = other.mariadb.get(id);
            let mut servers = domain.servers.keys();
            theirs.is_some_and(|it| servers.any(|server| it.servers.contains_key(server)))
        });
        mysql || mariadb
    }

    /// Returns MariaDB's position: the last transaction of each domain.
    #[must_use]
    pub fn lasts(&self) -> Vec<Gtid> {
        let of = |(domain, it): (&u32, &Domain)| {
            Some(Gtid::MariaDb {
                domain: *domain,
                server: it.last,
                sequence: *it.servers.get(&it.last)?,
            })
        };
        self.mariadb.iter().filter_map(of).collect()
    }

    /// Every server's last, of each domain in turn, the last of the domain behind the others.
    fn mariadb_all(&self) -> Vec<Gtid> {
        let mut all = Vec::new();
        for (domain, it) in &self.mariadb {
            let mut servers: Vec<(&u32, &u64)> = it.servers.iter().collect();
            servers.sort_by_key(|(server, _)| **server == it.last);
            all.extend(servers.iter().map(|(server, sequence)| Gtid::MariaDb {
                domain: *domain,
                server: **server,
                sequence: **sequence,
            }));
        }
        all
    }

    /// Returns whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mysql.is_empty() && self.mariadb.is_empty()
    }

    /// Reads the body of a `PREVIOUS_GTIDS` event; `None` when it is not one, or has GTIDs with tags.
    #[must_use]
    pub fn parse_previous(body: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        let mut at = 0;
        let number = |at: &mut usize| -> Option<u64> {
            let bytes = body.get(*at..*at + 8)?;
            *at += 8;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let servers = number(&mut at)?;
        for _ in 0..servers {
            let server: [u8; 16] = body.get(at..at + 16)?.try_into().ok()?;
            at += 16;
            for _ in 0..number(&mut at)? {
                let (first, past) = (number(&mut at)?, number(&mut at)?);
                set.add_range(
                    server,
                    first,
                    past.checked_sub(1).filter(|it| *it >= first)?,
                );
            }
        }
        Some(set)
    }

    /// Reads the body of a `GTID_LIST` event, in which the last of a domain comes last; `None` when it
    /// is not one.
    #[must_use]
    pub fn parse_list(body: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        let count = u32::from_le_bytes(*body.first_chunk()?) & 0x0fff_ffff;
        let mut entries = body.get(4..)?.chunks_exact(16);
        for _ in 0..count {
            let entry = entries.next()?;
            set.add(&Gtid::MariaDb {
                domain: u32::from_le_bytes(*entry.first_chunk()?),
                server: u32::from_le_bytes(*entry.get(4..)?.first_chunk()?),
                sequence: u64::from_le_bytes(*entry.get(8..)?.first_chunk()?),
            });
        }
        Some(set)
    }
}

/// As the servers write them: `uuid:1-5:7,uuid:1` (`gtid_executed`), `0-2-7,0-1-9`
/// (`gtid_binlog_state`).
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (server, list) in &self.mysql {
            let first = Gtid::MySql {
                server: *server,
                number: 0,
            };
            let name = first.to_string();
            write!(f, "{comma}{}", name.trim_end_matches(":0"))?;
            for (low, high) in list {
                match low == high {
                    true => write!(f, ":{low}")?,
                    false => write!(f, ":{low}-{high}")?,
                }
            }
            comma = ",";
        }
        for gtid in self.mariadb_all() {
            write!(f, "{comma}{gtid}")?;
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for GtidSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut set = Self::default();
        // Servers break long lines.
        let text: String = text.split_whitespace().collect();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((server, ranges)) = part.split_once(':') else {
                set.add(&part.parse()?);
                continue;
            };
            for range in ranges.split(':') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let first: Gtid = format!("{server}:{first}").parse()?;
                let last: Gtid = format!("{server}:{last}").parse()?;
                if let (Gtid::MySql { server, number }, Gtid::MySql { number: last, .. }) =
                    (first, last)
                    && number <= last
                {
                    set.add_range(server, number, last);
                } else {
                    return Err(Error::usage(format!("'{part}' is not a set of GTIDs")));
                }
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const TWO: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in [
            "",
            &format!("{ONE}:1-5:7"),
            &format!("{ONE}:1,{TWO}:3-9"),
            "0-1-9",
            "0-2-7,0-1-9,3-1-4",
            "0-1-9,0-2-7",
        ] {
            assert_eq!(set(text).to_string(), text);
        }
        assert!(format!("{ONE}:5-1").parse::<GtidSet>().is_err());
        assert!(format!("{ONE}:tag:1").parse::<GtidSet>().is_err());
    }

    #[test]
    fn mysql_sets_are_subtracted() {
        let all = set(&format!("{ONE}:1-10,{TWO}:5"));
        let some = set(&format!("{ONE}:2-3:5-7:10-12"));
        assert_eq!(
            all.without(&some).to_string(),
            format!("{ONE}:1:4:8-9,{TWO}:5")
        );
        assert!(set(&format!("{ONE}:4")).is_subset(&all));
        assert!(!some.is_subset(&all) && !all.is_subset(&some));
        assert!(all.is_related(&some) && !set(&format!("{TWO}:1")).is_related(&some));
    }

    #[test]
    fn mariadb_sets_are_compared_by_server() {
        let all = set("0-2-7,0-1-9,3-1-4");
        assert!(set("0-1-9").is_subset(&all) && set("0-2-6").is_subset(&all));
        assert_eq!(set("0-1-10,0-2-7").without(&all).to_string(), "0-1-10");
        assert!(!set("1-1-1").is_subset(&all) && !set("1-1-1").is_related(&all));
        let lasts: Vec<String> = all.lasts().iter().map(ToString::to_string).collect();
        assert_eq!(lasts, ["0-1-9", "3-1-4"]);
    }

    #[test]
    fn bodies_of_events_are_read() {
        let mut body = 1u64.to_le_bytes().to_vec();
        body.extend([7u8; 16]);
        body.extend(2u64.to_le_bytes());
        for number in [1u64, 11, 20, 21] {
            body.extend(number.to_le_bytes());
        }
        let text = "07070707-0707-0707-0707-070707070707:1-10:20";
        assert_eq!(GtidSet::parse_previous(&body).unwrap().to_string(), text);
        assert_eq!(GtidSet::parse_previous(&body[..30]), None);

        let mut body = 3u32.to_le_bytes().to_vec();
        for (domain, server, sequence) in [(0u32, 2u32, 5u64), (0, 1, 9), (4, 1, 1)] {
            body.extend(domain.to_le_bytes());
            body.extend(server.to_le_bytes());
            body.extend(sequence.to_le_bytes());
        }
        let text = "0-2-5,0-1-9,4-1-1";
        assert_eq!(GtidSet::parse_list(&body).unwrap().to_string(), text);
        assert_eq!(GtidSet::parse_list(&body[..30]), None);
    }
}
