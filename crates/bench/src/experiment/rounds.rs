//! The order of runs.

use super::report::{Arm, ExperimentReport, Metric};
use evenkeel_op::{Error, ErrorKind, Result, Run, Unit};
use evenkeel_report::compare::Spread;
use fastrand::Rng;
use std::collections::BTreeMap;

/// How an experiment is run.
pub(super) struct Rounds {
    pub(super) experiment: &'static str,
    pub(super) did: String,
    pub(super) names: Vec<String>,
    pub(super) metrics: Vec<Metric>,
    pub(super) repeat: usize,
    pub(super) seed: u64,
}

/// What one run came to: by metric, or why this way does not work here.
pub(super) enum Ran {
    Measured(BTreeMap<&'static str, f64>),
    LeftOut(String),
}

impl Ran {
    /// Takes a refusal as a reason to leave this way out; other errors end the experiment.
    pub(super) fn or_left_out(result: Result<BTreeMap<&'static str, f64>>) -> Result<Self> {
        match result {
            Ok(measured) => Ok(Self::Measured(measured)),
            Err(error) if is_about_this_way(&error) => Ok(Self::LeftOut(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

fn is_about_this_way(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Refused)
}

impl Rounds {
    /// Runs each way once in a round, in another order each time. A way that does not work is not tried
    /// again.
    pub(super) fn run(
        self,
        run: Run<'_>,
        mut once: impl FnMut(usize) -> Result<Ran>,
    ) -> Result<ExperimentReport> {
        let mut random = Rng::with_seed(self.seed);
        let new = |name: &String| Arm {
            name: name.clone(),
            left_out: None,
            runs: BTreeMap::new(),
            summary: BTreeMap::new(),
        };
        let mut arms: Vec<Arm> = self.names.iter().map(new).collect();
        let total = (arms.len() * self.repeat) as u64;
        run.progress.phase("measuring", Some(total), Unit::Items);
        for _ in 0..self.repeat {
            let mut order: Vec<usize> = (0..arms.len()).collect();
            random.shuffle(&mut order);
            for number in order {
                run.cancel.check()?;
                let arm = &mut arms[number];
                if arm.left_out.is_none() {
                    match once(number)? {
                        Ran::LeftOut(why) => arm.left_out = Some(why),
                        Ran::Measured(values) => {
                            for (name, value) in values {
                                arm.runs.entry(name).or_default().push(value);
                            }
                        }
                    }
                }
                run.progress.advance(1);
            }
        }
        run.progress.end();
        for arm in &mut arms {
            let summed = arm.runs.iter();
            arm.summary = summed
                .filter_map(|(name, runs)| Some((*name, Spread::of(runs)?)))
                .collect();
        }
        if let Some(why) = arms.iter().find_map(|arm| arm.left_out.as_ref())
            && arms.iter().all(|arm| arm.left_out.is_some())
        {
            return Err(Error::refused(format!(
                "none of the variants works on this server: {why}"
            )));
        }
        let mut report = ExperimentReport {
            experiment: self.experiment,
            did: self.did,
            repeat: self.repeat,
            metrics: self.metrics,
            arms,
            found: Vec::new(),
            seed: self.seed,
        };
        let found = report.metrics.iter();
        report.found = found.filter_map(|metric| report.best(metric)).collect();
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::{Cancel, Silent};

    const METRIC: Metric = Metric {
        name: "m",
        says: "m",
        more_is_better: true,
        digits: 0,
    };

    fn rounds(once: impl FnMut(usize) -> Result<Ran>) -> Result<ExperimentReport> {
        let rounds = Rounds {
            experiment: "inserts",
            did: String::new(),
            names: ["a", "b", "c"].map(str::to_owned).to_vec(),
            metrics: vec![METRIC],
            repeat: 4,
            seed: 9,
        };
        let run = Run {
            progress: &Silent,
            cancel: &Cancel::new(),
        };
        rounds.run(run, once)
    }

    #[test]
    fn every_way_runs_once_a_round_in_changing_order() {
        let mut order = Vec::new();
        let report = rounds(|number| {
            order.push(number);
            Ok(Ran::Measured(BTreeMap::from([("m", order.len() as f64)])))
        })
        .unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for round in order.chunks(3) {
            let mut sorted = round.to_vec();
            seen.insert(round.to_vec());
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert!(seen.len() > 1, "always in the same order");
        assert!(report.arms.iter().all(|arm| arm.runs["m"].len() == 4));
        assert_eq!(report.found.len(), 1);
    }

    #[test]
    fn what_does_not_work_is_tried_once_and_reported() {
        let mut tries = 0;
        let report = rounds(|number| {
            if number == 1 {
                tries += 1;
                return Ok(Ran::LeftOut("not here".to_owned()));
            }
            Ok(Ran::Measured(BTreeMap::from([("m", 1.0)])))
        })
        .unwrap();
        assert_eq!(
            (tries, report.arms[1].left_out.as_deref()),
            (1, Some("not here"))
        );
        assert!(rounds(|_| Ok(Ran::LeftOut("never".to_owned()))).is_err());
    }
}
