//! The report to pass on.

use super::report::{ExperimentReport, Metric};
use evenkeel_report::page::number;
use evenkeel_report::{About, Axis, Bar, BarSeries, Bars, Cell, Page, PageTable, Part};

/// Writes what an experiment came to, for people who were not there.
#[must_use]
pub fn page(report: &ExperimentReport, about: About) -> Page {
    let title = match report.experiment {
        "inserts" => "Ways to insert rows",
        "compression" => "What InnoDB's row and page formats cost",
        "cache" => "A cache before a table",
        other => other,
    };
    let runs = match report.repeat {
        1 => "once: trust only large differences".to_owned(),
        more => format!("{more} times, in turn, in random order"),
    };
    let mut lead = vec![format!("{} Each variant was run {runs}.", report.did)];
    lead.extend(report.found.iter().cloned());
    let mut parts = Vec::new();
    for metric in &report.metrics {
        parts.push(bars(report, metric).into());
    }
    parts.push(Part::Heading(
        "Medians, with minimum and maximum in brackets".to_owned(),
    ));
    parts.push(Part::Table(table(report)));
    let left_out = report.arms.iter();
    let left_out: Vec<String> = left_out
        .filter_map(|arm| Some(format!("{}: {}", arm.name, arm.left_out.as_ref()?)))
        .collect();
    if !left_out.is_empty() {
        parts.push(Part::Heading("Left out".to_owned()));
        parts.push(Part::Points(left_out));
    }
    Page {
        title: title.to_owned(),
        lead,
        headline: Vec::new(),
        parts,
        about,
    }
}

fn bars(report: &ExperimentReport, metric: &Metric) -> Bars {
    let arms = report.arms.iter().filter(|arm| arm.left_out.is_none());
    let (groups, bars) = arms
        .map(|arm| {
            let runs = arm.runs.get(metric.name).map_or(&[][..], Vec::as_slice);
            (arm.name.clone(), Bar::median_of(runs))
        })
        .unzip();
    let shown: &Vec<Option<Bar>> = &bars;
    let values = shown.iter().flatten().map(|bar| bar.value);
    let axis = Axis::fitting(metric.says, values);
    Bars {
        title: match metric.more_is_better {
            true => format!("{}: more is better", metric.says),
            false => format!("{}: less is better", metric.says),
        },
        axis,
        groups,
        series: vec![BarSeries {
            name: String::new(),
            bars,
        }],
        note: match report.repeat {
            1 => crate::ONE_RUN.to_owned(),
            _ => String::new(),
        },
    }
}

fn table(report: &ExperimentReport) -> PageTable {
    let mut table = PageTable::new(&[""]);
    let heads = report.metrics.iter().map(|metric| metric.says.to_owned());
    table.heads.extend(heads);
    for arm in report.arms.iter().filter(|arm| arm.left_out.is_none()) {
        let mut row = vec![Cell::text(&arm.name)];
        for metric in &report.metrics {
            let reported = |value| number(value, metric.digits);
            row.push(Cell::Number(match arm.summary.get(metric.name) {
                Some(one) if one.least == one.most => reported(one.median),
                Some(one) => format!(
                    "{} ({} to {})",
                    reported(one.median),
                    reported(one.least),
                    reported(one.most)
                ),
                None => String::new(),
            }));
        }
        table.row(row);
    }
    table
}
