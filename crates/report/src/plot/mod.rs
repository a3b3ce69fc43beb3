//! Lines over a plane, as an SVG that stands alone: no script, no font of its own, and readable in
//! light and dark.

mod draw;

use crate::canvas::Within;

/// From so many times the least value on, that one is too short to be seen beside the greatest.
const WIDE: f64 = 30.0;
/// What is said of lines through a single point each.
const NO_CURVE: &str = "One point each: no trend can be shown.";

/// Lines over a plane.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What is shown, in one line.
    pub title: String,
    /// What lies to the right.
    pub x: Axis,
    /// What lies upwards.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
    /// What happened meanwhile, marked along the first axis.
    pub events: Vec<Event>,
    /// What has to be known to read it, in sentences below it; may be empty.
    pub note: String,
}

/// Something that happened, or continued for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it was, in a few words.
    pub name: String,
    /// When it began, on the first axis.
    pub from: f64,
    /// When it was over; `None` for what took no time.
    pub to: Option<f64>,
}

/// One axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it counts, and in which unit: `time, seconds`.
    pub name: String,
    /// How it is divided.
    pub scale: Scale,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By factors. Values that are not above zero are left out.
    Logarithmic,
}

/// A line through points.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Lines of one group have one colour.
    pub group: usize,
    /// Whether it is drawn in dashes.
    pub is_dashed: bool,
    /// What it goes through, from left to right.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// The least and the most that was measured, where that is known.
    pub spread: Option<(f64, f64)>,
}

impl Plot {
    /// Whether any line has more than one point.
    #[must_use]
    pub fn has_a_line(&self) -> bool {
        self.series.iter().any(|series| series.points.len() > 1)
    }

    /// Draws it. Values that are no finite numbers are left out.
    #[must_use]
    pub fn to_svg(&self) -> String {
        draw::svg(self, Within::File)
    }

    /// What is written below it: that points are no curves, where they are not, and its note.
    fn notes(&self) -> String {
        let points = self.series.iter().map(|series| series.shown(self).count());
        let is_a_point = points.max() == Some(1);
        let reported = if is_a_point { NO_CURVE } else { "" };
        [reported, &self.note].join(" ")
    }

    /// Draws it as part of a page.
    pub(crate) fn to_part(&self) -> String {
        draw::svg(self, Within::Page)
    }
}

impl Axis {
    /// Makes an evenly divided axis.
    #[must_use]
    pub fn linear(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scale: Scale::Linear,
        }
    }

    /// Makes an axis on which all values can be seen: divided by factors if some are much smaller than the greatest.
    #[must_use]
    pub fn fitting(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let is_seen = |value: &f64| value.is_finite() && *value > 0.0;
        let ends = values.into_iter().filter(is_seen);
        let ends = ends.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        match ends.1 > WIDE * ends.0 {
            true => Self::logarithmic(&format!("{name}, by factors of ten")),
            false => Self::linear(name),
        }
    }

    /// Makes an axis that is divided by factors.
    #[must_use]
    pub fn logarithmic(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scale: Scale::Logarithmic,
        }
    }

    /// Whether a value has a place on it.
    pub(crate) fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

impl Event {
    fn ends(&self) -> impl Iterator<Item = f64> + use<> {
        std::iter::once(self.from).chain(self.to)
    }
}

impl Series {
    /// Returns the points that have a place in a plot.
    fn shown<'a>(&'a self, plot: &'a Plot) -> impl Iterator<Item = Point> + 'a {
        let points = self.points.iter().copied();
        points.filter(|point| plot.x.has(point.x) && plot.y.has(point.y))
    }
}

#[cfg(test)]
mod tests;
