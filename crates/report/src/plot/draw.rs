//! A plot's lines, put on paper.

use super::scale::Ruler;
use super::{Plot, Series};
use plotters::chart::{ChartContext, SeriesLabelPosition};
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;

/// Width and height, in the units of an SVG: about pixels.
const SIZE: (u32, u32) = (860, 520);
/// One for each group: apart from each other for eyes that see fewer colours, on white and on black
/// (Okabe and Ito, without yellow and black).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
/// What is black or white on paper turns round where the reader's page is dark. The colours are
/// attributes, and a rule is stronger than those.
const STYLE: &str = "<style>svg{background:#fff}text{font-family:sans-serif}\
    @media(prefers-color-scheme:dark){svg{background:#16181c}text{fill:#dde1e6}\
    [stroke=\"#000000\"]{stroke:#aab0b8}}</style>";

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

pub(super) fn svg(plot: &Plot) -> String {
    let mut text = String::new();
    let backend = SVGBackend::with_string(&mut text, SIZE);
    // Writing into memory does not fail, and each text has a size: what remains is no plot at all.
    let drawn = draw(plot, &backend.into_drawing_area());
    match (drawn, text.find('>').filter(|_| text.starts_with("<svg"))) {
        (Some(()), Some(end)) => {
            text.insert_str(end + 1, STYLE);
            text
        }
        _ => format!(
            "<svg width=\"{}\" height=\"{}\" xmlns=\"http://www.w3.org/2000/svg\"></svg>\n",
            SIZE.0, SIZE.1
        ),
    }
}

fn draw(plot: &Plot, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Option<()> {
    let shown = || plot.series.iter().flat_map(|series| series.shown(plot));
    let x = Ruler::over(&plot.x, shown().map(|point| point.x));
    let heights = shown().flat_map(|point| {
        let (least, most) = point.spread.unwrap_or((point.y, point.y));
        [least, point.y, most]
    });
    let y = Ruler::over(&plot.y, heights);
    let mut chart = ChartBuilder::on(area)
        .caption(&plot.title, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(68)
        .build_cartesian_2d(x, y)
        .ok()?;
    let faint = RGBColor(128, 128, 128).mix(0.3);
    chart
        .configure_mesh()
        .x_desc(&plot.x.name)
        .y_desc(&plot.y.name)
        .label_style(("sans-serif", 14))
        .bold_line_style(faint)
        .light_line_style(TRANSPARENT)
        .draw()
        .ok()?;
    for series in &plot.series {
        line(&mut chart, plot, series)?;
    }
    if !plot.series.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font(("sans-serif", 14))
            .margin(12)
            .draw()
            .ok()?;
    }
    area.present().ok()
}

fn line<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, plot: &Plot, series: &Series) -> Option<()> {
    let colour = COLOURS[series.group % COLOURS.len()];
    let stroke = colour.stroke_width(2);
    let is_dashed = series.is_dashed;
    let path: Vec<(f64, f64)> = series.shown(plot).map(|p| (p.x, p.y)).collect();
    let drawn = match is_dashed {
        true => chart.draw_series(DashedLineSeries::new(path.clone(), 6, 4, stroke)),
        false => chart.draw_series(LineSeries::new(path.clone(), stroke)),
    };
    drawn.ok()?.label(&series.name).legend(move |(x, y)| {
        // What is dashed is so in the legend, too.
        let next = if is_dashed { 12 } else { 8 };
        EmptyElement::at((x, y))
            + PathElement::new([(0, 0), (8, 0)], stroke)
            + PathElement::new([(next, 0), (20, 0)], stroke)
    });
    let spreads = series.shown(plot).filter_map(|point| {
        let (least, most) = point.spread?;
        let is_seen = plot.y.has(least) && plot.y.has(most);
        let ends = [(point.x, least), (point.x, most)];
        is_seen.then(|| PathElement::new(ends, colour.stroke_width(1)))
    });
    chart.draw_series(spreads).ok()?;
    let marks = path
        .iter()
        .map(|place| Circle::new(*place, 4, colour.filled()));
    chart.draw_series(marks).ok()?;
    Some(())
}
