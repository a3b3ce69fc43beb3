//! A measurement several times, one after the other: one run says nothing about chance.

use evenkeel_op::{Result, Run};
use evenkeel_report::compare::Spread;
use evenkeel_report::page::number;
use evenkeel_report::{Axis, Bar, BarSeries, Bars, Cell, Page, PageTable, Part};
use serde::Serialize;

/// A value of a run that is worth comparing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it is, with its unit, for people.
    pub says: &'static str,
    /// What it came to.
    pub value: f64,
}

/// What can be measured several times.
pub trait Repeatable {
    /// What it is about; runs are sorted by the first one.
    fn values(&self) -> Vec<Value>;

    /// Whether the result counts.
    fn counts(&self) -> bool;
}

/// A value over all runs.
#[derive(Debug, Clone, Serialize)]
pub struct Over {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it is, with its unit, for people.
    pub says: &'static str,
    /// What it came to.
    #[serde(flatten)]
    pub spread: Spread,
}

/// Several runs.
#[derive(Debug, Clone, Serialize)]
pub struct Repeated<R> {
    /// Each value over all runs.
    pub values: Vec<Over>,
    /// The runs, in order.
    pub runs: Vec<R>,
}

impl<R: Repeatable> Repeated<R> {
    /// Runs so many times. What does not count is the last one: more would say nothing.
    ///
    /// Errors: those of a run; an interruption.
    pub fn of(times: usize, run: Run<'_>, once: impl Fn(usize) -> Result<R>) -> Result<Self> {
        let mut runs: Vec<R> = Vec::new();
        for number in 0..times {
            run.cancel.check()?;
            if times > 1 {
                let reported = format!("run {} of {times}", number + 1);
                run.progress.note(reported);
            }
            runs.push(once(number)?);
            if !runs.last().is_some_and(R::counts) {
                break;
            }
        }
        Ok(Self {
            values: over(&runs),
            runs,
        })
    }

    /// Returns the run in the middle, by what it is about; of two the worse; `None` for no runs.
    #[must_use]
    pub fn middle(&self) -> Option<&R> {
        let about = |run: &R| run.values().first().map_or(0.0, |value| value.value);
        let mut order: Vec<&R> = self.runs.iter().collect();
        order.sort_by(|one, other| about(one).total_cmp(&about(other)));
        order.get(order.len().saturating_sub(1) / 2).copied()
    }

    /// Whether all of them count.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(R::counts)
    }

    /// Tells of all runs on the page that is about the one in the middle.
    #[must_use]
    pub fn onto(&self, mut page: Page) -> Page {
        if self.runs.len() == 1 {
            page.lead.push(
                "This is one run. It does not show how much runs differ: --repeat 5 does."
                    .to_owned(),
            );
            return page;
        }
        let Some(first) = self.values.first() else {
            return page;
        };
        let spread = first.spread;
        let runs = self.runs.len();
        page.lead.push(format!(
            "This was run {runs} times, and this page shows the run with the median. The runs had from {} to \
             {} {}; the median is {}.",
            number(spread.least, 0),
            number(spread.most, 0),
            first.says,
            number(spread.median, 0),
        ));
        let all = [
            Part::Heading("All runs".to_owned()),
            self.bars(first.says).into(),
            Part::Table(self.table()),
        ];
        page.parts.splice(0..0, all);
        page
    }

    fn bars(&self, says: &str) -> Bars {
        let bars = self.runs.iter().map(|run| {
            run.values().first().map(|value| Bar {
                value: value.value,
                spread: None,
            })
        });
        Bars {
            title: says.to_owned(),
            axis: Axis::linear(says),
            groups: (1..=self.runs.len()).map(|n| format!("run {n}")).collect(),
            series: vec![BarSeries {
                name: String::new(),
                bars: bars.collect(),
            }],
            note: String::new(),
        }
    }

    fn table(&self) -> PageTable {
        let mut table = PageTable::new(&["", "median", "least", "most"]);
        for over in &self.values {
            let Spread {
                median,
                least,
                most,
            } = over.spread;
            let [median, least, most] = [median, least, most].map(|v| Cell::number(v, 1));
            table.row([Cell::text(over.says), median, least, most]);
        }
        table
    }
}

fn over<R: Repeatable>(runs: &[R]) -> Vec<Over> {
    let names = runs.first().map_or(Vec::new(), R::values);
    let over = names.iter().enumerate().filter_map(|(place, value)| {
        let all = runs
            .iter()
            .filter_map(|run| Some(run.values().get(place)?.value));
        let all: Vec<f64> = all.collect();
        Some(Over {
            name: value.name,
            says: value.says,
            spread: Spread::of(&all)?,
        })
    });
    over.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::{Cancel, Silent};

    struct Once(f64, bool);

    impl Repeatable for Once {
        fn values(&self) -> Vec<Value> {
            vec![Value {
                name: "rate",
                says: "a second",
                value: self.0,
            }]
        }

        fn counts(&self) -> bool {
            self.1
        }
    }

    fn of(runs: &[(f64, bool)]) -> Repeated<Once> {
        let cancel = Cancel::new();
        let run = Run {
            progress: &Silent,
            cancel: &cancel,
        };
        let once = |number: usize| Ok(Once(runs[number].0, runs[number].1));
        Repeated::of(runs.len(), run, once).unwrap()
    }

    #[test]
    fn the_one_in_the_middle_and_the_spread_are_reported() {
        let all = of(&[(7.0, true), (1.0, true), (5.0, true)]);
        assert_eq!(all.middle().unwrap().0, 5.0);
        let spread = all.values[0].spread;
        assert_eq!((spread.median, spread.least, spread.most), (5.0, 1.0, 7.0));
        assert!(all.counts());
        assert_eq!(of(&[(2.0, true), (1.0, true)]).middle().unwrap().0, 1.0);
    }

    #[test]
    fn what_does_not_count_is_the_last() {
        let all = of(&[(7.0, true), (1.0, false), (5.0, true)]);
        assert_eq!(all.runs.len(), 2);
        assert!(!all.counts());
    }
}
