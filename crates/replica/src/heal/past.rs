//! What was done before, for rules: read from the journal, so that it counts whichever process did it.

use super::case::Interrupted;
use super::journal::{HealEvent, HealOutcome, HealRecord};
use jiff::Timestamp;
use std::collections::BTreeSet;

const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;

/// What was done before, for rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    begun: Vec<PastRepair>,
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
}

impl Past {
    /// Reads it from records, as of now.
    pub(super) fn of(records: &[HealRecord], now: Timestamp) -> Self {
        let mut begun: Vec<PastRepair> = Vec::new();
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
                }),
                HealEvent::Rows { id, tables, .. } => {
                    for repair in begun.iter_mut().filter(|repair| repair.id == *id) {
                        repair.tables.clone_from(tables);
                    }
                }
                HealEvent::Ended { id, outcome, .. } => {
                    for repair in begun.iter_mut().filter(|repair| repair.id == *id) {
                        repair.outcome = Some(*outcome);
                    }
                }
                _ => {}
            }
        }
        Self { begun }
    }

    /// Returns what was done to a replica, and whether a repair of its channel was interrupted.
    pub(super) fn for_replica(&self, key: &str, channel: &str) -> (u32, Option<Interrupted>) {
        let own = || self.begun.iter().filter(|repair| repair.key == key);
        let is_recent = |repair: &&PastRepair| repair.ago_s < HOUR_S;
        let last = own().rfind(|repair| repair.channel == channel);
        let interrupted = last.filter(|repair| repair.outcome.is_none());
        // What comes next is the rest of that one.
        let is_rest = |repair: &&PastRepair| interrupted.is_some_and(|one| one.id == repair.id);
        let recent = own().filter(is_recent).filter(|one| !is_rest(one)).count();
        (
            u32::try_from(recent).unwrap_or(u32::MAX),
            interrupted.map(|repair| Interrupted {
                id: repair.id.clone(),
                ago_s: repair.ago_s,
            }),
        )
    }

    /// Returns the tables of a replica with rows that were repaired within a day.
    pub(super) fn tables_of_today(&self, key: &str) -> BTreeSet<String> {
        let was_done = |repair: &PastRepair| {
            repair
                .outcome
                .is_some_and(|outcome| outcome != HealOutcome::Failed)
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
            executed: None,
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
        let (count, interrupted) = past.for_replica("key", "");
        (count, interrupted.map(|one| one.id))
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
        assert_eq!(past.for_replica("another", ""), (0, None));
    }

    #[test]
    fn the_rest_of_an_interrupted_repair_is_no_other_repair() {
        let mut records = vec![begun(10_000, "a", "")];
        assert_eq!(count(&records, 10_010), (0, Some("a".to_owned())));
        records.push(begun(10_020, "b", ""));
        assert_eq!(count(&records, 10_030), (1, Some("b".to_owned())));
        records.push(ended(10_040, "b", HealOutcome::Repaired));
        assert_eq!(count(&records, 10_050), (2, None));
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
        assert_eq!(today(10), BTreeSet::from(["shop.a".to_owned()]));
        assert_eq!(today(100_000), BTreeSet::new());
    }
}
