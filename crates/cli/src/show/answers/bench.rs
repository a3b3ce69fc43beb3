//! The answers of `bench`.

use super::Answer;
use crate::show::{Align, Table};
use evenkeel_bench::recovery::{RecoveryReport, Timing};
use evenkeel_op::units;
use std::time::Duration;

impl Answer for RecoveryReport {
    const SCHEMA: &'static str = "evenkeel/bench-recovery/1";

    fn text(&self) -> String {
        let mut table = Table::new(&[
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
        for bar in &self.bars {
            let asked = match bar.ratio_max < 1.0 {
                true => "with prewarm a tenth of the time at most, at 30000 tables and 1 ms",
                false => "no slower than 1.02 times with prewarm, which has little to gain",
            };
            let verdict = if bar.held { "held" } else { "NOT HELD" };
            text.push_str(&format!(
                "{verdict}: {} with {} tables, {:.3}: {asked}\n",
                bar.server, bar.tables, bar.ratio
            ));
        }
        text
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
