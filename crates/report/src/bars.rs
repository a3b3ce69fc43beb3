//! Bars one below the other, lying, each group with its name above it, so that long names are readable where there
//! is little room: one colour for each series, the spread as a line.

use crate::canvas::{self, Area, LINE, Lines, Named, TEXT, Within};
use crate::plot::Axis;
use crate::scale::{Ruler, shown};
use plotters::chart::ChartContext;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;

/// Bars side by side.
#[derive(Debug, Clone)]
pub struct Bars {
    /// What is shown, in one line.
    pub title: String,
    /// What they count.
    pub axis: Axis,
    /// The rows, from above.
    pub groups: Vec<String>,
    /// The bars of each row, from above.
    pub series: Vec<BarSeries>,
    /// What has to be known to read it, in sentences below it; may be empty.
    pub note: String,
}

/// The bars of one colour.
#[derive(Debug, Clone)]
pub struct BarSeries {
    /// Its name in the legend; without a name it has no place there.
    pub name: String,
    /// One for each group; `None` where there is nothing to show.
    pub bars: Vec<Option<Bar>>,
}

/// One bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// How long it is.
    pub value: f64,
    /// The least and the most that was measured, where that is known.
    pub spread: Option<(f64, f64)>,
}

impl Bar {
    /// A bar for what was measured several times: its median and spread; `None` for no values.
    #[must_use]
    pub fn median_of(values: &[f64]) -> Option<Self> {
        let known: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let least = known.iter().copied().fold(f64::INFINITY, f64::min);
        let most = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            value: median(&known)?,
            spread: (known.len() > 1).then_some((least, most)),
        })
    }
}

/// Returns the value in the middle; `None` for no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The height of a bar.
const BAR: u32 = 20;
/// What is free below the bars of a group.
const GAP: u32 = 8;
/// The room of what is written below all bars: values, and what they are.
const BELOW: u32 = 2 * LINE + 8;
/// What is left free around them.
const AROUND: u32 = 10;
/// The values named along the axis, at most.
const NAMES: usize = 6;

/// Rows of pixels from above.
#[derive(Debug, Clone, Copy)]
struct Rows(f64);

impl Ranged for Rows {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = 1.0 - value / self.0;
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        Vec::new()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.0
    }
}

impl ValueFormatter<f64> for Rows {
    fn format_ext(&self, _: &f64) -> String {
        String::new()
    }
}

impl Bars {
    /// Draws them. Values that have no place on the axis are left out.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.draw(Within::File)
    }

    /// Draws them as part of a page.
    pub(crate) fn to_part(&self) -> String {
        self.draw(Within::Page)
    }

    fn draw(&self, within: Within) -> String {
        let named = self.series.iter().enumerate();
        let names: Vec<Named<'_>> = named
            .filter(|(_, series)| !series.name.is_empty())
            .map(|(group, series)| Named {
                name: &series.name,
                group,
                is_dashed: false,
            })
            .collect();
        let title = Lines::title(&self.title, within);
        let note = Lines::of(&self.note);
        let legend = canvas::legend_height(&names);
        let height = self.group_height() * self.groups.len().max(1) as u32 + 2 * AROUND + BELOW;
        let all = title.height() + legend + height + note.height();
        canvas::svg(all, within, |area| {
            let (head, below) = area.split_vertically(title.height());
            title.draw(&head)?;
            let (names_area, below) = below.split_vertically(legend);
            canvas::legend(&names_area, &names)?;
            let (rows, below) = below.split_vertically(height);
            self.rows(&rows)?;
            note.draw(&below)
        })
    }

    /// How high a group is: its name, its bars, and what is free below them.
    fn group_height(&self) -> u32 {
        LINE + BAR * self.series.len().max(1) as u32 + GAP
    }

    fn seen(&self, series: &BarSeries) -> Vec<(usize, Bar)> {
        let bars = series.bars.iter().take(self.groups.len()).enumerate();
        bars.filter_map(|(row, bar)| bar.map(|bar| (row, bar)))
            .filter(|(_, bar)| self.axis.has(bar.value))
            .collect()
    }

    fn rows(&self, area: &Area<'_>) -> Option<()> {
        let ends = self.series.iter().flat_map(|series| self.seen(series));
        let ends = ends.flat_map(|(_, bar)| {
            let (least, most) = bar.spread.unwrap_or((bar.value, bar.value));
            [least, bar.value, most]
        });
        let mut x = Ruler::over(&self.axis, ends, NAMES);
        x.leave_room();
        let start = x.range().start;
        let group_height = f64::from(self.group_height());
        let rows = Rows(group_height * self.groups.len().max(1) as f64);
        let mut chart = ChartBuilder::on(area)
            .margin(AROUND)
            .margin_right(x.beyond().max(3 * AROUND))
            .x_label_area_size(BELOW)
            .y_label_area_size(x.before().saturating_sub(AROUND).max(AROUND))
            .build_cartesian_2d(x, rows)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(&self.axis.name)
            .label_style(("sans-serif", TEXT))
            .axis_desc_style(("sans-serif", TEXT))
            .bold_line_style(canvas::faint())
            .light_line_style(TRANSPARENT)
            .disable_y_mesh()
            .draw()
            .ok()?;
        for (row, name) in self.groups.iter().enumerate() {
            let text = Text::new(name.clone(), (4, 4), ("sans-serif", TEXT).into_font());
            let at = EmptyElement::at((start, group_height * row as f64));
            chart.draw_series([at + text]).ok()?;
        }
        for (number, series) in self.series.iter().enumerate() {
            let above = f64::from(LINE + BAR * number as u32);
            for (row, bar) in self.seen(series) {
                let top = group_height * row as f64 + above;
                self.bar(&mut chart, bar, (top, start.max(0.0)), number)?;
            }
        }
        Some(())
    }

    /// Draws a bar that begins at `from`, and its value at its end.
    fn bar(
        &self,
        chart: &mut Chart<'_, '_>,
        bar: Bar,
        (top, from): (f64, f64),
        group: usize,
    ) -> Option<()> {
        let colour = canvas::colour(group);
        let (bottom, middle) = (top + f64::from(BAR - 2), top + f64::from(BAR / 2 - 1));
        let shape = [(from.min(bar.value), top), (bar.value, bottom)];
        chart
            .draw_series([Rectangle::new(shape, colour.mix(0.75).filled())])
            .ok()?;
        let spread = bar
            .spread
            .filter(|ends| self.axis.has(ends.0) && self.axis.has(ends.1));
        if let Some((least, most)) = spread {
            let ends = [(least, middle), (most, middle)];
            let line = PathElement::new(ends, BLACK.stroke_width(2));
            chart.draw_series([line]).ok()?;
        }
        let end = spread.map_or(bar.value, |(_, most)| most.max(bar.value));
        let style = ("sans-serif", TEXT).into_font();
        let text =
            EmptyElement::at((end, middle)) + Text::new(shown(rounded(bar.value)), (6, -8), style);
        chart.draw_series([text]).ok()?;
        Some(())
    }
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Rows>>;

/// Leaves three digits that count, or all before the point.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let factor = 10f64.powi(digits.clamp(0, 12));
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[Option<f64>]) -> Bars {
        let bar = |value: &Option<f64>| {
            value.map(|value| Bar {
                value,
                spread: Some((value * 0.9, value * 1.1)),
            })
        };
        Bars {
            title: "Who <wins>".to_owned(),
            axis: Axis::linear("TpmC"),
            groups: vec!["none".to_owned(), "dump & load".to_owned()],
            series: vec![BarSeries {
                name: "median".to_owned(),
                bars: values.iter().map(bar).collect(),
            }],
            note: "One run".to_owned(),
        }
    }

    #[test]
    fn every_bar_has_its_name_value_and_spread() {
        let svg = bars(&[Some(1234.0), Some(345.6)]).to_svg();
        for text in [
            "none",
            "dump &amp; load",
            "1\u{202f}234",
            "346",
            "TpmC",
            "median",
            "One run",
            "Who &lt;wins&gt;",
        ] {
            let found = svg.lines().filter(|line| line.trim() == text).count();
            assert_eq!(found, 1, "{text}: {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 2);
    }

    #[test]
    fn names_of_values_do_not_reach_beyond_the_left_edge() {
        let mut small = bars(&[Some(0.000_3), Some(0.9)]);
        small.axis.scale = crate::plot::Scale::Logarithmic;
        small.series[0].bars[0] = Some(Bar {
            value: 0.000_3,
            spread: None,
        });
        let svg = small.to_svg();
        let lines: Vec<&str> = svg.lines().collect();
        let mut seen = 0;
        for pair in lines.windows(2) {
            let middle = pair[0].contains("text-anchor=\"middle\"");
            let x = pair[0].split_once("<text x=\"").filter(|_| middle);
            let Some((x, _)) = x.and_then(|(_, rest)| rest.split_once('"')) else {
                continue;
            };
            let half = canvas::width_of(pair[1].trim()) / 2;
            assert!(x.parse::<u32>().unwrap() >= half, "{pair:?}");
            seen += 1;
        }
        assert!(seen > 2, "{svg}");
    }

    #[test]
    fn what_is_missing_leaves_its_row_empty() {
        let svg = bars(&[None, Some(f64::NAN)]).to_svg();
        assert_eq!(svg.matches("<rect").count(), 0);
        assert!(svg.contains("none"));
    }

    #[test]
    fn medians_are_of_sorted_values() {
        let of = |values: &[f64]| Bar::median_of(values).map(|bar| (bar.value, bar.spread));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0]), Some((3.0, None)));
        assert_eq!(of(&[9.0, 1.0, 2.0]), Some((2.0, Some((1.0, 9.0)))));
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), Some((3.0, Some((1.0, 9.0)))));
    }

    #[test]
    fn three_digits_count() {
        assert_eq!(rounded(0.001_234_5), 0.001_23);
        assert_eq!(rounded(12.345), 12.3);
        assert_eq!(rounded(123_456.7), 123_457.0);
    }
}
