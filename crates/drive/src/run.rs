//! A run: ramp-up, then a measured time cut into intervals.

use crate::pace::sleep_until;
use crate::{Drive, Pace, Tally, Work};
use evenkeel_op::{Cancel, Error, Result};
use std::time::{Duration, Instant};

/// How to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How many kinds of units there are.
    pub kinds: usize,
    /// How densely units follow each other.
    pub pace: Pace,
    /// How long sessions work before anything counts.
    pub ramp_up: Duration,
    /// How long is measured.
    pub measure: Duration,
    /// How long an interval is.
    pub interval: Duration,
    /// More failed units than this end the run; `None` for any number.
    pub failures_allowed: Option<u64>,
}

/// An interval of a run.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it ended, from the start of the measured time; negative in the ramp-up. Seconds.
    pub at_s: f64,
    /// How long it was, in seconds.
    pub seconds: f64,
    /// What was done in it.
    pub tally: Tally,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    TimeUp,
    /// More units failed than were allowed.
    TooManyFailures,
    /// No session was left.
    AllLost,
    /// It was interrupted.
    Interrupted,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Run {
    /// Every interval, those of the ramp-up first.
    pub samples: Vec<Sample>,
    /// All of the measured time.
    pub total: Tally,
    /// How long was measured, in seconds.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
}

/// Keeps sessions busy as a plan says; `watch` sees every interval when it is over. Units are
/// counted in the interval in which they end, those under way at the end in none.
///
/// Errors: `Usage` for a plan without time or with a rate that is none.
pub fn run<W: Work>(
    works: Vec<W>,
    plan: &Plan,
    mut watch: impl FnMut(&Sample),
    cancel: &Cancel,
) -> Result<Run> {
    check(plan)?;
    let begun = Instant::now();
    let measured_from = begun + plan.ramp_up;
    let drive = Drive::start(works, plan.kinds, plan.pace)?;
    let mut ended = Ended::TimeUp;
    let mut samples = Vec::new();
    let mut total = Tally::new(plan.kinds);
    let mut last = begun;
    for end in ends(plan, begun) {
        let whole = sleep_until(end, cancel);
        let (now, tally) = (Instant::now(), drive.take());
        let sample = Sample {
            at_s: signed_s(measured_from, now),
            seconds: now.duration_since(last).as_secs_f64(),
            tally,
        };
        last = now;
        if end > measured_from {
            total.add(&sample.tally);
        }
        watch(&sample);
        samples.push(sample);
        let failures = total.failed();
        ended = match () {
            () if !whole => Ended::Interrupted,
            () if drive.all_lost() => Ended::AllLost,
            () if plan.failures_allowed.is_some_and(|most| failures > most) => {
                Ended::TooManyFailures
            }
            () => continue,
        };
        break;
    }
    drop(drive);
    Ok(Run {
        samples,
        total,
        seconds: last.saturating_duration_since(measured_from).as_secs_f64(),
        ended,
    })
}

fn check(plan: &Plan) -> Result<()> {
    if plan.measure.is_zero() || plan.interval.is_zero() {
        return Err(Error::usage("a run needs a time to measure, in intervals"));
    }
    match plan.pace {
        Pace::Rate(per_s) if !(per_s.is_finite() && per_s > 0.0) => {
            Err(Error::usage("a rate is a number of units per second"))
        }
        _ => Ok(()),
    }
}

/// The ends of the intervals: none spans the end of the ramp-up.
fn ends(plan: &Plan, begun: Instant) -> impl Iterator<Item = Instant> {
    let (ramp_up, measure, interval) = (plan.ramp_up, plan.measure, plan.interval);
    let cut = move |from: Duration, length: Duration| {
        let count = length.as_nanos().div_ceil(interval.as_nanos()) as u32;
        (1..=count).map(move |number| from + (interval * number).min(length))
    };
    cut(Duration::ZERO, ramp_up)
        .chain(cut(ramp_up, measure))
        .map(move |offset| begun + offset)
}

fn signed_s(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(after) => after.as_secs_f64(),
        None => -from.duration_since(to).as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Revival, Unit};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn plan(pace: Pace) -> Plan {
        Plan {
            kinds: 1,
            pace,
            ramp_up: MS(50),
            measure: MS(200),
            interval: MS(60),
            failures_allowed: None,
        }
    }

    /// Ends each unit so, after a time.
    struct Steady(Outcome, Duration);

    impl Work for Steady {
        fn once(&mut self) -> Unit {
            std::thread::sleep(self.1);
            Unit::ended(0, self.0)
        }
    }

    #[test]
    fn intervals_add_up_and_ramp_up_does_not_count() {
        let works = vec![Steady(Outcome::Done, MS(1))];
        let mut seen = 0;
        let run = run(works, &plan(Pace::Closed), |_| seen += 1, &Cancel::new()).unwrap();
        // 50 ms are one interval, 200 ms four.
        assert_eq!((seen, run.samples.len(), run.ended), (5, 5, Ended::TimeUp));
        let after = |sample: &&Sample| sample.at_s > 0.05;
        let counted: u64 = run
            .samples
            .iter()
            .filter(after)
            .map(|s| s.tally.done())
            .sum();
        assert_eq!(run.total.done(), counted);
        assert!(counted > 0 && run.samples[0].tally.done() > 0);
    }

    #[test]
    fn a_server_that_stands_still_is_charged_for_all_who_waited() {
        /// Hangs once, for 100 ms.
        struct Stall(bool);
        impl Work for Stall {
            fn once(&mut self) -> Unit {
                if std::mem::take(&mut self.0) {
                    std::thread::sleep(MS(100));
                }
                Unit::done(0)
            }
        }
        let mut plan = plan(Pace::Rate(1000.0));
        plan.ramp_up = Duration::ZERO;
        let run = run(vec![Stall(true)], &plan, |_| (), &Cancel::new()).unwrap();
        // A closed loop would tell of one slow unit; here those that were due meanwhile are as slow.
        let slow = run.total.done() - run.total.kinds[0].within(MS(40));
        assert!(slow >= 50, "{slow} of {}", run.total.done());
        // No more than were due, however late a busy machine ended the run.
        let due = run.seconds * 1000.0 + 5.0;
        assert!(
            (run.total.done() as f64) < due,
            "{} of {due}",
            run.total.done()
        );
    }

    #[test]
    fn failures_beyond_the_budget_end_a_run() {
        let mut plan = plan(Pace::Closed);
        (plan.measure, plan.failures_allowed) = (Duration::from_secs(600), Some(10));
        let failing = vec![Steady(Outcome::Failed, MS(1))];
        let run = run(failing, &plan, |_| (), &Cancel::new()).unwrap();
        assert_eq!(run.ended, Ended::TooManyFailures);
        assert!(run.total.failed() > 10);
    }

    #[test]
    fn lost_sessions_come_back_or_end_the_run() {
        struct Fragile(u32, Revival);
        impl Work for Fragile {
            fn once(&mut self) -> Unit {
                self.0 += 1;
                let lost = self.0 == 3;
                Unit::ended(0, if lost { Outcome::Lost } else { Outcome::Done })
            }
            fn revive(&mut self) -> Revival {
                self.1
            }
        }
        let of = |revival| vec![Fragile(0, revival)];
        let mut plan = plan(Pace::Closed);
        plan.ramp_up = Duration::ZERO;
        let back = run(of(Revival::Back), &plan, |_| (), &Cancel::new()).unwrap();
        assert_eq!((back.ended, back.total.lost), (Ended::TimeUp, 1));
        assert!(back.total.done() > 2);
        plan.measure = Duration::from_secs(600);
        let gone = run(of(Revival::Never), &plan, |_| (), &Cancel::new()).unwrap();
        assert_eq!((gone.ended, gone.total.done()), (Ended::AllLost, 2));
    }

    #[test]
    fn an_interrupted_run_tells_what_it_saw() {
        let mut plan = plan(Pace::Closed);
        plan.measure = Duration::from_secs(600);
        let cancel = Cancel::new();
        let stop = cancel.clone();
        let works = vec![Steady(Outcome::Done, MS(1))];
        let mut seen = 0;
        let watch = |_: &Sample| {
            seen += 1;
            if seen == 3 {
                stop.cancel(2);
            }
        };
        let run = run(works, &plan, watch, &cancel).unwrap();
        assert_eq!(run.ended, Ended::Interrupted);
        assert!(run.total.done() > 0 && run.seconds < 60.0);
    }

    #[test]
    fn plans_without_time_are_refused() {
        let of = |change: fn(&mut Plan)| {
            let mut plan = plan(Pace::Closed);
            change(&mut plan);
            run(
                vec![Steady(Outcome::Done, MS(1))],
                &plan,
                |_| (),
                &Cancel::new(),
            )
            .is_err()
        };
        assert!(of(|plan| plan.measure = Duration::ZERO));
        assert!(of(|plan| plan.interval = Duration::ZERO));
        assert!(of(|plan| plan.pace = Pace::Rate(0.0)));
    }
}
