//! A plot's lines, put on paper: all in one plane, or where they are many in planes of the same axes one below the
//! other.

use super::{Event, Plot, Series};
use crate::canvas::{self, Area, LINE, Lines, Named, SIDE, TEXT, WIDTH, Within};
use crate::scale::{Ruler, shown};
use plotters::chart::ChartContext;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// More lines than these in one plane cannot be distinguished.
const TOGETHER_MAX: usize = 4;
/// The height of a plane: of a single one, and of one among others.
const HEIGHTS: [u32; 2] = [300, 92];
/// The values named upwards, at most: on a single plane, and on one among others.
const NAMES_UP: [usize; 2] = [7, 3];
/// The values named to the right, at most.
const NAMES_RIGHT: usize = 6;
/// What is left free around a plane, so that the names of the last values fit.
const AROUND: u32 = 10;
/// The room of what is written below the last plane: values, and what they are.
const BELOW: u32 = 2 * LINE + 8;
/// The names of events are written in so many lines, so that close ones do not cover each other.
const EVENT_LINES: usize = 3;
/// More points than these are a line without marks.
const MARKS_MAX: usize = 30;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

/// What all planes of a plot have in common.
struct Sheet<'a> {
    plot: &'a Plot,
    x: Ruler,
    y: Ruler,
    /// The room of the values' names to the left.
    left: u32,
    height: u32,
}

/// The lines of one plane.
type Plane<'a> = Vec<&'a Series>;

pub(crate) fn svg(plot: &Plot, within: Within) -> String {
    let planes = planes(plot);
    let sheet = Sheet::of(plot, planes.len());
    let title = Lines::title(&plot.title, within);
    let upwards = Lines::of(&plot.y.name);
    let note = Lines::of(&plot.notes());
    let of_planes = planes.iter().map(|plane| sheet.height_of(plane));
    let height: u32 = of_planes.sum::<u32>() + BELOW;
    let all = title.height() + upwards.height() + height + note.height();
    canvas::svg(all, within, |area| {
        let mut rest = area.clone();
        for lines in [&title, &upwards] {
            let (above, below) = rest.split_vertically(lines.height());
            lines.draw(&above)?;
            rest = below;
        }
        let (mut rest, below) = rest.split_vertically(height);
        note.draw(&below)?;
        for (number, plane) in planes.iter().enumerate() {
            let is_last = number + 1 == planes.len();
            let labels = if is_last { BELOW } else { 0 };
            let (above, below) = rest.split_vertically(sheet.height_of(plane) + labels);
            sheet.draw(plane, &above, labels)?;
            rest = below;
        }
        Some(())
    })
}

/// Puts lines into planes: all into one, or where they are many those of each colour.
fn planes(plot: &Plot) -> Vec<Plane<'_>> {
    if plot.series.len() <= TOGETHER_MAX {
        return vec![plot.series.iter().collect()];
    }
    let mut planes: Vec<Plane<'_>> = Vec::new();
    for series in &plot.series {
        let of_colour = |plane: &&mut Plane<'_>| plane[0].group == series.group;
        match planes.iter_mut().find(of_colour) {
            Some(plane) => plane.push(series),
            None => planes.push(vec![series]),
        }
    }
    planes
}

fn names<'a>(plane: &Plane<'a>) -> Vec<Named<'a>> {
    let named = plane.iter().map(|series| Named {
        name: &series.name,
        group: series.group,
        is_dashed: series.is_dashed,
    });
    named.collect()
}

impl<'a> Sheet<'a> {
    fn of(plot: &'a Plot, planes: usize) -> Self {
        let kind = usize::from(planes > 1);
        let shown_points = || plot.series.iter().flat_map(|series| series.shown(plot));
        let events = plot.events.iter().flat_map(Event::ends);
        let widths = shown_points().map(|point| point.x).chain(events);
        let x = Ruler::over(&plot.x, widths, NAMES_RIGHT);
        let heights = shown_points().flat_map(|point| {
            let (least, most) = point.spread.unwrap_or((point.y, point.y));
            [least, point.y, most]
        });
        let mut y = Ruler::over(&plot.y, heights, NAMES_UP[kind]);
        if !plot.events.is_empty() {
            y.leave_room();
        }
        let values = y.named().into_iter().map(shown);
        let left = values.map(|value| canvas::width_of(&value)).max();
        Self {
            plot,
            x,
            y,
            left: left.unwrap_or(0) + SIDE,
            height: HEIGHTS[kind],
        }
    }

    /// How high a plane is with the names of its lines, without what is written below it.
    fn height_of(&self, plane: &Plane<'_>) -> u32 {
        canvas::legend_height(&names(plane)) + self.height + 2 * AROUND
    }

    fn draw(&self, plane: &Plane<'_>, area: &Area<'_>, labels: u32) -> Option<()> {
        let names = names(plane);
        let (above, below) = area.split_vertically(canvas::legend_height(&names));
        canvas::legend(&above, &names)?;
        let mut chart = ChartBuilder::on(&below)
            .margin(AROUND)
            .margin_right(self.x.beyond().max(3 * AROUND))
            .x_label_area_size(labels)
            .y_label_area_size(self.left.max(self.x.before().saturating_sub(AROUND)))
            .build_cartesian_2d(self.x.clone(), self.y.clone())
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(&self.plot.x.name)
            .label_style(("sans-serif", TEXT))
            .axis_desc_style(("sans-serif", TEXT))
            .bold_line_style(canvas::faint())
            .light_line_style(TRANSPARENT)
            .draw()
            .ok()?;
        for (number, event) in self.plot.events.iter().enumerate() {
            mark(&mut chart, self.plot, number, event)?;
        }
        for series in plane {
            line(&mut chart, self.plot, series)?;
        }
        Some(())
    }
}

/// Draws an event: a line when it happened, a band while it continued.
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
    let right = chart.backend_coord(&(chart.x_range().end, top)).0;
    let from = chart.backend_coord(&(event.from, top)).0;
    // Where it would run over the edge it stands to the left of its line.
    let (aside, side) = match from + canvas::width_of(&event.name) as i32 > right.min(WIDTH as i32)
    {
        true => (-4, HPos::Right),
        false => (4, HPos::Left),
    };
    let style = TextStyle::from(("sans-serif", TEXT).into_font()).pos(Pos::new(side, VPos::Top));
    let down = 2 + LINE as i32 * (number % EVENT_LINES) as i32;
    let name =
        EmptyElement::at((event.from, top)) + Text::new(event.name.clone(), (aside, down), style);
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
        // A ring and a disc can be distinguished even if there is no line.
        let style = match series.is_dashed {
            true => stroke,
            false => colour.filled(),
        };
        let marks = path.iter().map(|place| Circle::new(*place, 5, style));
        chart.draw_series(marks).ok()?;
    }
    Some(())
}
