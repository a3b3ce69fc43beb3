//! A replay as a page: what ran, how outcomes differ, and how long each class took, then and now.

use super::{Difference, Differences, Example, Outcome, Plan};
use crate::digest::{Change, Changed, Class, changed_part, label, short};
use crate::named_error;
use evenkeel_op::units;
use evenkeel_report::page::number;
use evenkeel_report::{
    About, Axis, Bar, BarSeries, Bars, Cell, Fact, Page, PageTable, Part, Plot, Point, Series,
};

/// Of how many classes the latency is drawn.
const DRAWN: usize = 10;

/// Makes the page; so many classes at most stand in its tables.
#[must_use]
pub fn page(
    plan: &Plan,
    outcome: &Outcome,
    latency: &[Change],
    changes: Option<&[Change]>,
    top: usize,
    about: About,
) -> Page {
    let mut all = Differences::default();
    for one in &outcome.differences {
        all.merge(one);
    }
    let mut page = Page {
        title: "Captured statements, replayed".to_owned(),
        lead: lead(plan, outcome, &all, latency),
        headline: vec![
            Fact::new("statements", number(outcome.statements as f64, 0)),
            Fact::new("sessions", number(plan.sessions() as f64, 0)),
            Fact::new("seconds", number(outcome.seconds, 1)),
            Fact::new("other outcomes", number(all.counted() as f64, 0)),
        ],
        about,
        ..Page::default()
    };
    let shown = top.min(plan.original.classes.len());
    let pairs: Vec<(&Class, &Class)> = plan
        .original
        .classes
        .iter()
        .zip(&outcome.summary.classes)
        .take(shown)
        .collect();
    page.parts.push(averages(&pairs));
    page.parts.push(table(&pairs, outcome, latency));
    let over_time = over_time(plan, outcome);
    if over_time.has_a_line() {
        page.parts.push(over_time.into());
    }
    if all.all().next().is_some() {
        page.parts.push(Part::Heading(
            "Outcomes that are not those of the capture".to_owned(),
        ));
        page.parts.push(differences(&all));
    }
    if let Some(changes) = changes {
        page.parts.push(Part::Heading(
            "What changed since the earlier replay".to_owned(),
        ));
        page.parts.push(changed_part(changes, top.max(10)));
    }
    page
}

fn lead(plan: &Plan, outcome: &Outcome, all: &Differences, latency: &[Change]) -> Vec<String> {
    let count = |wanted: fn(&Change) -> bool| latency.iter().filter(|one| wanted(one)).count();
    let slower = count(|one| is_moved(one, |now, before| now > before));
    let faster = count(|one| is_moved(one, |now, before| now < before));
    let mut lead = vec![match (slower, faster) {
        (0, 0) => {
            "No class of statements is clearly slower or faster than in the capture.".to_owned()
        }
        _ => format!(
            "Classes of statements: {}. Slower than in the capture: {slower}. Faster: {faster}.",
            latency.len()
        ),
    }];
    lead.push(match all.counted() {
        0 => "Errors and rows are those of the capture, as far as it has them.".to_owned(),
        some => format!("{some} statements had another outcome than in the capture."),
    });
    let incomparable: Vec<String> = all
        .incomparable()
        .map(|(why, count, _)| format!("{count} {}", why.says()))
        .collect();
    if !incomparable.is_empty() {
        lead.push(format!(
            "What rows contain was compared of {} statements, and not of those: {}.",
            all.results_compared,
            incomparable.join("; ")
        ));
    }
    let left: u64 = plan.left.values().sum();
    if left + outcome.lost > 0 {
        let mut reasons = plan.reasons();
        if outcome.lost > 0 {
            reasons.push(format!("{} were in sessions that were lost", outcome.lost));
        }
        lead.push(format!("Not replayed: {}.", reasons.join("; ")));
    }
    lead
}

/// Returns how many times as long one takes as before, on average, if that is more than chance.
#[must_use]
pub fn factor(change: &Change, before: &Class, now: &Class) -> Option<f64> {
    let Changed::Latency(verdict) = &change.changed else {
        return None;
    };
    let factor = now.avg_ns()? as f64 / before.avg_ns()?.max(1) as f64;
    // A few long ones may move the average the other way: then neither says much.
    ((factor > 1.0) == (verdict.medians[1] > verdict.medians[0])).then_some(factor)
}

/// Writes how many times as long something takes.
#[must_use]
pub fn times(factor: f64) -> String {
    match factor {
        few if few < 2.0 => format!("{:+.0} %", 100.0 * (few - 1.0)),
        some if some < 10.0 => format!("{some:.1} times"),
        many => format!("{many:.0} times"),
    }
}

fn is_moved(change: &Change, is: fn(f64, f64) -> bool) -> bool {
    matches!(&change.changed, Changed::Latency(verdict) if is(verdict.medians[1], verdict.medians[0]))
}

fn averages(pairs: &[(&Class, &Class)]) -> Part {
    let first = &pairs[..pairs.len().min(DRAWN)];
    let bars = |name: &str, of: fn(&(&Class, &Class)) -> Option<u64>| BarSeries {
        name: name.to_owned(),
        bars: first
            .iter()
            .map(|pair| {
                of(pair).map(|ns| Bar {
                    value: ns as f64 / 1e6,
                    spread: None,
                })
            })
            .collect(),
    };
    let series = vec![
        bars("captured", |pair| pair.0.avg_ns()),
        bars("replayed", |pair| pair.1.avg_ns()),
    ];
    let values = series.iter().flat_map(|one| one.bars.iter().flatten());
    Bars {
        title: "How long a statement took on average".to_owned(),
        axis: Axis::fitting("ms", values.map(|bar| bar.value)),
        groups: first
            .iter()
            .zip(1..)
            .map(|((class, _), place)| format!("{place}. {}", label(&class.fingerprint)))
            .collect(),
        series,
        note: String::new(),
    }
    .into()
}

fn table(pairs: &[(&Class, &Class)], outcome: &Outcome, latency: &[Change]) -> Part {
    let mut table = PageTable::new(&[
        "#",
        "class",
        "count",
        "captured, ms",
        "replayed, ms",
        "95 %, captured",
        "95 %, replayed",
        "latency",
        "other outcomes",
    ]);
    let ms = |ns: Option<u64>| ns.map_or(Cell::text("–"), |ns| Cell::number(ns as f64 / 1e6, 3));
    let within = |class: &Class| ms(class.within_us(0.95).map(|us| us * 1000));
    for (place, (before, now)) in pairs.iter().enumerate() {
        let change = latency.iter().find(|change| change.id == before.id);
        let factor = change.and_then(|change| factor(change, before, now));
        let differ = outcome
            .differences
            .get(place)
            .map_or(0, Differences::counted);
        table.row(vec![
            Cell::number((place + 1) as f64, 0),
            Cell::text(short(&before.fingerprint)),
            Cell::number(now.count as f64, 0),
            ms(before.avg_ns()),
            ms(now.avg_ns()),
            within(before),
            within(now),
            Cell::text(factor.map_or(String::new(), times)),
            Cell::number(differ as f64, 0),
        ]);
    }
    Part::Table(table)
}

fn over_time(plan: &Plan, outcome: &Outcome) -> Plot {
    let width = plan.original.series_width_ns as f64 / 1e9;
    let line = |name: &str, group: usize, class: &Class| Series {
        name: name.to_owned(),
        group,
        is_dashed: group == 0,
        points: points(class, width),
    };
    Plot {
        title: "How long a statement took, through the capture".to_owned(),
        x: Axis::linear("time since the capture began, seconds"),
        y: Axis::linear("average, ms"),
        series: vec![
            line("captured", 0, &plan.original.total),
            line("replayed", 1, &outcome.summary.total),
        ],
        events: Vec::new(),
        note: format!(
            "Each point is the average of the statements that were captured in an interval of {} s.",
            number(width, 0)
        ),
    }
}

fn points(class: &Class, width: f64) -> Vec<Point> {
    let buckets = class.series.buckets.iter().enumerate();
    let timed = buckets.filter(|(_, bucket)| bucket.timed > 0);
    timed
        .map(|(place, bucket)| Point {
            x: place as f64 * width,
            y: bucket.sum_ns as f64 / bucket.timed as f64 / 1e6,
            spread: None,
        })
        .collect()
}

/// Says what a statement came to, as far as known.
#[must_use]
pub fn came_to(error: Option<u16>, rows: Option<u64>, affected: Option<u64>) -> String {
    match (error, rows, affected) {
        (Some(error), ..) => named_error(error),
        (None, Some(0), Some(affected)) if affected > 0 => format!("changed {affected}"),
        (None, Some(rows), _) => units::count(rows, "row"),
        (None, None, Some(affected)) => format!("changed {affected}"),
        (None, None, None) => "unknown".to_owned(),
    }
}

fn differences(all: &Differences) -> Part {
    let mut table = PageTable::new(&["what", "example", "captured", "replayed", "count"]);
    for one in all.all() {
        table.row(Vec::from(difference(one)));
    }
    Part::Table(table)
}

/// Returns the cells about a difference: what, an example, what it came to before and now, how often.
pub(super) fn difference(
    (difference, count, example): (Difference, u64, Option<&Example>),
) -> [Cell; 5] {
    let of = |text: fn(&Example) -> String| Cell::text(example.map_or(String::new(), text));
    [
        Cell::text(difference.says()),
        of(|example| short(&example.sql)),
        of(|example| came_to(example.before.0, example.before.1, example.before.2)),
        of(|example| came_to(example.now.0, Some(example.now.1), Some(example.now.2))),
        Cell::number(count as f64, 0),
    ]
}
