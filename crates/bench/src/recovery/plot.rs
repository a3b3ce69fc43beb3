//! The chart: how long a start takes, against the number of tables.

use super::report::{Case, RecoveryReport, Timing};
use evenkeel_report::{Axis, Plot, Point, Series};

/// Draws a pair of lines for each server.
#[must_use]
pub fn plot(report: &RecoveryReport) -> Plot {
    let mut servers: Vec<&str> = Vec::new();
    for case in &report.cases {
        if !servers.contains(&case.server.as_str()) {
            servers.push(&case.server);
        }
    }
    let line = |group: usize, server: &str, is_warmed: bool| {
        let mut cases: Vec<&Case> = report.cases.iter().filter(|c| c.server == server).collect();
        cases.sort_by_key(|case| case.tables);
        let point = |case: &Case| {
            let timing: &Timing = if is_warmed {
                &case.prewarmed
            } else {
                &case.own
            };
            Point {
                x: case.tables as f64,
                y: timing.seconds,
                spread: Some((timing.least_seconds, timing.most_seconds)),
            }
        };
        Series {
            name: match is_warmed {
                true => format!("{server}, prewarm included"),
                false => server.to_owned(),
            },
            group,
            is_dashed: is_warmed,
            points: cases.into_iter().map(point).collect(),
        }
    };
    let series = servers
        .iter()
        .enumerate()
        .flat_map(|(group, server)| [line(group, server, false), line(group, server, true)]);
    Plot {
        title: match report.latency_ms > 0.0 {
            true => format!("Start after a crash, storage of {} ms", report.latency_ms),
            false => "Start after a crash".to_owned(),
        },
        x: Axis::linear("number of tables"),
        y: Axis::linear("time until a client is greeted, s"),
        series: series.collect(),
        events: Vec::new(),
        note: match report.repeat {
            1 => crate::ONE_RUN.to_owned(),
            _ => String::new(),
        },
    }
}
