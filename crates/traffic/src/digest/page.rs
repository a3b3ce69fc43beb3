//! The digest as a page: what cost the most, when, and how long one takes.

use super::{Change, Changed, Class, Explained, Explanations, Summary};
use evenkeel_report::compare::p_value;
use evenkeel_report::page::number;
use evenkeel_report::{
    About, Axis, Bar, BarSeries, Bars, Cell, Fact, Page, PageTable, Part, Plot, Point, Series,
};

/// Of how many classes the details are shown.
const DETAILS: usize = 5;
/// How much of a statement stands in a table or above a plot.
const TITLE: usize = 90;
/// How much of one is the label of a bar.
const LABEL: usize = 48;
/// How much of the slowest one is shown.
const SAMPLE: usize = 1000;

/// Makes the page; so many classes at most stand in its tables.
#[must_use]
pub fn page(
    summary: &Summary,
    changes: Option<&[Change]>,
    explained: &Explanations,
    top: usize,
    about: About,
) -> Page {
    let total = &summary.total;
    let seconds = summary.seconds();
    let mut page = Page {
        title: "Which statements cost the most".to_owned(),
        lead: lead(summary),
        headline: vec![
            Fact::new("statements", number(total.count as f64, 0)),
            Fact::new("a second", number(total.count as f64 / seconds, 1)),
            Fact::new("classes", number(summary.classes.len() as f64, 0)),
        ],
        about,
        ..Page::default()
    };
    if total.timed > 0 {
        page.headline.push(Fact::new(
            "seconds in all",
            number(total.sum_ns as f64 / 1e9, 2),
        ));
    }
    if total.errors > 0 {
        page.headline
            .push(Fact::new("failed", number(total.errors as f64, 0)));
    }
    let top = top.min(summary.classes.len());
    let shown = &summary.classes[..top];
    page.parts.push(profile(summary, shown));
    page.parts.push(table(summary, shown));
    let over_time = over_time(summary, shown);
    if over_time.has_a_line() {
        page.parts.push(over_time.into());
    }
    if let Some(changes) = changes {
        page.parts.push(Part::Heading(
            "What changed since the earlier digest".to_owned(),
        ));
        page.parts.push(changed_part(changes, top.max(10)));
    }
    for (place, class) in shown.iter().take(DETAILS.max(explained.len())).enumerate() {
        details(&mut page.parts, summary, place + 1, class);
        if let Some(explained) = explained.get(&class.id) {
            page.parts.push(plan(explained));
        }
    }
    page
}

fn lead(summary: &Summary) -> Vec<String> {
    let Some(first) = summary.classes.first() else {
        return vec!["There are no statements.".to_owned()];
    };
    let share = share(summary, first);
    let what = if summary.total.timed > 0 {
        "time"
    } else {
        "statements"
    };
    let mut lead = vec![format!(
        "{share:.0} % of the {what} is of one class: {}",
        short(&first.fingerprint)
    )];
    if summary.folded > 0 {
        let others = number(summary.others.count as f64, 0);
        lead.push(format!(
            "{others} statements of rare classes are counted together."
        ));
    }
    lead
}

/// A class's part of all time, in percent; of all statements, where no time is known.
fn share(summary: &Summary, class: &Class) -> f64 {
    let (part, all) = match summary.total.timed {
        0 => (class.count, summary.total.count),
        _ => (class.sum_ns, summary.total.sum_ns),
    };
    100.0 * part as f64 / all.max(1) as f64
}

/// Makes one line of a text, short enough for a table.
pub(crate) fn short(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace(char::is_control, "\u{fffd}");
    head(&text, TITLE)
}

/// Makes a text short enough for a bar's label.
pub(crate) fn label(text: &str) -> String {
    head(&short(text), LABEL)
}

fn head(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn profile(summary: &Summary, shown: &[Class]) -> Part {
    let bar = |class: &Class| {
        Some(Bar {
            value: share(summary, class),
            spread: None,
        })
    };
    let first = &shown[..shown.len().min(10)];
    let what = if summary.total.timed > 0 {
        "time"
    } else {
        "statements"
    };
    Bars {
        title: format!("Share of the {what} of each class"),
        axis: Axis::linear("%"),
        groups: first
            .iter()
            .zip(1..)
            .map(|(class, place)| format!("{place}. {}", label(&class.fingerprint)))
            .collect(),
        series: vec![BarSeries {
            name: String::new(),
            bars: first.iter().map(bar).collect(),
        }],
        note: String::new(),
    }
    .into()
}

fn ms(ns: f64) -> Cell {
    Cell::number(ns / 1e6, 3)
}

fn table(summary: &Summary, shown: &[Class]) -> Part {
    let mut table = PageTable::new(&[
        "#",
        "class",
        "share, %",
        "count",
        "a second",
        "average, ms",
        "95 %, ms",
        "99 %, ms",
        "slowest, ms",
        "rows sent",
        "rows examined",
        "failed",
    ]);
    for (class, place) in shown.iter().zip(1..) {
        let within = |share| {
            class
                .within_us(share)
                .map_or(f64::NAN, |us| us as f64 * 1000.0)
        };
        let slowest = if class.timed > 0 {
            class.max_ns as f64
        } else {
            f64::NAN
        };
        table.row([
            Cell::Number(place.to_string()),
            Cell::text(short(&class.fingerprint)),
            Cell::number(share(summary, class), 1),
            Cell::number(class.count as f64, 0),
            Cell::number(class.count as f64 / summary.seconds(), 2),
            ms(class.avg_ns().map_or(f64::NAN, |ns| ns as f64)),
            ms(within(0.95)),
            ms(within(0.99)),
            ms(slowest),
            known(class.rows_sent),
            known(class.rows_examined),
            Cell::number(class.errors as f64, 0),
        ]);
    }
    Part::Table(table)
}

/// What no source says is no zero.
fn known(count: Option<u64>) -> Cell {
    Cell::number(count.map_or(f64::NAN, |count| count as f64), 0)
}

/// Points for each interval, from the first with statements to the last.
fn points(
    summary: &Summary,
    class: &Class,
    value: impl Fn(&super::Bucket) -> Option<f64>,
) -> Vec<Point> {
    let width = summary.series_width_ns as f64 / 1e9;
    let all = &summary.total.series.buckets;
    let used = |bucket: &super::Bucket| bucket.count > 0;
    let first = all.iter().position(used).unwrap_or(0);
    let last = all.iter().rposition(used).map_or(0, |last| last + 1);
    let own = class
        .series
        .buckets
        .iter()
        .enumerate()
        .take(last)
        .skip(first);
    let points = own.filter_map(|(place, bucket)| {
        Some(Point {
            x: (place - first) as f64 * width,
            y: value(bucket)?,
            spread: None,
        })
    });
    points.collect()
}

fn over_time(summary: &Summary, shown: &[Class]) -> Plot {
    let width = summary.series_width_ns as f64 / 1e9;
    let line = |name: String, group: usize, class: &Class| Series {
        name,
        group,
        is_dashed: group == 0,
        points: points(summary, class, |bucket| Some(bucket.count as f64 / width)),
    };
    let mut series = vec![line("all".to_owned(), 0, &summary.total)];
    for (place, class) in shown.iter().take(3).enumerate() {
        series.push(line(format!("class {}", place + 1), place + 1, class));
    }
    Plot {
        title: "Statements a second".to_owned(),
        x: Axis::linear("time since the beginning, seconds"),
        y: Axis::linear("statements a second"),
        series,
        events: Vec::new(),
        note: format!(
            "Each point is the mean of an interval of {} s.",
            number(width, 0)
        ),
    }
}

fn details(parts: &mut Vec<Part>, summary: &Summary, place: usize, class: &Class) {
    parts.push(Part::Heading(format!(
        "{place}. {}",
        short(&class.fingerprint)
    )));
    let names = |names: &super::Names| {
        let mut all: Vec<String> = names
            .all()
            .iter()
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        if names.others > 0 {
            all.push(format!("others ({})", names.others));
        }
        all.join(", ")
    };
    let mut points = vec![format!("Identifier {}", class.id)];
    for (what, reported) in [
        ("Users", names(&class.users)),
        ("Hosts", names(&class.hosts)),
        ("Schemas", names(&class.schemas)),
    ] {
        if !reported.is_empty() {
            points.push(format!("{what}: {reported}"));
        }
    }
    parts.push(Part::Points(points));
    if class.timed > 0 {
        parts.push(histogram(class));
        let latency = latency(summary, class);
        if latency.has_a_line() {
            parts.push(latency.into());
        }
    }
    if let Some(sample) = &class.sample {
        let which = if class.timed > 0 {
            "The slowest"
        } else {
            "The first"
        };
        let sql = head(&sample.sql, SAMPLE);
        parts.push(Part::Text(format!("{which}: {sql}")));
    }
}

/// How a server would run the sample.
fn plan(explained: &Explained) -> Part {
    let tables = match explained {
        Explained::Plan(plan) => &plan.tables,
        Explained::Not(why) => return Part::Text(format!("No plan: {why}.")),
        Explained::Failed(error) => {
            return Part::Text(format!("No plan: {}.", short(&error.chain())));
        }
    };
    let mut table = PageTable::new(&["table", "access", "index", "rows", "kept, %", "condition"]);
    for one in tables {
        let figure = |value: Option<f64>| Cell::number(value.unwrap_or(f64::NAN), 0);
        table.row([
            Cell::text(short(&one.table)),
            Cell::text(one.access.clone()),
            Cell::text(short(&one.key)),
            figure(one.rows),
            figure(one.filtered),
            Cell::text(short(&one.condition)),
        ]);
    }
    Part::Table(table)
}

fn histogram(class: &Class) -> Part {
    let steps = class.steps_us();
    let name = |us: u64| match us {
        us if us < 1000 => format!("up to {us} µs"),
        us if us < 1_000_000 => format!("up to {} ms", us / 1000),
        us => format!("up to {} s", us / 1_000_000),
    };
    let bar = |(_, count): &(u64, u64)| {
        Some(Bar {
            value: *count as f64,
            spread: None,
        })
    };
    Bars {
        title: "How long one takes".to_owned(),
        axis: Axis::linear("statements"),
        groups: steps.iter().map(|(up_to, _)| name(*up_to)).collect(),
        series: vec![BarSeries {
            name: String::new(),
            bars: steps.iter().map(bar).collect(),
        }],
        note: String::new(),
    }
    .into()
}

fn latency(summary: &Summary, class: &Class) -> Plot {
    let average = |bucket: &super::Bucket| {
        (bucket.timed > 0).then(|| bucket.sum_ns as f64 / bucket.timed as f64 / 1e6)
    };
    Plot {
        title: "How long one takes on average, over time".to_owned(),
        x: Axis::linear("time since the beginning, seconds"),
        y: Axis::linear("milliseconds"),
        series: vec![Series {
            name: "average".to_owned(),
            group: 0,
            is_dashed: false,
            points: points(summary, class, average),
        }],
        events: Vec::new(),
        note: String::new(),
    }
}

/// Says how many times as often something comes: `50 times as often`, `33.3 % as often`.
#[must_use]
pub fn as_often(factor: f64) -> String {
    match factor {
        more if more >= 10.0 => format!("{more:.0} times as often"),
        some if some >= 1.0 => format!("{some:.1} times as often"),
        less => format!("{:.1} % as often", 100.0 * less),
    }
}

/// Shows what changed since an earlier digest.
pub(crate) fn changed_part(changes: &[Change], top: usize) -> Part {
    let reported = changes
        .iter()
        .filter(|change| !matches!(change.changed, Changed::Same(_)));
    let mut table = PageTable::new(&["", "class", "count", "seconds in all", "chance"]);
    for change in reported.take(top) {
        let (what, chance) = match &change.changed {
            Changed::New => (Cell::text("new"), String::new()),
            Changed::Gone => (Cell::text("gone"), String::new()),
            Changed::Same(_) => continue,
            Changed::Rate(factor) => (Cell::text(as_often(*factor)), String::new()),
            Changed::Latency(verdict) => {
                let percent = verdict.change_percent.unwrap_or(f64::NAN);
                let cell = match percent > 0.0 {
                    true => Cell::Bad(format!("{percent:.1} % slower")),
                    false => Cell::Good(format!("{:.1} % faster", -percent)),
                };
                (cell, p_value(verdict.p))
            }
        };
        let both = |values: [f64; 2], digits| {
            Cell::Number(values.map(|value| number(value, digits)).join(" → "))
        };
        table.row([
            what,
            Cell::text(short(&change.fingerprint)),
            both(change.count.map(|count| count as f64), 0),
            both(change.sum_us.map(|us| us / 1e6), 3),
            Cell::text(chance),
        ]);
    }
    match table.rows.is_empty() {
        true => Part::Text("No clear difference.".to_owned()),
        false => Part::Table(table),
    }
}
