//! Where a value lies on an axis, and which values are named there.

use crate::canvas::width_of;
use crate::plot::{Axis, Scale};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// The share of an axis that is left free for names.
const ROOM: f64 = 0.2;

/// An axis from its first value to its last.
#[derive(Debug, Clone)]
pub(crate) struct Ruler {
    from: f64,
    to: f64,
    scale: Scale,
    /// Values named on it at most.
    names_max: usize,
}

impl Ruler {
    /// Makes one that all of these values lie on, with so many named at most, two or more; any one where there
    /// are no values.
    pub(crate) fn over(axis: &Axis, values: impl Iterator<Item = f64>, names_max: usize) -> Self {
        let known = values.filter(|value| axis.has(*value));
        let ends = known.fold(None, |ends: Option<(f64, f64)>, value| match ends {
            Some((least, most)) => Some((least.min(value), most.max(value))),
            None => Some((value, value)),
        });
        let (least, most) = ends.unwrap_or((1.0, 10.0));
        let (from, to) = match axis.scale {
            Scale::Logarithmic => (least / 1.3, most * 1.3),
            Scale::Linear if least == 0.0 && most == 0.0 => (0.0, 1.0),
            Scale::Linear => ((1.06 * least).min(0.0), (1.06 * most).max(0.0)),
        };
        Self {
            from,
            to,
            scale: axis.scale,
            names_max: names_max.max(2),
        }
    }

    /// Makes room above for names.
    pub(crate) fn leave_room(&mut self) {
        self.to = match self.scale {
            Scale::Linear => self.to + ROOM * (self.to - self.from),
            Scale::Logarithmic => self.to * (self.to / self.from).powf(ROOM),
        };
    }

    /// Where a value lies, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        }
    }

    /// How far the name of a value at the end reaches beyond it, at most.
    pub(crate) fn beyond(&self) -> u32 {
        let widths = self
            .named()
            .into_iter()
            .map(|value| width_of(&shown(value)));
        // Half of it, and a little: letters are not all as wide.
        widths.max().unwrap_or(0) / 2 + 6
    }

    /// How far the name of its first value reaches before it, at most.
    pub(crate) fn before(&self) -> u32 {
        let first = self.named().first().map(|value| width_of(&shown(*value)));
        first.unwrap_or(0) / 2 + 6
    }

    /// The values that are named.
    pub(crate) fn named(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => self.by_steps(),
            Scale::Logarithmic => self.by_factors(),
        }
    }

    /// The values 1, 2 and 5 times a power of ten that lie on it, those of one of these kinds first
    /// that are not too many.
    fn by_factors(&self) -> Vec<f64> {
        let powers = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        let named = |factors: &[f64]| -> Vec<f64> {
            let all = powers
                .clone()
                .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
            all.filter(|value| (self.from..=self.to).contains(value))
                .collect()
        };
        let fine = named(&[1.0, 2.0, 5.0]);
        let middle = named(&[1.0, 3.0]);
        match () {
            () if fine.len() <= self.names_max => fine,
            () if middle.len() <= self.names_max => middle,
            () => {
                let powers = named(&[1.0]);
                let each = powers.len().div_ceil(self.names_max).max(1);
                powers.into_iter().step_by(each).collect()
            }
        }
    }

    fn by_steps(&self) -> Vec<f64> {
        let power = 10f64.powf(
            ((self.to - self.from) / self.names_max as f64)
                .log10()
                .floor(),
        );
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0].map(|factor| factor * power);
        let numbers =
            |step: f64| (self.from / step).ceil() as i64..=(self.to / step).floor() as i64;
        let fits = |step: &f64| numbers(*step).count() <= self.names_max;
        let step = steps.into_iter().find(fits).unwrap_or(100.0 * power);
        let numbers = numbers(step);
        numbers.map(|number| number as f64 * step).collect()
    }
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (self.share(*value) * length).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.named()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, value: &f64) -> String {
        shown(*value)
    }
}

/// Writes a number with as many digits as it needs, thousands apart.
pub(crate) fn shown(value: f64) -> String {
    if value.abs() >= 1000.0 {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push('\u{202f}');
            }
            text.push(digit);
        }
        return match value < 0.0 {
            true => format!("-{text}"),
            false => text,
        };
    }
    let text = format!("{value:.6}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" | "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(scale: Scale, values: &[f64], names_max: usize) -> Vec<String> {
        let axis = Axis {
            name: String::new(),
            scale,
        };
        let ruler = Ruler::over(&axis, values.iter().copied(), names_max);
        ruler.named().into_iter().map(shown).collect()
    }

    #[test]
    fn round_numbers_are_named() {
        assert_eq!(
            named(Scale::Linear, &[3.0, 39.0], 6),
            ["0", "10", "20", "30", "40"]
        );
        assert_eq!(
            named(Scale::Logarithmic, &[1000.0, 30_000.0], 9),
            [
                "1\u{202f}000",
                "2\u{202f}000",
                "5\u{202f}000",
                "10\u{202f}000",
                "20\u{202f}000"
            ]
        );
        assert_eq!(
            named(Scale::Logarithmic, &[0.02, 800.0], 9),
            ["0.1", "1", "10", "100", "1\u{202f}000"]
        );
        // Fewer where there is less room, and still up to the end.
        assert_eq!(named(Scale::Linear, &[3.0, 39.0], 3), ["0", "20", "40"]);
        assert_eq!(
            named(Scale::Logarithmic, &[0.02, 800.0], 3),
            ["0.1", "10", "1\u{202f}000"]
        );
    }

    #[test]
    fn every_value_lies_on_its_axis() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [&[7.0][..], &[0.001, 90_000.0], &[]] {
                let axis = Axis {
                    name: String::new(),
                    scale,
                };
                let ruler = Ruler::over(&axis, values.iter().copied(), 2);
                for value in values {
                    assert!((0.0..=1.0).contains(&ruler.share(*value)), "{ruler:?}");
                }
            }
        }
    }
}
