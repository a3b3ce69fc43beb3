//! The chart: throughput over time, with the ramp-up left of zero.

use super::report::{SampleReport, TpccReport};
use evenkeel_op::units;
use evenkeel_report::page::number;
use evenkeel_report::{Axis, Event, Plot, Point, Series};

/// Draws new orders and all transactions, per second, in each interval.
#[must_use]
pub fn plot(report: &TpccReport) -> Plot {
    let line = |name: &str, group, count: fn(&super::SampleReport) -> u64| Series {
        name: name.to_owned(),
        group,
        is_dashed: false,
        points: report
            .intervals
            .iter()
            .filter(|sample| sample.seconds > 0.0)
            .map(|sample| Point {
                x: sample.at_s - sample.seconds / 2.0,
                y: count(sample) as f64 / sample.seconds,
                spread: None,
            })
            .collect(),
    };
    Plot {
        title: format!(
            "{}, {}: {} TpmC",
            units::count(report.scale.warehouses, "warehouse"),
            units::count(report.connections, "connection"),
            number(report.tpmc, 0)
        ),
        x: Axis::linear("time, s (before 0: ramp-up)"),
        y: Axis::linear("transactions per second"),
        events: ramp_up(&report.intervals),
        note: String::new(),
        series: vec![
            line("New-Order", 0, |sample| sample.new_orders),
            line("all transactions", 1, |sample| sample.done),
        ],
    }
}

/// Marks what does not count.
pub(super) fn ramp_up(intervals: &[SampleReport]) -> Vec<Event> {
    let begun = intervals.first().map(|sample| sample.at_s - sample.seconds);
    let begun = begun.filter(|from| *from < -0.5);
    let event = begun.map(|from| Event {
        name: "ramp-up".to_owned(),
        from,
        to: Some(0.0),
    });
    event.into_iter().collect()
}
