//! What changed since an earlier digest.

use super::{Class, Summary};
use evenkeel_report::compare::{Verdict, compare, real_among};
use std::collections::{HashMap, HashSet};

/// So many times as often, or so many times less, is reported.
const OFTEN: f64 = 2.0;
/// So many standard deviations of what chance does to counts lie between two rates that differ.
const APART: f64 = 4.0;

/// What an earlier digest says of a class.
#[derive(Debug, Clone)]
pub struct Earlier {
    /// Its identifier.
    pub id: String,
    /// What its statements have in common.
    pub fingerprint: String,
    /// How many ran.
    pub count: u64,
    /// How long they took in all, in microseconds.
    pub sum_us: f64,
    /// How long one took in each interval, in microseconds; intervals without any are left out.
    pub averages_us: Vec<f64>,
    /// For how long statements of all classes came, in seconds; `None` where how often they came says nothing, as in a
    /// replay.
    pub seconds: Option<f64>,
}

impl Earlier {
    /// Returns what is known of a class.
    #[must_use]
    pub fn of(class: &Class) -> Self {
        Self {
            id: class.id.clone(),
            fingerprint: class.fingerprint.clone(),
            count: class.count,
            sum_us: class.sum_ns as f64 / 1000.0,
            averages_us: averages_us(class),
            seconds: None,
        }
    }

    /// Returns what is known of all classes, and how often they came.
    #[must_use]
    pub fn all(summary: &Summary) -> Vec<Self> {
        let timed = |class| Self {
            seconds: Some(summary.seconds()),
            ..Self::of(class)
        };
        summary.classes.iter().map(timed).collect()
    }

    /// Returns how many times as often the class comes now, if that is much more or much less, and more than chance.
    fn times_as_often(&self, count: u64, seconds: f64) -> Option<f64> {
        let before_s = self.seconds?.max(1.0);
        let [before, now] = [self.count as f64, count as f64];
        let rates = [before / before_s, now / seconds];
        let deviation = (before / before_s.powi(2) + now / seconds.powi(2)).sqrt();
        let factor = rates[1] / rates[0];
        let is_much = factor >= OFTEN || factor <= 1.0 / OFTEN;
        let is_clear = (rates[1] - rates[0]).abs() >= APART * deviation;
        (is_much && is_clear && factor.is_finite()).then_some(factor)
    }
}

/// What became of a class.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// It came.
    New,
    /// It is there no longer.
    Gone,
    /// It takes longer or shorter, more than by chance.
    Latency(Verdict),
    /// It takes as long, as far as is known, and comes so many times as often.
    Rate(f64),
    /// Nothing that is more than chance, or too little to say.
    Same(Option<Verdict>),
}

/// A class, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its identifier.
    pub id: String,
    /// What its statements have in common.
    pub fingerprint: String,
    /// How many ran, before and now.
    pub count: [u64; 2],
    /// How long they took in all, before and now, in microseconds.
    pub sum_us: [f64; 2],
    /// What became of it.
    pub changed: Changed,
}

/// Returns how long one took in each interval in which there were any, in microseconds.
fn averages_us(class: &Class) -> Vec<f64> {
    let timed = class
        .series
        .buckets
        .iter()
        .filter(|bucket| bucket.timed > 0);
    timed
        .map(|bucket| bucket.sum_ns as f64 / bucket.timed as f64 / 1000.0)
        .collect()
}

/// Compares with an earlier digest: each class that both have by how long one took, interval by interval. Of so many
/// tests some would find something by chance, so each must be the more certain the more there are (Holm).
#[must_use]
pub fn changes(before: &[Earlier], now: &Summary) -> Vec<Change> {
    let known: HashMap<&str, &Earlier> = before
        .iter()
        .map(|class| (class.id.as_str(), class))
        .collect();
    let mut all = Vec::new();
    for class in &now.classes {
        let earlier = known.get(class.id.as_str());
        let verdict =
            earlier.and_then(|earlier| compare(&earlier.averages_us, &averages_us(class)).ok());
        all.push(Change {
            id: class.id.clone(),
            fingerprint: class.fingerprint.clone(),
            count: [earlier.map_or(0, |earlier| earlier.count), class.count],
            sum_us: [
                earlier.map_or(0.0, |earlier| earlier.sum_us),
                class.sum_ns as f64 / 1000.0,
            ],
            changed: match earlier {
                None => Changed::New,
                Some(_) => Changed::Same(verdict),
            },
        });
    }
    hold(&mut all);
    for change in &mut all {
        let often = known
            .get(change.id.as_str())
            .and_then(|earlier| earlier.times_as_often(change.count[1], now.seconds()));
        if let (Changed::Same(_), Some(factor)) = (&change.changed, often) {
            change.changed = Changed::Rate(factor);
        }
    }
    let here: HashSet<&str> = now.classes.iter().map(|class| class.id.as_str()).collect();
    let gone = before
        .iter()
        .filter(|class| !here.contains(class.id.as_str()));
    all.extend(gone.map(|class| Change {
        id: class.id.clone(),
        fingerprint: class.fingerprint.clone(),
        count: [class.count, 0],
        sum_us: [class.sum_us, 0.0],
        changed: Changed::Gone,
    }));
    all.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
    all
}

/// How much time came or went.
fn moved(change: &Change) -> f64 {
    (change.sum_us[1] - change.sum_us[0]).abs()
}

/// Takes the differences to be real that are certain enough among so many.
fn hold(all: &mut [Change]) {
    let verdict = |change: &Change| match &change.changed {
        Changed::Same(Some(verdict)) => Some(verdict.clone()),
        _ => None,
    };
    let tested: Vec<(usize, Verdict)> = all
        .iter()
        .enumerate()
        .filter_map(|(index, change)| Some((index, verdict(change)?)))
        .collect();
    let probabilities: Vec<f64> = tested.iter().map(|(_, verdict)| verdict.p).collect();
    for ((index, verdict), is_real) in tested.into_iter().zip(real_among(&probabilities)) {
        if is_real {
            all[index].changed = Changed::Latency(verdict);
        }
    }
}
