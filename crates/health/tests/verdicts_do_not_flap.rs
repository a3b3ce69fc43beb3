//! Does a server turn down at once and up only when it is proven, whatever comes in whatever order?

use evenkeel_health::machine::{HealthOrder, HealthState, Machine, Remembered, Rules};
use evenkeel_health::reason::{Cause, Reason};
use proptest::prelude::*;
use std::time::Duration;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn rules() -> Rules {
    Rules {
        fall: 1,
        rise: 2,
        min_down: Duration::ZERO,
        hold: seconds(5),
        hold_max: seconds(60),
        flaps_max: 5,
        flap_window: seconds(600),
        stale: seconds(4),
    }
}

fn bad() -> Vec<Reason> {
    vec![Reason::new(Cause::Hung, "no answer within 1 s")]
}

/// Probes each second from `from` on; returns the state after each.
fn states(machine: &mut Machine, from: u64, outcomes: &str) -> Vec<HealthState> {
    let each = outcomes.chars().zip(from..);
    each.map(|(outcome, at)| {
        let reasons = if outcome == '+' { Vec::new() } else { bad() };
        machine.probed(seconds(at), reasons);
        machine.verdict(seconds(at)).state
    })
    .collect()
}

#[test]
fn it_is_down_until_it_is_proven_and_again_with_one_failure() {
    use HealthState::{Down, Starting, Up};
    let mut machine = Machine::new(rules(), Duration::ZERO);
    assert_eq!(machine.verdict(Duration::ZERO).state, Starting);
    assert_eq!(
        states(&mut machine, 1, "++-+-++"),
        [Starting, Up, Down, Down, Down, Down, Up]
    );
}

#[test]
fn with_a_higher_fall_a_single_lost_probe_is_nothing() {
    let mut machine = Machine::new(Rules { fall: 2, ..rules() }, Duration::ZERO);
    let seen = states(&mut machine, 1, "++-+-+-+--");
    let (last, before) = seen[1..].split_last().unwrap();
    assert!(
        before.iter().all(|state| *state == HealthState::Up),
        "{seen:?}"
    );
    assert_eq!(*last, HealthState::Down);
}

#[test]
fn holds_double_and_then_only_a_person_ends_them() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    let mut at = 1;
    let mut downs = Vec::new();
    for _ in 0..4 {
        states(&mut machine, at, "++-");
        at += 3;
        let mut down = 1;
        while states(&mut machine, at, "+") != [HealthState::Up] {
            at += 1;
            down += 1;
            assert!(down < 100);
        }
        at += 1;
        downs.push(down);
    }
    assert_eq!(downs, [2, 5, 10, 20]);
    states(&mut machine, at, "-");
    let all = states(&mut machine, at + 1, &"+".repeat(1000));
    assert!(all.iter().all(|state| *state == HealthState::Down));
    at += 1001;
    let verdict = machine.verdict(seconds(at));
    assert_eq!(verdict.reasons[0].cause, Cause::Flapping);
    machine.release(seconds(at));
    assert_eq!(states(&mut machine, at, "+"), [HealthState::Up]);
}

#[test]
fn a_prober_that_stalls_says_down() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    states(&mut machine, 1, "++");
    assert_eq!(machine.verdict(seconds(6)).state, HealthState::Up);
    let verdict = machine.verdict(seconds(6) + Duration::from_millis(1));
    assert_eq!(verdict.state, HealthState::Down);
    assert_eq!(verdict.reasons[0].cause, Cause::Stalled);
    // The server itself has not failed.
    assert_eq!(states(&mut machine, 60, "+"), [HealthState::Up]);
}

#[test]
fn orders_are_kept_and_a_failure_counts_more_than_draining() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    states(&mut machine, 1, "++");
    machine.order(HealthOrder::Drain("upgrade".to_owned()), seconds(3));
    let verdict = machine.verdict(seconds(3));
    assert_eq!(
        (verdict.state, verdict.since),
        (HealthState::Draining, seconds(3))
    );
    assert_eq!(verdict.reasons[0].text, "upgrade");
    assert_eq!(states(&mut machine, 4, "-"), [HealthState::Down]);
    let before = machine.remembered(seconds(4));
    let json = serde_json::to_string(&before).unwrap();
    let read: Remembered = serde_json::from_str(&json).unwrap();
    assert_eq!(read, before);
    let mut machine = Machine::resumed(rules(), &read, seconds(100));
    assert_eq!(
        states(&mut machine, 101, "++"),
        [HealthState::Starting, HealthState::Draining],
        "it was down"
    );
    machine.order(HealthOrder::Maintenance("disk".to_owned()), seconds(103));
    assert_eq!(
        machine.verdict(seconds(1000)).state,
        HealthState::Maintenance
    );
    machine.release(seconds(104));
    assert_eq!(states(&mut machine, 104, "+"), [HealthState::Up]);
}

#[test]
fn orders_for_a_server_that_is_down_are_seen_and_never_loosened() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    states(&mut machine, 1, "++-");
    machine.order(HealthOrder::Drain("upgrade".to_owned()), seconds(4));
    let verdict = machine.verdict(seconds(4));
    let causes: Vec<Cause> = verdict.reasons.iter().map(|it| it.cause).collect();
    assert_eq!(verdict.state, HealthState::Down);
    assert_eq!(causes, [Cause::Hung, Cause::Order]);
    machine.order(HealthOrder::Maintenance("disk".to_owned()), seconds(5));
    machine.order(HealthOrder::Drain("again".to_owned()), seconds(6));
    let verdict = machine.verdict(seconds(6));
    assert_eq!(verdict.state, HealthState::Maintenance);
    assert_eq!(verdict.reasons[0].text, "disk");
}

#[test]
fn reasons_have_an_end() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    let many = (0..250).map(|at| Reason::new(Cause::Replication, format!("channel {at}")));
    machine.probed(seconds(1), many.collect());
    let reasons = machine.verdict(seconds(1)).reasons;
    assert!(reasons.len() < 30, "{}", reasons.len());
    let last = &reasons.last().unwrap().text;
    assert!(last.contains("230 more reasons"), "{last}");
}

#[test]
fn after_a_restart_of_the_prober_one_success_proves_what_was_up() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    states(&mut machine, 1, "++");
    let before = machine.remembered(seconds(2));
    let mut good = Machine::resumed(rules(), &before, Duration::ZERO);
    assert_eq!(good.verdict(Duration::ZERO).state, HealthState::Starting);
    // One that is killed before its first probe forgets nothing.
    assert!(good.remembered(Duration::ZERO).was_up);
    assert_eq!(states(&mut good, 1, "+"), [HealthState::Up]);
    let mut bad = Machine::resumed(rules(), &before, Duration::ZERO);
    let seen = states(&mut bad, 1, "-++");
    assert_eq!(
        seen,
        [HealthState::Down, HealthState::Down, HealthState::Up]
    );
}

#[test]
fn those_who_are_on_a_drained_server_stay_while_its_prober_restarts() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    states(&mut machine, 1, "++");
    machine.order(HealthOrder::Drain("upgrade".to_owned()), seconds(3));
    let before = machine.remembered(seconds(3));
    let at = seconds(100);
    let again = Machine::resumed(rules(), &before, at);
    assert_eq!(again.verdict(at).state, HealthState::Draining);
    // For as long as a verdict without a probe counts, and no longer.
    let later = at + rules().stale + Duration::from_millis(1);
    assert_eq!(again.verdict(later).state, HealthState::Starting);
    let mut bad = Machine::resumed(rules(), &before, at);
    assert_eq!(states(&mut bad, 101, "-"), [HealthState::Down]);
    // One that was down is not proven by an order.
    let mut down = Machine::new(rules(), Duration::ZERO);
    states(&mut down, 1, "++-");
    down.order(HealthOrder::Drain("upgrade".to_owned()), seconds(4));
    let again = Machine::resumed(rules(), &down.remembered(seconds(4)), at);
    assert_ne!(again.verdict(at).state, HealthState::Draining);
}

#[test]
fn what_has_to_be_said_in_short_is_what_is_said_at_length() {
    let mut machine = Machine::new(rules(), Duration::ZERO);
    let same = |machine: &Machine, at: u64| {
        let (long, short) = (machine.verdict(seconds(at)), machine.glance(seconds(at)));
        let cause = long.reasons.first().map(|reason| reason.cause);
        assert_eq!((short.state, short.cause), (long.state, cause));
        short
    };
    for (at, outcome) in ["+", "+", "-", "+", "+", "-", "+", "+"].iter().enumerate() {
        states(&mut machine, at as u64, outcome);
        same(&machine, at as u64);
    }
    // The hold is over, and nothing was probed since.
    let text = &machine.verdict(seconds(11)).reasons[0].text;
    assert_eq!(text, "the next good probe turns it up");
    let before = same(&machine, 11);
    machine.order(HealthOrder::Maintenance("disk".to_owned()), seconds(11));
    assert_ne!(same(&machine, 11), before);
    machine.release(seconds(11));
    assert_ne!(same(&machine, 11), before, "a release has to be kept");
    same(&machine, 1000);
}

#[test]
fn locks_and_holds_outlast_the_prober() {
    let strict = Rules {
        flaps_max: 2,
        ..rules()
    };
    let mut machine = Machine::new(strict, Duration::ZERO);
    states(&mut machine, 1, "++-++-");
    let before = machine.remembered(seconds(6));
    assert!(before.is_locked);
    let mut again = Machine::resumed(strict, &before, seconds(1000));
    // What closes a port for it hears of that.
    assert_eq!(again.verdict(seconds(1000)).state, HealthState::Down);
    let seen = states(&mut again, 1001, "+++++++");
    assert!(!seen.contains(&HealthState::Up), "{seen:?}");
    let mut machine = Machine::new(rules(), Duration::ZERO);
    states(&mut machine, 1, "++-++-");
    let mut again = Machine::resumed(rules(), &machine.remembered(seconds(6)), seconds(1000));
    let seen = states(&mut again, 1001, "++++++");
    let first = seen.iter().position(|state| *state == HealthState::Up);
    // Its hold of 5 s began when the first prober's clock said 6.
    assert_eq!(first, Some(4), "{seen:?}");
}

/// What happens to a server.
#[derive(Debug, Clone)]
enum Event {
    Probe(bool),
    Drain,
    Maintain,
    Release,
    Restart,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let event = prop_oneof![
        12 => any::<bool>().prop_map(Event::Probe),
        6 => Just(Event::Probe(true)),
        1 => Just(Event::Drain),
        1 => Just(Event::Maintain),
        1 => Just(Event::Release),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec((0..3000_u64, event), 1..300)
}

prop_compose! {
    fn any_rules()(
        fall in 1..4_u32, rise in 1..5_u32, min_down in 0..5_u64, hold in 0..8_u64, flaps_max in 0..6_u32,
    ) -> Rules {
        Rules {
            fall,
            rise,
            min_down: seconds(min_down),
            hold: seconds(hold),
            hold_max: seconds(30),
            flaps_max,
            flap_window: seconds(120),
            stale: seconds(4),
        }
    }
}

proptest! {
    #[test]
    fn whatever_comes_it_is_used_only_when_proven(rules in any_rules(), events in events()) {
        let mut machine = Machine::new(rules, Duration::ZERO);
        let mut now = Duration::ZERO;
        let (mut good, mut failed, mut was_used) = (0, 0, false);
        let (mut ordered, mut maintained) = (false, false);
        let mut finished: Option<Duration> = None;
        // When it was resumed, and whether it was in use before.
        let (mut resumed, mut was_proven) = (Duration::ZERO, false);
        let mut fell: Option<Duration> = None;
        let mut downs: Vec<Duration> = Vec::new();
        for (gap, event) in events {
            now += Duration::from_millis(gap);
            let before = machine.verdict(now);
            let was = finished.is_some() && matches!(before.state, HealthState::Up | HealthState::Draining);
            match event {
                Event::Probe(true) => {
                    (good, failed) = (good + 1, 0);
                    finished = Some(now);
                    machine.probed(now, Vec::new());
                }
                Event::Probe(false) => {
                    (good, failed) = (0, failed + 1);
                    finished = Some(now);
                    machine.probed(now, bad());
                }
                Event::Drain => {
                    // Which ends no maintenance.
                    ordered = true;
                    machine.order(HealthOrder::Drain(String::new()), now);
                }
                Event::Maintain => {
                    (ordered, maintained) = (true, true);
                    machine.order(HealthOrder::Maintenance(String::new()), now);
                }
                Event::Release => {
                    (ordered, maintained) = (false, false);
                    (fell, downs) = (None, Vec::new());
                    machine.release(now);
                }
                Event::Restart => {
                    machine = Machine::resumed(rules, &machine.remembered(now), now);
                    (was_proven, resumed) = (machine.remembered(now).was_up, now);
                    (finished, fell) = (None, None);
                    failed = 0;
                }
            }
            let verdict = machine.verdict(now);
            let is_used = matches!(verdict.state, HealthState::Up | HealthState::Draining);
            if is_used && finished.is_none() {
                // Drained, and proven by the prober before, a moment ago.
                prop_assert_eq!(verdict.state, HealthState::Draining);
                prop_assert!(was_proven && now - resumed <= rules.stale);
            }
            let is_used = is_used && finished.is_some();
            // Not up is always explained, and up never is.
            prop_assert_eq!(verdict.reasons.is_empty(), verdict.state == HealthState::Up);
            prop_assert!(verdict.since <= now);
            prop_assert_eq!(maintained, verdict.state == HealthState::Maintenance);
            if ordered {
                prop_assert!(verdict.state != HealthState::Up);
                prop_assert_eq!(machine.glance(now).state, verdict.state);
            } else {
                prop_assert!(verdict.state != HealthState::Draining);
            }
            if failed >= rules.fall {
                prop_assert!(!is_used, "in use after {failed} failures");
            }
            if is_used {
                prop_assert!(finished.is_some(), "in use without a probe");
                prop_assert!(now - finished.unwrap() <= rules.stale);
            }
            let rose = is_used && !was && matches!(event, Event::Probe(true));
            if let (true, Some(fell)) = (rose, fell) {
                prop_assert!(good >= rules.rise);
                prop_assert!(now - fell >= rules.min_down);
            }
            if was_used && was && !is_used && matches!(event, Event::Probe(false)) {
                fell = Some(now);
                downs.retain(|at| now - *at <= rules.flap_window);
                downs.push(now);
                if rules.flaps_max > 0 {
                    prop_assert!(downs.len() <= rules.flaps_max as usize, "{downs:?}");
                }
            }
            if is_used {
                fell = None;
            }
            was_used = is_used;
            // Without another probe it is in use by nobody.
            let later = machine.verdict(now + rules.stale + seconds(1));
            if finished.is_some() || was_proven {
                prop_assert!(!matches!(later.state, HealthState::Up | HealthState::Draining));
            }
            let again = Machine::resumed(rules, &machine.remembered(now), now);
            prop_assert_eq!(again.remembered(now).order, machine.remembered(now).order);
        }
    }
}
