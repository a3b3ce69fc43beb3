//! MariaDB's positions: the last transaction of each domain.

use evenkeel_binlog::{Gtid, GtidSet};
use std::collections::BTreeMap;
use std::fmt;

/// The last transaction of each domain: server and number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Domains(BTreeMap<u32, (u32, u64)>);

impl Domains {
    pub(super) fn of(set: &GtidSet) -> Self {
        let lasts = set.lasts().into_iter();
        Self(
            lasts
                .filter_map(|gtid| match gtid {
                    Gtid::MariaDb {
                        domain,
                        server,
                        sequence,
                    } => Some((domain, (server, sequence))),
                    Gtid::MySql { .. } => None,
                })
                .collect(),
        )
    }

    /// Whether it has later transactions, in domains that both have: others are other sources'.
    pub(super) fn is_ahead_of(&self, other: &Self) -> bool {
        other.0.iter().any(|(domain, (_, sequence))| {
            let own = self.0.get(domain);
            own.is_some_and(|(_, own)| own > sequence)
        })
    }

    /// Returns each domain with the number of its last transaction.
    pub(super) fn sequences(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0
            .iter()
            .map(|(domain, (_, sequence))| (*domain, *sequence))
    }

    /// Returns it with the other one's domains as there.
    pub(super) fn with(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.iter().map(|(domain, last)| (*domain, *last)));
        Self(all)
    }

    /// Returns only the domains that the other one has, too.
    pub(super) fn only_of(&self, other: &Self) -> Self {
        let of_other = self
            .0
            .iter()
            .filter(|(domain, _)| other.0.contains_key(domain));
        Self(of_other.map(|(domain, last)| (*domain, *last)).collect())
    }
}

impl fmt::Display for Domains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (domain, (server, sequence))) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{domain}-{server}-{sequence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_domains_are_other_sources() {
        let of = |text: &str| Domains::of(&text.parse().unwrap());
        // After a failover, a log's state has the last of each server; the position only the last of all.
        assert!(!of("0-1-1000,0-2-2000").is_ahead_of(&of("0-2-2000")));
        assert!(of("0-2-2001").is_ahead_of(&of("0-2-2000")));
        assert!(!of("0-2-2000,1-7-9").is_ahead_of(&of("0-2-2000")));
        let with = of("0-2-2001,1-7-9").with(&of("0-2-2000"));
        assert_eq!(with.to_string(), "0-2-2000,1-7-9");
        assert_eq!(
            of("0-2-2001,1-7-9").only_of(&of("0-2-2000")).to_string(),
            "0-2-2001"
        );
    }
}
