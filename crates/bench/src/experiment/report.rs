//! What an experiment came to.

use evenkeel_report::compare::Spread;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is measured of each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its name in JSON: `rows_per_s`.
    pub name: &'static str,
    /// What it is, with its unit, for people.
    pub says: &'static str,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Digits after the point that are worth reading.
    #[serde(skip)]
    pub digits: usize,
}

/// One way of doing it.
#[derive(Debug, Clone, Serialize)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Why it was left out; none when it was not.
    pub left_out: Option<String>,
    /// What each run came to, by metric, in the order of the rounds.
    pub runs: BTreeMap<&'static str, Vec<f64>>,
    /// The same, shorter.
    pub summary: BTreeMap<&'static str, Spread>,
}

/// What an experiment came to.
#[derive(Debug, Clone, Serialize)]
pub struct ExperimentReport {
    /// Which one: `inserts`, `compression`, `cache`.
    pub experiment: &'static str,
    /// What each run did, in one sentence.
    pub did: String,
    /// How often each way was run.
    pub repeat: usize,
    /// What was measured; the first is what it is about.
    pub metrics: Vec<Metric>,
    /// The ways.
    pub arms: Vec<Arm>,
    /// What was found, in sentences.
    pub found: Vec<String>,
    /// What the order of runs came from.
    pub seed: u64,
}

impl ExperimentReport {
    /// The arms that were run, with a metric of theirs.
    fn by(&self, metric: &str) -> Vec<(&Arm, Spread)> {
        let arms = self.arms.iter();
        arms.filter_map(|arm| Some((arm, *arm.summary.get(metric)?)))
            .collect()
    }

    /// Says which way is the best by a metric; that none is, where its spread meets that of the next.
    pub(super) fn best(&self, metric: &Metric) -> Option<String> {
        let mut arms = self.by(metric.name);
        arms.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
        if metric.more_is_better {
            arms.reverse();
        }
        let [(first, best), (second, next), ..] = arms.as_slice() else {
            return None;
        };
        let apart = match metric.more_is_better {
            true => best.least > next.most,
            false => best.most < next.least,
        };
        let value = |one: &Spread| format!("{:.*}", metric.digits, one.median);
        if self.repeat == 1 {
            return Some(format!(
                "{}: no clear winner from one run of each: {} came to {}, {} to {}.",
                metric.says,
                first.name,
                value(best),
                second.name,
                value(next)
            ));
        }
        if best == next && best.least == best.most {
            return Some(format!(
                "{}: {} and {} are the same, {}.",
                metric.says,
                first.name,
                second.name,
                value(best)
            ));
        }
        Some(match apart {
            true => format!(
                "{}: best is {} with {}; next is {} with {}.",
                metric.says,
                first.name,
                value(best),
                second.name,
                value(next)
            ),
            false => format!(
                "{}: no clear winner; the runs of {} ({}) and of {} ({}) overlap.",
                metric.says,
                first.name,
                value(best),
                second.name,
                value(next)
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(runs: [&[f64]; 2], more_is_better: bool) -> Option<String> {
        let metric = Metric {
            name: "m",
            says: "speed",
            more_is_better,
            digits: 0,
        };
        let arm = |(name, runs): (&str, &[f64])| Arm {
            name: name.to_owned(),
            left_out: None,
            runs: BTreeMap::from([("m", runs.to_vec())]),
            summary: Spread::of(runs).map(|one| ("m", one)).into_iter().collect(),
        };
        let report = ExperimentReport {
            experiment: "inserts",
            did: String::new(),
            repeat: 3,
            metrics: vec![metric],
            arms: ["a", "b"].into_iter().zip(runs).map(arm).collect(),
            found: Vec::new(),
            seed: 1,
        };
        report.best(&metric)
    }

    #[test]
    fn a_winner_is_named_only_apart_from_the_next() {
        let reported = |runs, more| report(runs, more).unwrap();
        let apart = [&[1.0, 2.0, 3.0][..], &[4.0, 5.0, 6.0]];
        assert_eq!(
            reported(apart, true),
            "speed: best is b with 5; next is a with 2."
        );
        assert_eq!(
            reported(apart, false),
            "speed: best is a with 2; next is b with 5."
        );
        let meeting = [&[1.0, 2.0, 4.5][..], &[4.0, 5.0, 6.0]];
        assert!(reported(meeting, true).contains("no clear winner"));
        assert!(reported([&[7.0], &[7.0]], true).contains("the same"));
        assert_eq!(report([&[], &[1.0]], true), None);
    }
}
