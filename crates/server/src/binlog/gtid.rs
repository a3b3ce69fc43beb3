//! Sets of global transaction ids, as each server family writes them.

use std::collections::BTreeMap;
use std::fmt;

/// A MySQL GTID set: per server UUID the executed intervals, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MySqlGtids {
    intervals: BTreeMap<[u8; 16], Vec<(u64, u64)>>,
}

impl MySqlGtids {
    /// Adds the interval `first..=last` of one server.
    pub fn add(&mut self, server: [u8; 16], first: u64, last: u64) {
        let list = self.intervals.entry(server).or_default();
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

    /// Reads the body of a `PREVIOUS_GTIDS` event; `None` when it is not one.
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
                set.add(server, first, past.checked_sub(1)?);
            }
        }
        Some(set)
    }

    /// Returns whether nothing was executed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }
}

impl fmt::Display for MySqlGtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (server, list)) in self.intervals.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            for (i, byte) in server.iter().enumerate() {
                if matches!(i, 4 | 6 | 8 | 10) {
                    f.write_str("-")?;
                }
                write!(f, "{byte:02x}")?;
            }
            for (first, last) in list {
                if first == last {
                    write!(f, ":{first}")?;
                } else {
                    write!(f, ":{first}-{last}")?;
                }
            }
        }
        Ok(())
    }
}

/// A MariaDB GTID position: the last transaction of each domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MariaDbGtids {
    last: BTreeMap<u32, (u32, u64)>,
}

impl MariaDbGtids {
    /// Notes a transaction: later calls win within a domain.
    pub fn add(&mut self, domain: u32, server: u32, sequence: u64) {
        self.last.insert(domain, (server, sequence));
    }

    /// Reads the body of a `GTID_LIST` event; `None` when it is not one.
    ///
    /// The list keeps, per domain, the most recent transaction last.
    #[must_use]
    pub fn parse_list(body: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        let count = u32::from_le_bytes(body.get(..4)?.try_into().ok()?) & 0x0fff_ffff;
        for entry in body.get(4..)?.chunks_exact(16).take(count as usize) {
            let domain = u32::from_le_bytes(entry[..4].try_into().ok()?);
            let server = u32::from_le_bytes(entry[4..8].try_into().ok()?);
            set.add(
                domain,
                server,
                u64::from_le_bytes(entry[8..16].try_into().ok()?),
            );
        }
        Some(set)
    }

    /// Returns whether nothing was executed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }
}

impl fmt::Display for MariaDbGtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (domain, (server, sequence))) in self.last.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{domain}-{server}-{sequence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_merge_where_they_touch() {
        let mut set = MySqlGtids::default();
        let server = [0xab; 16];
        for (first, last) in [(1, 3), (7, 9), (5, 5), (4, 4), (20, 30), (25, 40)] {
            set.add(server, first, last);
        }
        assert_eq!(
            set.to_string(),
            "abababab-abab-abab-abab-abababababab:1-5:7-9:20-40"
        );
    }

    #[test]
    fn previous_gtids_read_back() {
        let mut body = 1u64.to_le_bytes().to_vec();
        body.extend([7u8; 16]);
        body.extend(2u64.to_le_bytes());
        for number in [1u64, 11, 20, 21] {
            body.extend(number.to_le_bytes());
        }
        let set = MySqlGtids::parse_previous(&body).unwrap();
        assert_eq!(
            set.to_string(),
            "07070707-0707-0707-0707-070707070707:1-10:20"
        );
        assert_eq!(MySqlGtids::parse_previous(&body[..30]), None);
    }

    #[test]
    fn last_of_a_domain_wins() {
        let mut body = 3u32.to_le_bytes().to_vec();
        for (domain, server, sequence) in [(0u32, 2u32, 5u64), (0, 1, 9), (4, 1, 1)] {
            body.extend(domain.to_le_bytes());
            body.extend(server.to_le_bytes());
            body.extend(sequence.to_le_bytes());
        }
        assert_eq!(
            MariaDbGtids::parse_list(&body).unwrap().to_string(),
            "0-1-9,4-1-1"
        );
    }
}
