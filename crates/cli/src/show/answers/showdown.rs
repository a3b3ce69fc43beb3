//! The answer of `bench showdown`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_bench::showdown::{MeasurementState, ShowdownReport, Standing};
use evenkeel_op::units;
use evenkeel_report::compare::Spread;
use std::time::Duration;

impl Answer for ShowdownReport {
    const SCHEMA: &'static str = "evenkeel/bench-showdown/1";

    fn text(&self) -> String {
        let rounds = match self.repeat {
            1 => "one round".to_owned(),
            some => format!("medians of {some} rounds"),
        };
        let mut text = format!(
            "{} on {}\n{}, {}, {} ramp-up, {} measured; {rounds} each (--seed {})\n\n{}\n",
            self.server,
            self.filesystem,
            units::count(self.warehouses, "warehouse"),
            units::count(self.connections, "connection"),
            seconds(self.ramp_up_s),
            seconds(self.measure_s),
            self.seed,
            table(&self.methods)
        );
        for method in &self.methods {
            let name = &method.method;
            match &method.state {
                MeasurementState::LeftOut(why) => {
                    text.push_str(&format!("{name} is left out: {why}\n"))
                }
                MeasurementState::Failed(why) => text.push_str(&format!("{name} FAILED: {why}\n")),
                MeasurementState::Measured if method.is_sound == Some(false) => {
                    text.push_str(&format!("{name} IS NOT SOUND once restored\n"));
                }
                MeasurementState::Measured => (),
            }
            if method.outlasts {
                text.push_str(&format!(
                    "{name}: its backup took longer than the measurement, and finished without load; use a \
                     longer -l\n"
                ));
            }
        }
        text.push('\n');
        for sentence in &self.verdict.says {
            text.push_str(&format!("{sentence}\n"));
        }
        for bar in &self.verdict.bars {
            let verdict = if bar.held {
                "reached"
            } else {
                "not reached here"
            };
            text.push_str(&format!(
                "a goal of evenkeel's, {verdict}: {}, {}: {}\n",
                bar.method, bar.asked, bar.measured
            ));
        }
        if !self.is_specified {
            text.push_str(
                "this shows only that it works, and is not a measurement: the tables are too small\n",
            );
        }
        text
    }
}

fn table(methods: &[Standing]) -> String {
    let mut table = TextTable::new(&[
        ("method", Align::Left),
        ("TpmC", Align::Right),
        ("left", Align::Right),
        ("(least, most)", Align::Left),
        ("lost", Align::Right),
        ("p95 ms", Align::Right),
        ("max ms", Align::Right),
        ("stall", Align::Right),
        ("n", Align::Right),
        ("first", Align::Right),
        ("next", Align::Right),
        ("size", Align::Right),
        ("next size", Align::Right),
        ("restore", Align::Right),
        ("proved", Align::Left),
    ]);
    for method in methods {
        let name = method.method.clone();
        match &method.state {
            MeasurementState::Measured => table.row(measured(name, method)),
            MeasurementState::Failed(_) => table.row([name, "failed".to_owned()]),
            MeasurementState::LeftOut(why) => {
                let why = match why.starts_with("not installed") {
                    true => "not installed",
                    false => "not here",
                };
                table.row([name, why.to_owned()]);
            }
        }
    }
    table.text()
}

fn measured(name: String, method: &Standing) -> [String; 15] {
    let shown = |spread: Option<Spread>, text: fn(f64) -> String| {
        spread.map_or(String::new(), |spread| text(spread.median))
    };
    let size = |bytes: f64| units::bytes(bytes as u64);
    [
        name,
        shown(method.tpmc, |value| format!("{value:.0}")),
        shown(method.percent, |value| format!("{value:.1} %")),
        method.percent.map_or(String::new(), |percent| {
            format!("({:.1}, {:.1})", percent.least, percent.most)
        }),
        shown(method.lost, |value| format!("{value:.0}")),
        shown(method.p95_ms, |value| format!("{value:.1}")),
        shown(method.max_ms, |value| format!("{value:.0}")),
        shown(method.stall_ms, |value| seconds(value / 1000.0)),
        match method.backups {
            0 => String::new(),
            some => some.to_string(),
        },
        shown(method.first_s, seconds),
        shown(method.next_s, seconds),
        shown(method.first_bytes, size),
        shown(method.next_bytes, size),
        shown(method.restore_s, seconds),
        match method.is_sound {
            Some(true) => "sound".to_owned(),
            Some(false) => "NOT SOUND".to_owned(),
            None => String::new(),
        },
    ]
}

fn seconds(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds.max(0.0)))
}
