//! The answers of `bench inserts`, `bench compression`, `bench cache` and `bench compare`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_bench::experiment::ExperimentReport;
use evenkeel_op::units;
use evenkeel_report::compare::Verdict;
use serde::Serialize;

impl Answer for ExperimentReport {
    const SCHEMA: &'static str = "evenkeel/bench-experiment/1";

    fn text(&self) -> String {
        let mut text = format!(
            "{} Each variant was run {} (--seed {}).\n",
            self.did,
            units::count(self.repeat, "time"),
            self.seed
        );
        for metric in &self.metrics {
            let mut table = TextTable::new(&[
                (metric.says, Align::Left),
                ("median", Align::Right),
                ("least", Align::Right),
                ("most", Align::Right),
            ]);
            for arm in &self.arms {
                if let Some(one) = arm.summary.get(metric.name) {
                    let reported = |value: f64| format!("{value:.*}", metric.digits);
                    table.row([
                        arm.name.clone(),
                        reported(one.median),
                        reported(one.least),
                        reported(one.most),
                    ]);
                }
            }
            text.push_str(&format!("\n{}", table.text()));
        }
        text.push('\n');
        for arm in &self.arms {
            if let Some(why) = &arm.left_out {
                text.push_str(&format!("left out: {}: {why}\n", arm.name));
            }
        }
        for found in &self.found {
            text.push_str(&format!("{found}\n"));
        }
        text
    }
}

/// What `bench compare` found.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Whether any difference is taken to be real.
    pub differs: bool,
    /// One for each value.
    pub values: Vec<Compared>,
}

/// A value that was compared.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// What it is.
    pub name: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What was found, in words.
    pub says: String,
    /// What was found.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Answer for Comparison {
    const SCHEMA: &'static str = "evenkeel/bench-compare/1";

    fn text(&self) -> String {
        let lines = self.values.iter().map(|value| format!("{}\n", value.says));
        lines.collect()
    }
}
