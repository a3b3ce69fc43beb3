//! The numbers behind a picture.

use super::{Cell, Figure, PageTable};
use crate::bars::rounded;
use crate::{Bars, Plot};

impl Figure {
    /// What is shown, in one line.
    pub(super) fn title(&self) -> &str {
        match self {
            Self::Plot(plot) => &plot.title,
            Self::Bars(bars) => &bars.title,
        }
    }

    pub(super) fn svg(&self) -> String {
        match self {
            Self::Plot(plot) => plot.to_part(),
            Self::Bars(bars) => bars.to_part(),
        }
    }

    /// Returns its numbers; the spread of each in brackets.
    pub(super) fn numbers(&self) -> PageTable {
        match self {
            Self::Plot(plot) => of_plot(plot),
            Self::Bars(bars) => of_bars(bars),
        }
    }

    /// Returns what happened meanwhile.
    pub(super) fn events(&self) -> Vec<String> {
        let Self::Plot(plot) = self else {
            return Vec::new();
        };
        let reported = plot.events.iter().map(|event| match event.to {
            Some(to) => format!(
                "{}: from {} to {to}",
                event.name,
                short(event.from),
                to = short(to)
            ),
            None => format!("{}: at {}", event.name, short(event.from)),
        });
        reported.collect()
    }
}

/// A row for each place along the first axis.
fn of_plot(plot: &Plot) -> PageTable {
    let mut table = PageTable::new(&[&plot.x.name]);
    table
        .heads
        .extend(plot.series.iter().map(|s| s.name.clone()));
    let all = plot.series.iter().flat_map(|series| &series.points);
    let mut places: Vec<f64> = all.map(|point| point.x).filter(|x| x.is_finite()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for x in places {
        let mut row = vec![Cell::Number(short(x))];
        for series in &plot.series {
            let point = series.points.iter().find(|point| point.x == x);
            row.push(Cell::Number(point.map_or(String::new(), |point| {
                with_spread(point.y, point.spread)
            })));
        }
        table.row(row);
    }
    table
}

fn of_bars(bars: &Bars) -> PageTable {
    let mut table = PageTable::new(&[""]);
    let name = |name: &str| match name {
        "" => bars.axis.name.clone(),
        name => name.to_owned(),
    };
    table
        .heads
        .extend(bars.series.iter().map(|s| name(&s.name)));
    for (number, group) in bars.groups.iter().enumerate() {
        let mut row = vec![Cell::text(group)];
        for series in &bars.series {
            let bar = series.bars.get(number).copied().flatten();
            row.push(Cell::Number(
                bar.map_or(String::new(), |bar| with_spread(bar.value, bar.spread)),
            ));
        }
        table.row(row);
    }
    table
}

fn with_spread(value: f64, spread: Option<(f64, f64)>) -> String {
    match spread {
        Some((least, most)) => format!("{} ({} to {})", short(value), short(least), short(most)),
        None => short(value),
    }
}

/// Writes a number with three digits that count at least.
fn short(value: f64) -> String {
    let text = super::number(rounded(value), 6);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
