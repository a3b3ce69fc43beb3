//! What is said of a history of digests.

use super::words::{local, micros, plain, time};
use crate::show::answers::Answer;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_traffic::history::{About, Period};
use jiff::Timestamp;
use serde::Serialize;

/// What the history has to do with a digest.
#[derive(Serialize)]
pub struct ShownHistory {
    place: String,
    /// The period that the digest became, or was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<AddedPeriod>,
    /// The periods that the digest is of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    periods: Vec<ShownPeriod>,
    /// The periods that it is compared with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared_with: Vec<ShownPeriod>,
    /// The numbers of the periods that were too old.
    pub removed: Vec<u64>,
    #[serde(skip)]
    is_adding: bool,
}

#[derive(Serialize)]
struct AddedPeriod {
    number: u64,
    is_new: bool,
    name: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// A period of a history.
#[derive(Serialize)]
struct ShownPeriod {
    number: u64,
    name: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    fingerprints: String,
    statements: u64,
    sum_us: f64,
    entries: u64,
    unreadable: u64,
    files: String,
}

impl ShownPeriod {
    fn of(period: &Period) -> Self {
        let about = &period.about;
        Self {
            number: period.number,
            name: about.name.clone(),
            from: time(about.from_ns),
            to: time(about.to_ns),
            fingerprints: about.rules.clone(),
            statements: period.statements,
            sum_us: period.sum_ns as f64 / 1000.0,
            entries: about.entries,
            unreadable: about.unreadable,
            files: about.files.clone(),
        }
    }
}

impl ShownHistory {
    /// Begins with where the history is, to which nothing is added.
    #[must_use]
    pub fn only_read(place: &str) -> Self {
        Self {
            is_adding: false,
            ..Self::of(place)
        }
    }

    /// Begins with where the history is, to which a digest is added.
    #[must_use]
    pub fn of(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            added: None,
            periods: Vec::new(),
            compared_with: Vec::new(),
            removed: Vec::new(),
            is_adding: true,
        }
    }

    /// Says which period the digest is.
    pub fn add(&mut self, number: u64, is_new: bool, about: About) {
        self.added = Some(AddedPeriod {
            number,
            is_new,
            name: about.name,
            from: time(about.from_ns),
            to: time(about.to_ns),
        });
    }

    /// Says of which periods the digest is.
    pub fn shows(&mut self, periods: &[Period]) {
        self.periods = periods.iter().map(ShownPeriod::of).collect();
    }

    /// Says with which periods it is compared.
    pub fn compared_with(&mut self, periods: &[Period]) {
        self.compared_with = periods.iter().map(ShownPeriod::of).collect();
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        match &self.added {
            Some(period) if period.is_new => text.push_str(&format!(
                "Added to the history in {} as period {} of {}.\n",
                self.place, period.number, period.name
            )),
            Some(period) => text.push_str(&format!(
                "The history in {} has these statements already, as period {}: nothing was added.\n",
                self.place, period.number
            )),
            None if self.is_adding => text.push_str(&format!(
                "There is no statement to add to the history in {}.\n",
                self.place
            )),
            None => {}
        }
        for (what, periods) in [
            ("The digest is of", &self.periods),
            ("It is compared with", &self.compared_with),
        ] {
            if let (Some(first), Some(last)) = (periods.first(), periods.last()) {
                let numbers = match periods.len() {
                    1 => format!("period {}", first.number),
                    many => format!("{many} periods, {} to {}", first.number, last.number),
                };
                text.push_str(&format!(
                    "{what} {numbers}: {} to {}.\n",
                    shown(first.from),
                    shown(last.to)
                ));
            }
            let unread: u64 = periods.iter().map(|one| one.unreadable).sum();
            if unread > 0 {
                text.push_str(&format!(
                    "{} could not be read when they were added.\n",
                    units::count(unread, "entry")
                ));
            }
        }
        text + &removed(&self.removed)
    }
}

fn shown(time: Option<Timestamp>) -> String {
    time.map_or("?".to_owned(), local)
}

/// Returns a time for the list of periods, with the fraction of its second if there is one: it can be typed again.
fn exact(time: Option<Timestamp>) -> String {
    let Some(time) = time else {
        return shown(time);
    };
    match time.subsec_nanosecond() / 1000 {
        0 => local(time),
        micros => format!("{}.{micros:06}", local(time)),
    }
}

fn removed(numbers: &[u64]) -> String {
    match numbers {
        [] => String::new(),
        [one] => format!("Period {one} was too old, and was removed.\n"),
        many => format!("{} periods were too old, and were removed.\n", many.len()),
    }
}

/// Which periods are removed from a history, or would be.
#[derive(Serialize)]
pub struct ForgetPeriodsAnswer {
    place: String,
    executed: bool,
    remove: Vec<ShownPeriod>,
}

impl ForgetPeriodsAnswer {
    /// Answers with these.
    #[must_use]
    pub fn new(place: &str, remove: &[Period], executed: bool) -> Self {
        Self {
            place: place.to_owned(),
            executed,
            remove: remove.iter().map(ShownPeriod::of).collect(),
        }
    }
}

impl Answer for ForgetPeriodsAnswer {
    const SCHEMA: &'static str = "evenkeel/digest-forget/1";

    fn text(&self) -> String {
        let end = match self.executed {
            true => format!("removed from the history in {}\n", self.place),
            false => "only a plan: add --execute to remove from the history\n".to_owned(),
        };
        table(&self.remove) + &end
    }
}

/// Which periods a history has.
#[derive(Serialize)]
pub struct PeriodsAnswer {
    place: String,
    periods: Vec<ShownPeriod>,
    removed: Vec<u64>,
}

impl PeriodsAnswer {
    /// Answers with these.
    #[must_use]
    pub fn new(place: &str, periods: &[Period], removed: Vec<u64>) -> Self {
        Self {
            place: place.to_owned(),
            periods: periods.iter().map(ShownPeriod::of).collect(),
            removed,
        }
    }
}

impl Answer for PeriodsAnswer {
    const SCHEMA: &'static str = "evenkeel/digest-periods/1";

    fn text(&self) -> String {
        let gone = removed(&self.removed);
        if self.periods.is_empty() {
            return format!("{gone}The history in {} has no periods.\n", self.place);
        }
        gone + &table(&self.periods)
    }
}

fn table(periods: &[ShownPeriod]) -> String {
    let mut table = TextTable::new(&[
        ("period", Align::Right),
        ("from", Align::Left),
        ("to", Align::Left),
        ("statements", Align::Right),
        ("time", Align::Right),
        ("not read", Align::Right),
        ("name", Align::Left),
    ]);
    for one in periods {
        table.row([
            one.number.to_string(),
            exact(one.from),
            exact(one.to),
            one.statements.to_string(),
            micros(one.sum_us),
            one.unreadable.to_string(),
            plain(&one.name),
        ]);
    }
    table.text()
}
