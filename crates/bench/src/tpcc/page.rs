//! The report to pass on.

use super::report::{KindReport, SampleReport, TpccReport};
use evenkeel_op::units;
use evenkeel_report::page::number;
use evenkeel_report::{
    About, Axis, Bar, BarSeries, Bars, Cell, Fact, Page, PageTable, Part, Plot, Point, Series,
};

/// Writes what a run came to, for people who were not there.
#[must_use]
pub fn page(report: &TpccReport, about: About) -> Page {
    let mut lead = vec![format!(
        "The server took {} new orders a minute from {}, over {} seconds, with the tables of {}.",
        number(report.tpmc, 0),
        units::count(report.connections, "connection"),
        number(report.seconds, 0),
        units::count(report.scale.warehouses, "warehouse"),
    )];
    if let Some(like) = report.like {
        lead.push(format!(
            "This repeats the faults of {like}, so compare it only with results of {like}. The \
             faults are listed at the end."
        ));
    }
    lead.push(verdict(report));
    let mut parts = vec![
        Part::Heading("Over time".to_owned()),
        super::plot(report).into(),
        response(report).into(),
        Part::Heading("The five transactions".to_owned()),
        Part::Table(kinds(&report.kinds)),
        bars(&report.kinds).into(),
    ];
    if !report.failures.is_empty() || report.sessions_lost > 0 {
        parts.push(Part::Heading("What went wrong".to_owned()));
        let lost = format!("{} lost", units::count(report.sessions_lost, "session"));
        let failures = report.failures.iter();
        let reported = failures
            .map(|(reported, times)| format!("{}: {reported}", units::count(times, "time")));
        parts.push(Part::Points(
            std::iter::once(lost).chain(reported).collect(),
        ));
    }
    parts.push(Part::Heading("How this differs from TPC-C".to_owned()));
    parts.push(Part::Text(
        "The transactions and tables are those of TPC-C 5.11. This is not an audited tpmC:"
            .to_owned(),
    ));
    parts.push(Part::Points(report.deviations.clone()));
    Page {
        title: format!("TPC-C: {} new orders a minute", number(report.tpmc, 0)),
        lead,
        headline: headline(report),
        parts,
        about,
    }
}

/// Says whether the result counts, and why not.
fn verdict(report: &TpccReport) -> String {
    let broken = report.conditions.iter().filter(|one| one.is_broken());
    let broken: Vec<String> = broken.map(|one| one.number.to_string()).collect();
    let late: Vec<&str> = report
        .kinds
        .iter()
        .filter(|kind| !kind.is_in_time())
        .map(|kind| kind.name)
        .collect();
    match report.ended {
        "time" if !broken.is_empty() => format!(
            "This does not count: afterwards the tables broke the conditions {}.",
            broken.join(", ")
        ),
        "time" if late.is_empty() => {
            "Each kind of transaction kept the specification's limit for its response time."
                .to_owned()
        }
        "time" => format!(
            "Too slow for the specification's limits: {}.",
            late.join(", ")
        ),
        "failures" => "This does not count: too many transactions failed.".to_owned(),
        "server" => "This does not count: the server was down at the end.".to_owned(),
        _ => "This does not count: the run was ended early.".to_owned(),
    }
}

fn headline(report: &TpccReport) -> Vec<Fact> {
    let new_order = report.kinds.first();
    let ms = |of: fn(&KindReport) -> f64| {
        new_order.map_or(String::new(), |kind| format!("{} ms", number(of(kind), 1)))
    };
    vec![
        Fact::new("new orders a minute", number(report.tpmc, 0)),
        Fact::new("New-Order, median", ms(|kind| kind.p50_ms)),
        Fact::new("New-Order, p95", ms(|kind| kind.p95_ms)),
        Fact::new("New-Order, slowest", ms(|kind| kind.max_ms)),
    ]
}

/// Response times of New-Order over time.
fn response(report: &TpccReport) -> Plot {
    let line = |name: &str, group, of: fn(&SampleReport) -> f64| Series {
        name: name.to_owned(),
        group,
        is_dashed: false,
        points: report
            .intervals
            .iter()
            .map(|sample| Point {
                x: sample.at_s - sample.seconds / 2.0,
                y: of(sample),
                spread: None,
            })
            .collect(),
    };
    Plot {
        title: "Response time of New-Order in each interval".to_owned(),
        x: Axis::linear("time, s (before 0: ramp-up)"),
        y: Axis::logarithmic("response time, ms"),
        series: vec![
            line("p95", 0, |sample| sample.p95_ms),
            line("p99", 1, |sample| sample.p99_ms),
            line("slowest", 3, |sample| {
                sample.max_ms.first().copied().unwrap_or(0.0)
            }),
        ],
        events: super::plot::ramp_up(&report.intervals),
        note: String::new(),
    }
}

fn kinds(kinds: &[KindReport]) -> PageTable {
    let mut table = PageTable::new(&[
        "",
        "done",
        "share",
        "retried",
        "failed",
        "mean, ms",
        "p50, ms",
        "p90, ms",
        "p99, ms",
        "slowest, ms",
        "limit",
    ]);
    for kind in kinds {
        let count = |value: u64| Cell::number(value as f64, 0);
        let ms = |value| Cell::number(value, 1);
        let limit = format!("90 % in {}", kind.limit());
        table.row([
            Cell::text(kind.name),
            count(kind.done),
            Cell::Number(format!("{:.1} %", kind.share_percent)),
            count(kind.retries),
            count(kind.failed),
            ms(kind.mean_ms),
            ms(kind.p50_ms),
            ms(kind.p90_ms),
            ms(kind.p99_ms),
            ms(kind.max_ms),
            match kind.is_in_time() {
                true => Cell::Good(format!("{limit}: kept")),
                false => Cell::Bad(format!("{limit}: broken")),
            },
        ]);
    }
    table
}

/// Percentiles side by side.
fn bars(kinds: &[KindReport]) -> Bars {
    let series = |name: &str, of: fn(&KindReport) -> f64| BarSeries {
        name: name.to_owned(),
        bars: kinds
            .iter()
            .map(|kind| {
                Some(Bar {
                    value: of(kind),
                    spread: None,
                })
            })
            .collect(),
    };
    Bars {
        title: "Response times by kind of transaction".to_owned(),
        axis: Axis::linear("response time, ms"),
        groups: kinds.iter().map(|kind| kind.name.to_owned()).collect(),
        series: vec![
            series("p50", |kind| kind.p50_ms),
            series("p95", |kind| kind.p95_ms),
            series("p99", |kind| kind.p99_ms),
        ],
        note: String::new(),
    }
}
