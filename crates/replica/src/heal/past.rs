//! What was done before, for rules: read from the journal, so that it counts whichever process did it.

use super::case::Interrupted;
use super::journal::{HealEvent, HealOutcome, HealRecord};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;

/// What was done before, for rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    /// When that was, in seconds since 1970.
    pub(super) read_s: i64,
    begun: Vec<PastRepair>,
    /// How the rows of a channel differ since a repair, by server and channel.
    differs: BTreeMap<(String, String), String>,
}

#[derive(Debug, Clone)]
struct PastRepair {
    id: String,
    key: String,
    channel: String,
    ago_s: u64,
    /// How it ended; `None` if it was interrupted.
    outcome: Option<HealOutcome>,
    tables: Vec<String>,
    /// A thread was, or was about to be, stopped, and was not seen running since.
    has_stopped: bool,
    /// Where it was.
    place: AppliedPlace,
}

/// How far a channel has applied, as a repair writes it down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AppliedPlace {
    /// By the source's binary log.
    pub(super) executed: Option<String>,
    /// By GTIDs; empty where there are none.
    pub(super) gtid: String,
    /// Whether the channel goes by these.
    pub(super) by_gtid: bool,
}

impl AppliedPlace {
    /// Whether the channel has applied nothing between the two. By GTID, a place by file is lost where relay logs are
    /// deleted, and GTIDs come also from other channels; by file, transactions may have none.
    fn is_same(&self, now: &Self) -> bool {
        let same_file = self.executed.is_some() && self.executed == now.executed;
        same_file || now.by_gtid && !self.gtid.is_empty() && self.gtid == now.gtid
    }
}

/// A statement after which a thread stands, at once or soon.
fn stops(statement: &str) -> bool {
    statement.starts_with("STOP ") || statement.contains(" UNTIL ")
}

/// What was done to a channel before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChannelPast {
    /// Repairs within the last hour, of any channel, without the rest of one that was interrupted.
    pub(super) last_hour: u32,
    /// The last one, if it was interrupted, has stopped a thread, and nothing has changed since.
    pub(super) interrupted: Option<Interrupted>,
}

impl Past {
    /// Reads it from records, as of now.
    pub(super) fn of(records: &[HealRecord], now: Timestamp) -> Self {
        let mut begun: Vec<PastRepair> = Vec::new();
        let mut differs = BTreeMap::new();
        for record in records {
            let ago = now.as_second().saturating_sub(record.time.as_second());
            match &record.what {
                HealEvent::Begun(repair) => begun.push(PastRepair {
                    id: repair.id.clone(),
                    key: repair.key.clone(),
                    channel: repair.channel.clone(),
                    // A clock that was set back makes nothing older.
                    ago_s: u64::try_from(ago).unwrap_or(0),
                    outcome: None,
                    tables: Vec::new(),
                    has_stopped: false,
                    place: AppliedPlace {
                        executed: repair.executed.clone(),
                        gtid: repair.gtid.clone(),
                        by_gtid: false,
                    },
                }),
                HealEvent::Step { id, does, .. } => {
                    for repair in begun.iter_mut().filter(|repair| repair.id == *id) {
                        repair.has_stopped |= stops(does);
                    }
                }
                HealEvent::Running { id } => {
                    for repair in begun.iter_mut().filter(|repair| repair.id == *id) {
                        repair.has_stopped = false;
                    }
                }
                HealEvent::Equal { key, channel } => {
                    differs.remove(&(key.clone(), channel.clone()));
                }
                HealEvent::Rows { id, tables, .. } => {
                    for repair in begun.iter_mut().filter(|repair| repair.id == *id) {
                        repair.tables.clone_from(tables);
                    }
                }
                HealEvent::Ended { id, outcome, why } => {
                    for repair in begun.iter_mut().filter(|repair| repair.id == *id) {
                        repair.outcome = Some(*outcome);
                        let place = (repair.key.clone(), repair.channel.clone());
                        match outcome {
                            HealOutcome::Differs => drop(differs.insert(place, why.clone())),
                            HealOutcome::Repaired => drop(differs.remove(&place)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Self {
            read_s: now.as_second(),
            begun,
            differs,
        }
    }

    /// Returns how the rows of a channel differ since a repair.
    pub(super) fn differs(&self, key: &str, channel: &str) -> Option<&str> {
        let place = (key.to_owned(), channel.to_owned());
        self.differs.get(&place).map(String::as_str)
    }

    /// Returns a repair that was interrupted while a thread of a channel stood.
    pub(super) fn standing(&self, key: &str, channel: &str) -> Option<&str> {
        let mut own = self.begun.iter();
        let last = own.rfind(|one| one.key == key && one.channel == channel)?;
        (last.outcome.is_none() && last.has_stopped).then_some(last.id.as_str())
    }

    /// Returns what was done to a replica, whose channel is at `now`.
    pub(super) fn for_replica(&self, key: &str, channel: &str, now: &AppliedPlace) -> ChannelPast {
        let own = || self.begun.iter().filter(|repair| repair.key == key);
        let is_recent = |repair: &&PastRepair| repair.ago_s < HOUR_S;
        let last = own().rfind(|repair| repair.channel == channel);
        let interrupted = last.filter(|repair| repair.outcome.is_none());
        // What comes next is the rest of that one.
        let is_rest = |repair: &&PastRepair| interrupted.is_some_and(|one| one.id == repair.id);
        let recent = own().filter(is_recent).filter(|one| !is_rest(one)).count();
        let left =
            interrupted.filter(|one| one.has_stopped && is_recent(one) && one.place.is_same(now));
        ChannelPast {
            last_hour: u32::try_from(recent).unwrap_or(u32::MAX),
            interrupted: left.map(|repair| Interrupted {
                id: repair.id.clone(),
                ago_s: repair.ago_s,
            }),
        }
    }

    /// Returns the tables of a replica with rows that were repaired within a day.
    pub(super) fn tables_of_today(&self, key: &str) -> BTreeSet<String> {
        let was_done = |repair: &PastRepair| {
            // One without an outcome may have been committed.
            repair
                .outcome
                .is_none_or(|outcome| outcome != HealOutcome::Failed)
        };
        let is_today =
            |repair: &&PastRepair| repair.key == key && repair.ago_s < DAY_S && was_done(repair);
        let own = self.begun.iter().filter(is_today);
        own.flat_map(|repair| repair.tables.iter().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::HealClass;
    use super::super::journal::BegunRepair;
    use super::*;

    fn at(second: i64, what: HealEvent) -> HealRecord {
        let time = Timestamp::from_second(second).unwrap();
        HealRecord { time, what }
    }

    fn at_one() -> AppliedPlace {
        AppliedPlace {
            executed: Some("binlog.000001:4".to_owned()),
            ..AppliedPlace::default()
        }
    }

    fn step(second: i64, id: &str, does: &str) -> HealRecord {
        let (id, on, does) = (id.to_owned(), "db2".to_owned(), does.to_owned());
        at(second, HealEvent::Step { id, on, does })
    }

    fn begun(second: i64, id: &str, channel: &str) -> HealRecord {
        let text = |text: &str| text.to_owned();
        let begun = BegunRepair {
            id: text(id),
            user: 0,
            server: text("db2"),
            key: text("key"),
            channel: text(channel),
            failure: text("lock-wait"),
            class: HealClass::Restart,
            evidence: Vec::new(),
            executed: at_one().executed,
            gtid: String::new(),
            steps: Vec::new(),
        };
        at(second, HealEvent::Begun(Box::new(begun)))
    }

    fn ended(second: i64, id: &str, outcome: HealOutcome) -> HealRecord {
        let (id, why) = (id.to_owned(), String::new());
        at(second, HealEvent::Ended { id, outcome, why })
    }

    fn count(records: &[HealRecord], now: i64) -> (u32, Option<String>) {
        let past = Past::of(records, Timestamp::from_second(now).unwrap());
        let found = past.for_replica("key", "", &at_one());
        (found.last_hour, found.interrupted.map(|one| one.id))
    }

    #[test]
    fn repairs_count_for_an_hour() {
        let records = [
            begun(10_000, "a", ""),
            ended(10_010, "a", HealOutcome::Repaired),
            begun(10_100, "b", "other"),
            ended(10_110, "b", HealOutcome::Failed),
        ];
        assert_eq!(count(&records, 10_200), (2, None));
        assert_eq!(count(&records, 13_650), (1, None));
        assert_eq!(count(&records, 13_700), (0, None));
        // A clock that was set back makes nothing older.
        assert_eq!(count(&records, 9_000), (2, None));
        let past = Past::of(&records, Timestamp::from_second(10_200).unwrap());
        let other = past.for_replica("another", "", &at_one());
        assert_eq!(other, ChannelPast::default());
    }

    #[test]
    fn the_rest_of_an_interrupted_repair_is_no_other_repair() {
        let mut records = vec![begun(10_000, "a", ""), step(10_001, "a", "STOP SLAVE")];
        assert_eq!(count(&records, 10_010), (0, Some("a".to_owned())));
        records.push(begun(10_020, "b", ""));
        records.push(step(10_021, "b", "START SLAVE SQL_THREAD UNTIL X"));
        assert_eq!(count(&records, 10_030), (1, Some("b".to_owned())));
        records.push(ended(10_040, "b", HealOutcome::Repaired));
        assert_eq!(count(&records, 10_050), (2, None));
    }

    #[test]
    fn a_stop_is_a_repairs_for_an_hour_and_until_something_has_changed() {
        let mut records = vec![begun(10_000, "a", "")];
        assert_eq!(count(&records, 10_010), (0, None), "it stopped nothing");
        records.push(step(10_001, "a", "START SLAVE SQL_THREAD"));
        assert_eq!(count(&records, 10_010), (0, None), "it stopped nothing");
        records.push(step(10_002, "a", "STOP SLAVE"));
        assert_eq!(count(&records, 13_599), (0, Some("a".to_owned())));
        assert_eq!(count(&records, 13_600), (0, None), "it is too old");
        let past = Past::of(&records, Timestamp::from_second(10_010).unwrap());
        let elsewhere = AppliedPlace {
            executed: Some("binlog.000001:5".to_owned()),
            ..AppliedPlace::default()
        };
        for now in [elsewhere, AppliedPlace::default()] {
            assert_eq!(past.for_replica("key", "", &now).interrupted, None);
        }
        assert_eq!(past.standing("key", ""), Some("a"));
        let id = "a".to_owned();
        records.push(at(10_003, HealEvent::Running { id }));
        assert_eq!(count(&records, 10_010), (0, None), "it was seen running");
    }

    #[test]
    fn rows_differ_until_they_are_repaired_or_compared_again() {
        let equal = HealEvent::Equal {
            key: "key".to_owned(),
            channel: String::new(),
        };
        let mut records = vec![
            begun(1, "a", ""),
            ended(2, "a", HealOutcome::Differs),
            begun(3, "b", ""),
            ended(4, "b", HealOutcome::Failed),
        ];
        let differs = |records: &[HealRecord]| {
            let past = Past::of(records, Timestamp::from_second(10).unwrap());
            past.differs("key", "").is_some()
        };
        assert!(differs(&records));
        for end in [at(5, equal), ended(5, "b", HealOutcome::Repaired)] {
            records.push(end);
            assert!(!differs(&records));
            records.pop();
        }
    }

    #[test]
    fn tables_count_for_a_day_once_they_were_repaired() {
        let rows = |second, id: &str, table: &str| {
            let event = HealEvent::Rows {
                id: id.to_owned(),
                plan: String::new(),
                hash: String::new(),
                tables: vec![table.to_owned()],
            };
            at(second, event)
        };
        let records = [
            begun(1, "a", ""),
            rows(2, "a", "shop.a"),
            ended(3, "a", HealOutcome::Repaired),
            begun(4, "b", ""),
            rows(5, "b", "shop.b"),
            ended(6, "b", HealOutcome::Failed),
            begun(7, "c", ""),
            rows(8, "c", "shop.c"),
        ];
        let today = |now: i64| {
            let past = Past::of(&records, Timestamp::from_second(now).unwrap());
            past.tables_of_today("key")
        };
        let both = ["shop.a", "shop.c"].map(str::to_owned);
        assert_eq!(today(10), BTreeSet::from(both));
        assert_eq!(today(100_000), BTreeSet::new());
    }
}
