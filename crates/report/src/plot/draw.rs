//! A plot's lines, put on paper.

use super::{Event, Plot, Series};
use crate::canvas::{self, Area, Named, Within};
use crate::scale::Ruler;
use plotters::chart::ChartContext;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;

/// The height without the legend.
const HEIGHT: u32 = 430;
/// The names of events are written in so many lines, so that close ones do not cover each other.
const EVENT_LINES: usize = 3;
/// More points than these are a line without marks.
const MARKS_MAX: usize = 60;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

pub(crate) fn svg(plot: &Plot, within: Within) -> String {
    let series = plot.series.iter();
    let names: Vec<Named<'_>> = series
        .map(|series| Named {
            name: &series.name,
            group: series.group,
            is_dashed: series.is_dashed,
        })
        .collect();
    let legend = canvas::legend_height(&names);
    let title = match within {
        Within::File => 40,
        Within::Page => 0,
    };
    canvas::svg(HEIGHT + legend + title, within, |area| {
        let (top, below) = area.split_vertically(title + legend);
        let (head, names_area) = top.split_vertically(title);
        if within == Within::File {
            head.titled(&plot.title, ("sans-serif", 20)).ok()?;
        }
        canvas::legend(&names_area, &names)?;
        draw(plot, &below)
    })
}

fn draw(plot: &Plot, area: &Area<'_>) -> Option<()> {
    let shown = || plot.series.iter().flat_map(|series| series.shown(plot));
    let events = plot.events.iter().flat_map(Event::ends);
    let x = Ruler::over(&plot.x, shown().map(|point| point.x).chain(events));
    let heights = shown().flat_map(|point| {
        let (least, most) = point.spread.unwrap_or((point.y, point.y));
        [least, point.y, most]
    });
    let mut y = Ruler::over(&plot.y, heights);
    if !plot.events.is_empty() {
        y.leave_room();
    }
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(68)
        .build_cartesian_2d(x, y)
        .ok()?;
    chart
        .configure_mesh()
        .x_desc(&plot.x.name)
        .y_desc(&plot.y.name)
        .label_style(("sans-serif", 14))
        .bold_line_style(canvas::faint())
        .light_line_style(TRANSPARENT)
        .draw()
        .ok()?;
    for (number, event) in plot.events.iter().enumerate() {
        mark(&mut chart, plot, number, event)?;
    }
    for series in &plot.series {
        line(&mut chart, plot, series)?;
    }
    Some(())
}

/// Draws an event: a line when it happened, a band while it went on.
fn mark(chart: &mut Chart<'_, '_>, plot: &Plot, number: usize, event: &Event) -> Option<()> {
    if !event.ends().all(|end| plot.x.has(end)) {
        return Some(());
    }
    let range = chart.y_range();
    let (bottom, top) = (range.start, range.end);
    let colour = RGBColor(128, 128, 128);
    if let Some(to) = event.to {
        let band = Rectangle::new([(event.from, bottom), (to, top)], colour.mix(0.18).filled());
        chart.draw_series([band]).ok()?;
    }
    for end in event.ends() {
        let ends = [(end, bottom), (end, top)];
        let dashed = DashedLineSeries::new(ends, 3, 3, colour.stroke_width(1));
        chart.draw_series(dashed).ok()?;
    }
    let style = ("sans-serif", 14).into_font();
    let down = 2 + 17 * (number % EVENT_LINES) as i32;
    let name =
        EmptyElement::at((event.from, top)) + Text::new(event.name.clone(), (4, down), style);
    chart.draw_series([name]).ok()?;
    Some(())
}

fn line(chart: &mut Chart<'_, '_>, plot: &Plot, series: &Series) -> Option<()> {
    let colour = canvas::colour(series.group);
    let stroke = colour.stroke_width(2);
    let path: Vec<(f64, f64)> = series.shown(plot).map(|p| (p.x, p.y)).collect();
    match series.is_dashed {
        true => chart.draw_series(DashedLineSeries::new(path.clone(), 6, 4, stroke)),
        false => chart.draw_series(LineSeries::new(path.clone(), stroke)),
    }
    .ok()?;
    let spreads = series.shown(plot).filter_map(|point| {
        let (least, most) = point.spread?;
        let is_seen = plot.y.has(least) && plot.y.has(most);
        let ends = [(point.x, least), (point.x, most)];
        is_seen.then(|| PathElement::new(ends, colour.stroke_width(1)))
    });
    chart.draw_series(spreads).ok()?;
    if path.len() <= MARKS_MAX {
        let marks = path
            .iter()
            .map(|place| Circle::new(*place, 4, colour.filled()));
        chart.draw_series(marks).ok()?;
    }
    Some(())
}
