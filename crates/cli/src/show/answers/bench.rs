//! The answers of `bench`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_bench::recovery::{RecoveryReport, Timing};
use evenkeel_op::units;
use std::time::Duration;

impl Answer for RecoveryReport {
    const SCHEMA: &'static str = "evenkeel/bench-recovery/1";

    fn text(&self) -> String {
        let mut table = TextTable::new(&[
            ("server", Align::Left),
            ("tables", Align::Right),
            ("own", Align::Right),
            ("(least, most)", Align::Left),
            ("with prewarm", Align::Right),
            ("(least, most)", Align::Left),
            ("ratio", Align::Right),
            ("slowest step of its own", Align::Left),
        ]);
        for case in &self.cases {
            let slowest = case.own.slowest_step.clone().unwrap_or_default();
            table.row([
                case.server.clone(),
                case.tables.to_string(),
                seconds(case.own.seconds),
                spread(&case.own),
                seconds(case.prewarmed.seconds),
                spread(&case.prewarmed),
                format!("{:.3}", case.ratio),
                format!("{slowest}: {}", seconds(case.own.took(&slowest))),
            ]);
        }
        let mut text = format!(
            "start after a crash, until a client is greeted; median of {} each (--seed {})\n\
             storage: {}\n\n{}\n",
            self.repeat,
            self.seed,
            self.storage,
            table.text()
        );
        for case in &self.cases {
            text.push_str(&format!(
                "{} with {}: {}\n",
                case.server,
                units::count(case.tables, "table"),
                gained(case.ratio)
            ));
        }
        text
    }
}

/// Says what prewarm is worth, from the time that a start takes with it as a part of that without. What we
/// want of ourselves is in the JSON document only: it says nothing about the reader's server.
fn gained(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match ratio {
        _ if ratio <= 0.5 => format!("with prewarm a start is {:.1} times as fast", 1.0 / ratio),
        _ if ratio < 0.97 => format!("with prewarm a start takes {percent:.0} % of the time"),
        _ if ratio <= 1.03 => "prewarm makes almost no difference".to_owned(),
        _ => format!("with prewarm a start takes longer, {percent:.0} % of the time: leave it out"),
    }
}

fn seconds(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds.max(0.0)))
}

fn spread(timing: &Timing) -> String {
    format!(
        "({}, {})",
        seconds(timing.least_seconds),
        seconds(timing.most_seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gained_is_said_in_words() {
        let said = [0.05, 0.9, 1.0, 1.2].map(gained);
        let expected = [
            "with prewarm a start is 20.0 times as fast",
            "with prewarm a start takes 90 % of the time",
            "prewarm makes almost no difference",
            "with prewarm a start takes longer, 120 % of the time: leave it out",
        ];
        assert_eq!(said, expected);
    }
}
