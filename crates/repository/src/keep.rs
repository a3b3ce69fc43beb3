//! Which generations rules keep, and why.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};

/// How many generations to keep, by number and by calendar. What no rule keeps is forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct KeepRules {
    /// The newest so many.
    pub last: u32,
    /// The newest of each hour that has one, for so many hours.
    pub hourly: u32,
    /// Likewise by day.
    pub daily: u32,
    /// Likewise by ISO week.
    pub weekly: u32,
    /// Likewise by month.
    pub monthly: u32,
    /// Likewise by year.
    pub yearly: u32,
    /// These in any case.
    pub these: BTreeSet<u32>,
    /// Where hours, days and weeks begin.
    pub time_zone: TimeZone,
}

impl Default for KeepRules {
    fn default() -> Self {
        Self {
            last: 0,
            hourly: 0,
            daily: 0,
            weekly: 0,
            monthly: 0,
            yearly: 0,
            these: BTreeSet::new(),
            time_zone: TimeZone::UTC,
        }
    }
}

/// Returns why each generation is kept; one without a reason is not. `generations` are number and
/// creation time; those whose time is not known are always kept.
pub(crate) fn reasons(
    rules: &KeepRules,
    generations: &[(u32, Option<Timestamp>)],
) -> BTreeMap<u32, Vec<String>> {
    let mut kept: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut newest_first = generations.to_vec();
    // By number, never by time: clocks jump.
    newest_first.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    for (number, _) in newest_first.iter().take(rules.last as usize) {
        kept.entry(*number).or_default().push("last".to_owned());
    }
    for (number, created) in &newest_first {
        if rules.these.contains(number) {
            kept.entry(*number).or_default().push("chosen".to_owned());
        }
        if created.is_none() {
            let why = "its manifest cannot be read".to_owned();
            kept.entry(*number).or_default().push(why);
        }
    }
    for (name, count, format) in [
        ("hourly", rules.hourly, "%Y-%m-%d %H"),
        ("daily", rules.daily, "%Y-%m-%d"),
        ("weekly", rules.weekly, "%G-W%V"),
        ("monthly", rules.monthly, "%Y-%m"),
        ("yearly", rules.yearly, "%Y"),
    ] {
        let mut periods = BTreeSet::new();
        for (number, created) in &newest_first {
            let Some(created) = created else { continue };
            if periods.len() == count as usize {
                break;
            }
            let local = created.to_zoned(rules.time_zone.clone());
            let period = local.strftime(format).to_string();
            if periods.insert(period) {
                kept.entry(*number).or_default().push(name.to_owned());
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_newest_of_each_period_is_kept() {
        let all = [
            (1, at("2026-01-01T01:00:00Z")),
            (2, at("2026-01-01T23:00:00Z")),
            (3, at("2026-01-02T10:00:00Z")),
            (4, at("2026-02-01T10:00:00Z")),
            (5, None),
        ];
        let rules = KeepRules {
            daily: 3,
            monthly: 2,
            ..KeepRules::default()
        };
        let kept = reasons(&rules, &all);
        assert_eq!(kept.keys().copied().collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(kept[&3], ["daily", "monthly"]);
        assert_eq!(kept[&2], ["daily"]);
    }

    #[test]
    fn numbers_decide_when_clocks_go_backward_or_stand_still() {
        let same = at("2026-01-01T01:00:00Z");
        let all = [(7, at("2026-05-01T00:00:00Z")), (8, same), (9, same)];
        let rules = KeepRules {
            last: 1,
            ..KeepRules::default()
        };
        assert!(reasons(&rules, &all).keys().eq([&9]));
        let rules = KeepRules {
            yearly: 5,
            ..KeepRules::default()
        };
        assert!(reasons(&rules, &all).keys().eq([&9]));
    }

    #[test]
    fn no_rule_keeps_nothing() {
        let all = [(1, at("2026-01-01T01:00:00Z"))];
        assert!(reasons(&KeepRules::default(), &all).is_empty());
    }
}
