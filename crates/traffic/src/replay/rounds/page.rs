//! Rounds as a page: what differs, how long each class took with either variant, and the runs one by one.

use super::super::Plan;
use super::super::page::difference;
use super::{ClassRuns, Rounds, letter};
use crate::digest::{label, short};
use evenkeel_report::compare::p_value;
use evenkeel_report::page::number;
use evenkeel_report::{
    About, Axis, Bar, BarSeries, Bars, Cell, Fact, Page, PageTable, Part, Plot, Point, Series,
};

/// Of how many classes the latency is drawn.
const DRAWN: usize = 10;
/// Makes the page. `names` says what each variant is; so many classes at most are in its table.
#[must_use]
pub fn page(plan: &Plan, rounds: &Rounds, names: &[String], top: usize, about: About) -> Page {
    let mut page = Page {
        title: match rounds.variants() {
            1 => "Captured statements, replayed in rounds".to_owned(),
            _ => "Captured statements, replayed with A and B".to_owned(),
        },
        lead: lead(plan, rounds),
        headline: vec![
            Fact::new(
                "statements in each run",
                number(rounds.statements as f64, 0),
            ),
            Fact::new("sessions", number(plan.sessions() as f64, 0)),
            Fact::new("rounds", number(rounds.rounds as f64, 0)),
            Fact::new("other outcomes", number(rounds.differences() as f64, 0)),
        ],
        about,
        ..Page::default()
    };
    let named = names.iter().enumerate();
    let named = named.map(|(place, name)| format!("{}: {name}", letter(place)));
    page.parts.push(Part::Points(named.collect()));
    page.parts.push(averages(rounds));
    page.parts.push(table(rounds, top));
    page.parts.push(one_by_one(rounds));
    if rounds.other_results().next().is_some() {
        page.parts
            .push(Part::Heading("Results of A and B that differ".to_owned()));
        page.parts.push(others(rounds));
    }
    if rounds
        .total
        .differences
        .iter()
        .any(|all| all.all().next().is_some())
    {
        page.parts.push(Part::Heading(
            "Outcomes that are not those of the capture".to_owned(),
        ));
        page.parts.push(differences(rounds));
    }
    page
}

/// Writes a change: `+12.3 %`.
#[must_use]
pub fn percent(change: f64) -> String {
    format!("{change:+.1} %")
}

fn lead(plan: &Plan, rounds: &Rounds) -> Vec<String> {
    let mut lead = Vec::new();
    if let Some(verdict) = &rounds.total.verdict {
        lead.push(verdict.says("Average of all statements, µs", false));
        let moved = |is: fn(f64) -> bool| {
            let all = rounds.classes.iter().filter_map(ClassRuns::change_percent);
            all.filter(|change| is(*change)).count()
        };
        lead.push(format!(
            "Classes of statements: {}. Slower with B: {}. Faster: {}.",
            rounds.classes.len(),
            moved(|change| change > 0.0),
            moved(|change| change < 0.0)
        ));
        lead.push(match rounds.other_results().count() {
            0 => "Errors and row counts are the same with A and B.".to_owned(),
            some => format!("Classes whose results differ between A and B: {some}."),
        });
    }
    if let Some(needed) = rounds.rounds_needed() {
        lead.push(format!(
            "With so many classes, it takes {needed} rounds to tell a class that differs from chance."
        ));
    }
    let mut reasons = plan.reasons();
    if rounds.lost > 0 {
        reasons.push(format!("{} were in sessions that were lost", rounds.lost));
    }
    if !reasons.is_empty() {
        lead.push(format!("Not replayed: {}.", reasons.join("; ")));
    }
    lead
}

fn averages(rounds: &Rounds) -> Part {
    let shown = &rounds.classes[..rounds.classes.len().min(DRAWN)];
    let series: Vec<BarSeries> = (0..rounds.variants())
        .map(|variant| BarSeries {
            name: letter(variant).to_string(),
            bars: shown.iter().map(|class| bar(class, variant)).collect(),
        })
        .collect();
    let values = series.iter().flat_map(|one| one.bars.iter().flatten());
    let axis = Axis::fitting("ms", values.map(|bar| bar.value));
    Bars {
        title: "How long a statement took: the median of the runs' averages, and their range"
            .to_owned(),
        axis,
        groups: shown
            .iter()
            .zip(1..)
            .map(|(class, place)| format!("{place}. {}", label(&class.fingerprint)))
            .collect(),
        series,
        note: String::new(),
    }
    .into()
}

fn bar(class: &ClassRuns, variant: usize) -> Option<Bar> {
    let runs = class.runs[variant].iter();
    let all: Vec<f64> = runs.filter_map(|run| Some(run.avg_us? / 1000.0)).collect();
    Bar::median_of(&all)
}

fn table(rounds: &Rounds, top: usize) -> Part {
    let mut heads = vec!["#", "class"];
    let values = ["count", "captured, ms", "A, ms", "A, 95 %"];
    match rounds.variants() {
        1 => heads.extend(values),
        _ => {
            heads.extend(["B against A", "p"]);
            heads.extend(values);
            heads.extend(["B, ms", "B, 95 %"]);
        }
    }
    let mut table = PageTable::new(&heads);
    let classes = rounds.classes.iter().take(top);
    for (place, class) in std::iter::once(&rounds.total).chain(classes).enumerate() {
        let (place, name) = match place {
            0 => (Cell::text(""), "all".to_owned()),
            _ => (Cell::number(place as f64, 0), short(&class.fingerprint)),
        };
        let mut row = vec![place, Cell::text(name)];
        if rounds.variants() > 1 {
            row.extend(against(class));
        }
        let count = class.runs[0].first().map_or(0, |run| run.count);
        row.push(Cell::number(count as f64, 0));
        row.push(ms(class.captured.avg_us));
        for variant in 0..rounds.variants() {
            row.push(range(class, variant));
            row.push(ms(class.p95_us(variant)));
        }
        table.row(row);
    }
    Part::Table(table)
}

/// Whether B is slower, and how probable such a difference is by chance.
fn against(class: &ClassRuns) -> [Cell; 2] {
    let change = class.change_percent();
    let is = match change.map(|change| (change > 0.0, percent(change))) {
        Some((true, text)) => Cell::Bad(format!("slower: {text}")),
        Some((false, text)) => Cell::Good(format!("faster: {text}")),
        None => Cell::text("–"),
    };
    let p = class.verdict.as_ref().map(|one| p_value(one.p));
    [is, Cell::Number(p.unwrap_or_default())]
}

fn ms(us: Option<f64>) -> Cell {
    us.map_or(Cell::text("–"), |us| Cell::number(us / 1000.0, 3))
}

fn range(class: &ClassRuns, variant: usize) -> Cell {
    let Some(spread) = class.spread(variant) else {
        return Cell::text("–");
    };
    let ms = |us: f64| number(us / 1000.0, 3);
    Cell::Number(format!(
        "{} ({} to {})",
        ms(spread.median),
        ms(spread.least),
        ms(spread.most)
    ))
}

/// Each run at its place in the order of all: what changes slowly is seen.
fn one_by_one(rounds: &Rounds) -> Part {
    let line = |variant: usize| {
        let places = rounds.turns.iter().enumerate();
        let places = places.filter(|(_, turn)| turn.variant == variant);
        let runs = places.zip(&rounds.total.runs[variant]);
        Series {
            name: letter(variant).to_string(),
            group: variant,
            is_dashed: false,
            points: runs
                .filter_map(|((place, _), run)| {
                    Some(Point {
                        x: (place + 1) as f64,
                        y: run.avg_us? / 1000.0,
                        spread: None,
                    })
                })
                .collect(),
        }
    };
    Plot {
        title: "All statements, run by run".to_owned(),
        x: Axis::linear("run"),
        y: Axis::linear("average, ms"),
        series: (0..rounds.variants()).map(line).collect(),
        events: Vec::new(),
        note: "In the order in which they ran.".to_owned(),
    }
    .into()
}

fn others(rounds: &Rounds) -> Part {
    let mut table = PageTable::new(&["what", "class", "A", "B"]);
    for class in rounds.other_results() {
        for other in &class.others {
            let [a, b] = other.ranges.map(span);
            table.row(vec![
                Cell::text(other.says),
                Cell::text(short(&class.fingerprint)),
                Cell::Number(a),
                Cell::Number(b),
            ]);
        }
    }
    Part::Table(table)
}

/// Writes a range: `3`, or `3 to 5`.
#[must_use]
pub fn span((least, most): (u64, u64)) -> String {
    match least == most {
        true => number(least as f64, 0),
        false => format!("{} to {}", number(least as f64, 0), number(most as f64, 0)),
    }
}

fn differences(rounds: &Rounds) -> Part {
    let mut table = PageTable::new(&["", "what", "example", "captured", "replayed", "count"]);
    for (variant, all) in rounds.total.differences.iter().enumerate() {
        for one in all.all() {
            let cells = std::iter::once(Cell::text(letter(variant)));
            table.row(cells.chain(difference(one)).collect::<Vec<_>>());
        }
    }
    Part::Table(table)
}
