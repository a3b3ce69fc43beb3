//! The report to pass on.

use super::report::{OltpReport, OltpSample};
use evenkeel_op::units;
use evenkeel_report::page::number;
use evenkeel_report::{About, Axis, Cell, Event, Fact, Page, PageTable, Part, Plot, Point, Series};

/// Writes what a run came to, for people who were not there.
#[must_use]
pub fn page(report: &OltpReport, about: About) -> Page {
    let rate = number(report.transactions_per_s, 0);
    let mut lead = vec![format!(
        "The server did {rate} transactions of {} a second from {}, over {} seconds; 95 of 100 \
         took at most {} ms.",
        report.mode.name(),
        units::count(report.threads, "connection"),
        number(report.seconds, 0),
        number(report.p95_ms, 1),
    )];
    if !report.counts() {
        lead.push(match report.ended {
            "failures" => "This does not count: too many transactions failed.".to_owned(),
            "server" => "This does not count: the server was down at the end.".to_owned(),
            "time" => "This does not count: nothing was done.".to_owned(),
            _ => "This does not count: the run was ended early.".to_owned(),
        });
    }
    let mut parts = vec![
        Part::Heading("Over time".to_owned()),
        plot(report).into(),
        over_time(
            report,
            "Response time of a transaction in each interval",
            &[
                ("p95", 0, |one| one.p95_ms),
                ("p99", 1, |one| one.p99_ms),
                ("slowest", 3, |one| one.max_ms),
            ],
            Axis::logarithmic("response time, ms"),
        )
        .into(),
        Part::Heading("In numbers".to_owned()),
        Part::Table(table(report)),
    ];
    if !report.failures.is_empty() || report.sessions_lost > 0 {
        parts.push(Part::Heading("What went wrong".to_owned()));
        let lost = format!("{} lost", units::count(report.sessions_lost, "session"));
        let reported = report.failures.iter();
        let reported = reported
            .map(|(reported, times)| format!("{}: {reported}", units::count(times, "time")));
        parts.push(Part::Points(
            std::iter::once(lost).chain(reported).collect(),
        ));
    }
    Page {
        title: format!("{}: {rate} transactions a second", report.mode.name()),
        lead,
        headline: vec![
            Fact::new("transactions a second", rate.clone()),
            Fact::new("statements a second", number(report.statements_per_s, 0)),
            Fact::new("p95", format!("{} ms", number(report.p95_ms, 1))),
            Fact::new("slowest", format!("{} ms", number(report.max_ms, 1))),
        ],
        parts,
        about,
    }
}

/// Draws the transactions a second of each interval.
#[must_use]
pub fn plot(report: &OltpReport) -> Plot {
    let rate: Of = |one| one.done as f64 / one.seconds.max(1e-9);
    over_time(
        report,
        "Throughput in each interval",
        &[("transactions", 0, rate)],
        Axis::linear("transactions per second"),
    )
}

type Of = fn(&OltpSample) -> f64;

fn over_time(report: &OltpReport, title: &str, lines: &[(&str, usize, Of)], y: Axis) -> Plot {
    let line = |&(name, group, of): &(&str, usize, Of)| Series {
        name: name.to_owned(),
        group,
        is_dashed: false,
        points: report
            .intervals
            .iter()
            .map(|one| Point {
                x: one.at_s - one.seconds / 2.0,
                y: of(one),
                spread: None,
            })
            .collect(),
    };
    Plot {
        title: title.to_owned(),
        x: Axis::linear("time, s (before 0: ramp-up)"),
        y,
        series: lines.iter().map(line).collect(),
        events: events(&report.intervals),
        note: String::new(),
    }
}

/// The ramp-up, and the intervals in which sessions were lost.
fn events(intervals: &[OltpSample]) -> Vec<Event> {
    let ramp_up = intervals.first().map(|one| one.at_s - one.seconds);
    let ramp_up = ramp_up.filter(|from| *from < -0.5).map(|from| Event {
        name: "ramp-up".to_owned(),
        from,
        to: Some(0.0),
    });
    let lost = intervals.iter().filter(|one| one.lost > 0);
    let lost = lost.map(|one| Event {
        name: format!("{} lost", units::count(one.lost, "session")),
        from: one.at_s - one.seconds,
        to: Some(one.at_s),
    });
    ramp_up.into_iter().chain(lost).collect()
}

fn table(report: &OltpReport) -> PageTable {
    let mut table = PageTable::new(&["", ""]);
    let mut row = |name: &str, value: String| table.row([Cell::text(name), Cell::Number(value)]);
    row("transactions", number(report.transactions as f64, 0));
    row("retried", number(report.retries as f64, 0));
    row("failed", number(report.failed as f64, 0));
    row(
        "statements of a transaction",
        number(report.statements_per_transaction, 1),
    );
    row("mean, ms", number(report.mean_ms, 2));
    row("median, ms", number(report.p50_ms, 2));
    row("p95, ms", number(report.p95_ms, 2));
    row("p99, ms", number(report.p99_ms, 2));
    row("slowest, ms", number(report.max_ms, 2));
    row("tables", number(report.shape.tables.into(), 0));
    row("rows of each", number(report.shape.table_size.into(), 0));
    row(
        "processor time of the generator for each, µs",
        number(report.cpu_us_per_transaction, 0),
    );
    table
}
