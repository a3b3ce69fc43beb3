//! Are rates what others did between two samples, whatever the counters do?

use evenkeel_live::rates::{Change, Counts, Own, Sample, between};
use evenkeel_live::status::{Status, of_statements};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// A server's counters: its uptime, its statements, and how many of each kind.
fn status(pairs: &[(&str, u64)]) -> Status {
    let texts: Vec<(&str, String)> = pairs.iter().map(|(n, v)| (*n, v.to_string())).collect();
    let pairs = texts.iter().map(|(name, value)| (*name, value.as_str()));
    Status::of_pairs(&of_statements(), pairs)
}

fn sample(start: Instant, at_ms: u64, status: Status, own: Own) -> Sample {
    Sample {
        at: start + Duration::from_millis(at_ms),
        connection: 7,
        status,
        own,
        details: None,
    }
}

fn full(uptime: u64, queries: u64, each: u64) -> Status {
    let mut pairs = vec![("Uptime", uptime), ("Questions", queries)];
    pairs.extend(of_statements().into_iter().skip(2).map(|name| (name, each)));
    status(&pairs)
}

fn counted(change: Change) -> Counts {
    match change {
        Change::Counted(counts) => counts,
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// However an interval is cut, its parts add up to it.
    #[test]
    fn parts_add_up(steps in prop::collection::vec((1u64..5_000, 0u64..1 << 40, 0u64..50), 1..20)) {
        let start = Instant::now();
        let (mut at, mut queries, mut own) = (0, 5, Own::default());
        let mut samples = vec![sample(start, at, full(100, queries, queries), own)];
        for (ms, others, ours) in steps {
            at += ms;
            queries += others + ours;
            own = Own { statements: own.statements + ours, selects: own.selects };
            samples.push(sample(start, at, full(100 + at / 1000, queries, queries), own));
        }
        let parts = samples.windows(2).map(|two| counted(between(&two[0], &two[1])));
        let whole = counted(between(&samples[0], samples.last().unwrap()));
        let parts: Vec<Counts> = parts.collect();
        prop_assert_eq!(parts.iter().map(|p| p.queries.unwrap()).sum::<u64>(), whole.queries.unwrap());
        prop_assert_eq!(parts.iter().map(|p| p.inserts.unwrap()).sum::<u64>(), whole.inserts.unwrap());
        let seconds: f64 = parts.iter().map(|p| p.seconds).sum();
        prop_assert!((seconds - whole.seconds).abs() < 1e-6);
    }

    /// No counters, of whatever kind, make a rate that the newer sample does not have room for, and what went down
    /// or is missing makes none.
    #[test]
    fn nothing_is_made_up(
        before in prop::collection::btree_map(prop::sample::select(of_statements()), any::<u64>(), 0..14),
        after in prop::collection::btree_map(prop::sample::select(of_statements()), any::<u64>(), 0..14),
        own in any::<u64>(),
        ms in 0u64..10_000,
    ) {
        let pairs = |map: &std::collections::BTreeMap<&'static str, u64>| {
            status(&map.iter().map(|(name, value)| (*name, *value)).collect::<Vec<_>>())
        };
        let start = Instant::now();
        let first = sample(start, 0, pairs(&before), Own::default());
        let second = sample(start, ms, pairs(&after), Own { statements: own, selects: 0 });
        let went_down = |name: &str| before.get(name).zip(after.get(name)).is_some_and(|(b, a)| a < b);
        match between(&first, &second) {
            Change::Restarted => prop_assert!(went_down("Uptime") || went_down("Questions")),
            Change::Reconnected => prop_assert!(false, "it is one connection"),
            Change::Counted(counts) => {
                prop_assert!(!went_down("Uptime") && !went_down("Questions"));
                let known = before.contains_key("Questions") && after.contains_key("Questions");
                prop_assert_eq!(counts.queries.is_some(), known);
                prop_assert!(counts.queries.is_none_or(|queries| queries <= after["Questions"]));
                if went_down("Com_commit") || !after.contains_key("Com_commit") {
                    prop_assert_eq!(counts.commits, None);
                }
                prop_assert!(counts.commits.is_none_or(|commits| commits <= after["Com_commit"]));
                for rate in [counts.per_s(counts.queries), counts.per_s(counts.commits)] {
                    prop_assert!(rate.is_none_or(|rate| rate.is_finite() && rate >= 0.0));
                }
            }
        }
    }
}

#[test]
fn a_restart_is_told_from_a_lost_connection() {
    let start = Instant::now();
    let before = sample(start, 0, full(5, 1000, 0), Own::default());
    let later = |uptime, queries| Sample {
        connection: 8,
        ..sample(start, 10_000, full(uptime, queries, 0), Own::default())
    };
    assert_eq!(between(&before, &later(15, 1003)), Change::Reconnected);
    assert_eq!(between(&before, &later(3, 20)), Change::Restarted);
    // It was up for five seconds, and is again after ten: longer than before, and yet another.
    assert_eq!(between(&before, &later(7, 2000)), Change::Restarted);
}

#[test]
fn servers_without_a_query_cache_have_selects() {
    let start = Instant::now();
    let of = |selects| status(&[("Uptime", 1), ("Questions", 9), ("Com_select", selects)]);
    let before = sample(start, 0, of(5), Own::default());
    let own = Own {
        statements: 0,
        selects: 1,
    };
    let counts = counted(between(&before, &sample(start, 500, of(8), own)));
    assert_eq!(
        (counts.selects, counts.per_s(counts.selects)),
        (Some(2), Some(4.0))
    );
    assert_eq!(counts.inserts, None);
}
