//! The chart, and the report to pass on.

use super::method::NONE;
use super::report::{MeasurementState, ShowdownReport, Standing};
use evenkeel_report::compare::{Spread, p_value};
use evenkeel_report::page::number;
use evenkeel_report::{
    About, Axis, Bar, BarSeries, Bars, Cell, Fact, Page, PageTable, Part, Plot, Point, Series,
};

/// Draws what each method left of the throughput.
#[must_use]
pub fn throughput(report: &ShowdownReport) -> Bars {
    bars(
        report,
        "New orders a minute while it backs up",
        "new orders a minute (TpmC)",
        |method| method.tpmc,
    )
}

fn bars(
    report: &ShowdownReport,
    title: &str,
    axis: &str,
    value: fn(&Standing) -> Option<Spread>,
) -> Bars {
    let measured = report.methods.iter().filter(|method| method.is_measured());
    let shown: Vec<(&Standing, Spread)> = measured
        .filter_map(|method| Some((method, value(method)?)))
        .collect();
    Bars {
        title: title.to_owned(),
        axis: Axis::linear(axis),
        groups: shown.iter().map(|(m, _)| m.method.clone()).collect(),
        series: vec![BarSeries {
            name: String::new(),
            bars: shown
                .iter()
                .map(|(_, spread)| {
                    let is_wide = spread.least < spread.most;
                    Some(Bar {
                        value: spread.median,
                        spread: is_wide.then_some((spread.least, spread.most)),
                    })
                })
                .collect(),
        }],
        note: match report.repeat {
            1 => crate::ONE_RUN.to_owned(),
            _ => String::new(),
        },
    }
}

/// Writes it, for people who were not there.
#[must_use]
pub fn page(report: &ShowdownReport, about: About) -> Page {
    let mut parts = vec![
        Part::Heading("How the backup affected the server's clients".to_owned()),
        Part::Table(load_table(report)),
    ];
    parts.push(throughput(report).into());
    parts.push(
        bars(
            report,
            "The longest time without a commit",
            "longest stall, ms",
            |method| method.stall_ms,
        )
        .into(),
    );
    parts.push(over_time(report).into());
    parts.push(Part::Heading("The backups".to_owned()));
    parts.push(Part::Table(backup_table(report)));
    let missing = missing(report);
    if !missing.is_empty() {
        parts.push(Part::Points(missing));
    }
    parts.push(
        bars(
            report,
            "How long a restore takes, until a server greets a client",
            "restore time, s",
            |method| method.restore_s,
        )
        .into(),
    );
    if !report.verdict.bars.is_empty() {
        parts.push(Part::Heading("Goals for evenkeel's own backup".to_owned()));
        parts.push(Part::Table(goals(report)));
    }
    parts.push(Part::Heading("What was run".to_owned()));
    parts.push(Part::Points(commands(report)));
    parts.push(Part::Heading("How it was measured".to_owned()));
    parts.push(Part::Points(rules(report)));
    Page {
        title: format!("Backups compared on {}", report.server),
        lead: report.verdict.says.clone(),
        headline: headline(report),
        parts,
        about,
    }
}

fn headline(report: &ShowdownReport) -> Vec<Fact> {
    let undisturbed = report.methods.iter().find(|method| method.method == NONE);
    let undisturbed = undisturbed.and_then(|method| method.tpmc);
    let of = |name: &Option<String>, p: Option<f64>| match (name, p) {
        (Some(name), _) => name.clone(),
        (None, Some(p)) => format!("no clear winner ({})", p_value(p)),
        (None, None) => "no clear winner".to_owned(),
    };
    let verdict = &report.verdict;
    vec![
        Fact::new(
            "TpmC undisturbed",
            undisturbed.map_or(String::new(), |spread| number(spread.median, 0)),
        ),
        Fact::new(
            "disturbs least",
            of(&verdict.least_disturbing, verdict.least_disturbing_p),
        ),
        Fact::new(
            "restored fastest",
            of(&verdict.fastest_restored, verdict.fastest_restored_p),
        ),
    ]
}

/// How the backup affected the server's clients.
fn load_table(report: &ShowdownReport) -> PageTable {
    let mut table = PageTable::new(&[
        "method",
        "TpmC",
        "of undisturbed",
        "least to most",
        "lost per backup",
        "p95, ms",
        "p99, ms",
        "slowest, ms",
        "stall, ms",
    ]);
    for method in report.methods.iter().filter(|method| method.is_measured()) {
        let percent = method.percent;
        table.row([
            Cell::text(&method.method),
            shown(method.tpmc, 1.0, 0),
            percent.map_or(Cell::text(""), |percent| {
                Cell::Number(format!("{} %", number(percent.median, 1)))
            }),
            percent.map_or(Cell::text(""), |percent| {
                let (least, most) = (number(percent.least, 1), number(percent.most, 1));
                Cell::Number(format!("{least} to {most} %"))
            }),
            shown(method.lost, 1.0, 0),
            shown(method.p95_ms, 1.0, 1),
            shown(method.p99_ms, 1.0, 1),
            shown(method.max_ms, 1.0, 0),
            shown(method.stall_ms, 1.0, 0),
        ]);
    }
    table
}

/// The backups.
fn backup_table(report: &ShowdownReport) -> PageTable {
    let mut table = PageTable::new(&[
        "method",
        "backups",
        "first, s",
        "next, s",
        "first, CPU s",
        "next, CPU s",
        "first, MiB",
        "next, MiB",
        "restore, s",
        "restored",
    ]);
    let mib = f64::from(1 << 20);
    let measured = report.methods.iter().filter(|method| method.is_measured());
    for method in measured.filter(|method| method.backups > 0) {
        table.row([
            Cell::text(&method.method),
            Cell::number(method.backups as f64, 0),
            shown(method.first_s, 1.0, 2),
            shown(method.next_s, 1.0, 2),
            shown(method.first_cpu_s, 1.0, 2),
            shown(method.next_cpu_s, 1.0, 2),
            shown(method.first_bytes, mib, 1),
            shown(method.next_bytes, mib, 1),
            shown(method.restore_s, 1.0, 1),
            match method.is_sound {
                Some(true) => Cell::Good("sound".to_owned()),
                Some(false) => Cell::Bad("NOT SOUND".to_owned()),
                None => Cell::text("not tried"),
            },
        ]);
    }
    table
}

fn shown(spread: Option<Spread>, unit: f64, digits: usize) -> Cell {
    spread.map_or(Cell::text(""), |spread| {
        Cell::number(spread.median / unit, digits)
    })
}

/// Those of which there are no figures, and why.
fn missing(report: &ShowdownReport) -> Vec<String> {
    let reported = report.methods.iter().filter_map(|method| {
        let name = &method.method;
        match &method.state {
            MeasurementState::Measured => method.outlasts.then(|| {
                format!(
                    "{name}: its backup took longer than the measurement, and finished without load"
                )
            }),
            MeasurementState::LeftOut(why) => Some(format!("{name} is left out: {why}")),
            MeasurementState::Failed(why) => Some(format!("{name} FAILED: {why}")),
        }
    });
    reported.collect()
}

/// New orders second by second, in the first round of each.
fn over_time(report: &ShowdownReport) -> Plot {
    let rounds = report.rounds.iter();
    let first = rounds.filter(|round| round.repetition == 0 && round.failed.is_none());
    let series = first.enumerate().map(|(group, round)| Series {
        name: round.method.clone(),
        group,
        is_dashed: false,
        points: round
            .new_orders_per_s
            .iter()
            .enumerate()
            .map(|(second, rate)| Point {
                x: second as f64 + 1.0,
                y: *rate,
                spread: None,
            })
            .collect(),
    });
    Plot {
        title: "New orders in each second, first round of each".to_owned(),
        x: Axis::linear("time, s"),
        y: Axis::linear("new orders per second"),
        series: series.collect(),
        events: Vec::new(),
        note: String::new(),
    }
}

fn goals(report: &ShowdownReport) -> PageTable {
    let mut table = PageTable::new(&["method", "goal", "measured", ""]);
    for bar in &report.verdict.bars {
        table.row([
            Cell::text(&bar.method),
            Cell::text(&bar.asked),
            Cell::text(&bar.measured),
            match bar.held {
                true => Cell::Good("reached".to_owned()),
                false => Cell::text("not reached here"),
            },
        ]);
    }
    table
}

fn commands(report: &ShowdownReport) -> Vec<String> {
    let mut all = Vec::new();
    for method in &report.methods {
        let name = &method.method;
        all.extend(method.command.iter().map(|line| format!("{name}: {line}")));
        let restore = method.restore_command.iter();
        all.extend(restore.map(|line| format!("{name}, restored by: {line}")));
    }
    all
}

/// What has to be known to read the figures.
fn rules(report: &ShowdownReport) -> Vec<String> {
    let mut rules = vec![
        format!(
            "Each method had {} rounds, one in each repetition, in random order. Percentages compare with the \
             undisturbed round of the same repetition; figures are medians of rounds.",
            report.repeat
        ),
        format!(
            "A round begins with the same data directory, copied byte by byte, on {}; {} connections run TPC-C \
             on {} warehouses, {} s before anything counts and {} s measured.",
            report.filesystem,
            report.connections,
            report.warehouses,
            report.ramp_up_s,
            report.measure_s
        ),
        format!(
            "The method runs again {}, until the time is over. Incremental methods make a full \
             backup first in each round, and incremental ones afterwards.",
            match report.every_s > 0.0 {
                true => format!(
                    "as soon as it has ended, but not before {} s after its start",
                    report.every_s
                ),
                false => "as soon as it has ended".to_owned(),
            }
        ),
        "Response times are New-Order's. A stall is the longest time without a commit. Processor time is that of the backup's processes, not of \
         the server."
            .to_owned(),
        "The last backup of each round was restored. For files, the time ends when a server that was started \
         on them greets a client; it includes preparing the files and syncing them to disk (mariadb-backup \
         leaves syncing to the kernel, so `sync` follows it). For rows, the time is for loading them into an \
         empty server that was already running. Then TPC-C's twelve conditions were checked on the restored \
         server."
            .to_owned(),
        "Server, load, backups and what they write share one machine. If the server's filesystem was \
         created for the measurement, backups are outside of it. No caches are emptied."
            .to_owned(),
    ];
    if !report.is_specified {
        rules.push(
            "The tables are smaller than the specification's: this shows only that it works."
                .to_owned(),
        );
    }
    rules
}
