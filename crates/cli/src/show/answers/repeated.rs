//! The answers of benches that were run several times.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_bench::oltp::OltpReport;
use evenkeel_bench::repeated::{Repeatable, Repeated};
use evenkeel_bench::tpcc::TpccReport;

impl Answer for Repeated<TpccReport> {
    const SCHEMA: &'static str = "evenkeel/bench-tpcc-runs/1";

    fn text(&self) -> String {
        let like = self.runs.iter().find_map(|run| run.like);
        let like = like.map_or(String::new(), |like| {
            format!("LIKE {like}, WITH ITS FAULTS: comparable with its figures only\n")
        });
        format!("{like}{}", reported(self))
    }
}

impl Answer for Repeated<OltpReport> {
    const SCHEMA: &'static str = "evenkeel/bench-oltp-runs/1";

    fn text(&self) -> String {
        reported(self)
    }
}

/// Each value over all runs, and the runs by the first one.
fn reported<R: Repeatable>(repeated: &Repeated<R>) -> String {
    let right = |name| (name, Align::Right);
    let heads = [right("median"), right("least"), right("most")];
    let mut table = TextTable::new(&[&[("", Align::Left)], &heads[..]].concat());
    for over in &repeated.values {
        let spread = over.spread;
        let [median, least, most] =
            [spread.median, spread.least, spread.most].map(|value| format!("{value:.2}"));
        table.row([over.says.to_owned(), median, least, most]);
    }
    let runs = repeated.runs.iter().map(|run| {
        let value = run.values().first().map_or(0.0, |value| value.value);
        let verdict = if run.counts() {
            ""
        } else {
            " (DOES NOT COUNT)"
        };
        format!("{value:.2}{verdict}")
    });
    let runs: Vec<String> = runs.collect();
    let says = repeated.values.first().map_or("", |over| over.says);
    let count = runs.len();
    format!(
        "{}\n{says} of {count} runs: {}\n",
        table.text(),
        runs.join(", ")
    )
}
