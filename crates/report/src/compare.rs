//! Whether a difference between two lots of runs is more than chance.
//!
//! The test of Mann and Whitney asks only which of two runs is the higher, so one wild run does no harm and
//! nothing is taken to be normal. Its probability is exact, ties included: all ways to deal the runs into two
//! lots of these sizes are counted.

use crate::median;
use evenkeel_op::{Error, Result};
use serde::Serialize;

/// More runs of one side than these would take long to count, and none needs them.
const RUNS_MAX: usize = 60;
/// A difference that comes by chance less often than this is taken to be real.
pub const LEVEL: f64 = 0.05;

/// What the runs of both sides say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Runs of the first side, and of the second.
    pub runs: [usize; 2],
    /// Their medians.
    pub medians: [f64; 2],
    /// The least and the most of each.
    pub ranges: [(f64, f64); 2],
    /// How much the second median is above the first, in percent; none where the first is zero.
    pub change_percent: Option<f64>,
    /// Mann and Whitney's U: of all pairs, in how many the second side's run is the higher; ties are half.
    pub u: f64,
    /// The same as a share, from 0 to 1; 0.5 means no difference.
    pub superiority: f64,
    /// How probable so large a difference in either direction is by chance.
    pub p: f64,
    /// The least that `p` can be with so many runs.
    pub p_least: f64,
    /// Whether the difference is taken to be real.
    pub is_real: bool,
}

/// A median with the least and the most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Returns that of some values; `None` for none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Compares two lots of runs.
///
/// Errors: `Usage` for a side without runs, with more than 60, or with what is no number.
pub fn compare(first: &[f64], second: &[f64]) -> Result<Verdict> {
    for side in [first, second] {
        if side.is_empty() || side.len() > RUNS_MAX {
            return Err(Error::usage(format!(
                "each side must have from 1 to {RUNS_MAX} runs, not {}",
                side.len()
            )));
        }
        if side.iter().any(|value| !value.is_finite()) {
            return Err(Error::usage("a run's value is not a number"));
        }
    }
    let ranks = ranks_doubled(first, second);
    let (n, m) = (first.len(), second.len());
    let sum: usize = ranks[n..].iter().sum();
    // Twice U: the second side's ranks without those that it has among its own.
    let u = sum as f64 / 2.0 - (m * (m + 1)) as f64 / 2.0;
    let medians = [first, second].map(|side| median(side).unwrap_or(f64::NAN));
    let range = |side: &[f64]| {
        Spread::of(side).map_or((f64::NAN, f64::NAN), |spread| (spread.least, spread.most))
    };
    let p = two_sided(&ranks, m, sum);
    let no_ties: Vec<usize> = (1..=n + m).map(|rank| 2 * rank).collect();
    let p_least = two_sided(&no_ties, m, m * (m + 1));
    Ok(Verdict {
        runs: [n, m],
        medians,
        ranges: [range(first), range(second)],
        change_percent: (medians[0] != 0.0).then(|| 100.0 * (medians[1] / medians[0] - 1.0)),
        u,
        superiority: u / (n * m) as f64,
        p,
        p_least,
        is_real: p < LEVEL,
    })
}

/// Says which of several differences are taken to be real. Of many tests, some find something by chance: each
/// must be the more certain the more there are (Holm).
#[must_use]
pub fn real_among(probabilities: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut real = vec![false; probabilities.len()];
    for (place, index) in order.iter().enumerate() {
        if probabilities[*index] * (probabilities.len() - place) as f64 >= LEVEL {
            break;
        }
        real[*index] = true;
    }
    real
}

/// Returns how many runs each side needs so that one of so many differences can be taken to be real.
#[must_use]
pub fn runs_needed(differences: usize) -> usize {
    // Two of all ways to deal the runs into two lots: p when the lots are wholly apart.
    let mut runs = 1;
    let mut least = 1.0;
    while least * differences.max(1) as f64 >= LEVEL && runs < RUNS_MAX {
        runs += 1;
        let n = runs as f64;
        least *= n / (2.0 * (2.0 * n - 1.0));
    }
    runs
}

/// Returns the rank of each run among all, twice so that the mean rank of ties is whole.
fn ranks_doubled(first: &[f64], second: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let rank = |value: &f64| {
        let below = all.iter().filter(|other| *other < value).count();
        let equal = all.iter().filter(|other| *other == value).count();
        2 * below + equal + 1
    };
    all.iter().map(rank).collect()
}

/// Returns how probable it is that `m` of these ranks, drawn blindly, add up to something as far from what
/// should be expected as `sum` is.
fn two_sided(ranks: &[usize], m: usize, sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // How many ways there are to draw so many ranks with such a sum, by sum; at most 2^120 in all, of which a
    // double keeps the first sixteen digits.
    let mut ways = vec![vec![0.0; total + 1]; m + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for count in (1..=m).rev() {
            for reached in (*rank..=total).rev() {
                ways[count][reached] += ways[count - 1][reached - rank];
            }
        }
    }
    let all: f64 = ways[m].iter().sum();
    // Twice the distance from the mean, so that it stays whole: the mean is m * total / (n + m).
    let size = ranks.len();
    let distance = |sum: usize| (sum * size).abs_diff(m * total);
    let far = distance(sum);
    let extreme = ways[m].iter().enumerate();
    let extreme: f64 = extreme
        .filter(|(sum, _)| distance(*sum) >= far)
        .map(|(_, ways)| ways)
        .sum();
    (extreme / all).min(1.0)
}

/// Writes how probable a difference is by chance: `p = 0.69`.
#[must_use]
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p if p < 0.1 => format!("p = {p:.3}"),
        p => format!("p = {p:.2}"),
    }
}

/// Writes a value with about four digits that count.
fn readable(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

impl Verdict {
    /// Says it in words; `what` names the value, `more_is_better` whether more of it is.
    #[must_use]
    pub fn says(&self, what: &str, more_is_better: bool) -> String {
        let [first, second] = self.medians.map(readable);
        let change = match self.change_percent {
            Some(percent) if percent >= 0.0 => format!("{percent:.1} % higher"),
            Some(percent) => format!("{:.1} % lower", -percent),
            None => "another value".to_owned(),
        };
        let [n, m] = self.runs;
        let chance = p_value(self.p);
        if self.is_real {
            let [below, above] = self.medians;
            let better = (above > below) == more_is_better;
            let word = if better { "better" } else { "worse" };
            return format!(
                "{what}: B is {word} ({chance}, {n} and {m} runs): the median is {change} ({first} → {second})."
            );
        }
        let middle = format!("the median is {change} ({first} → {second})");
        match self.p_least >= LEVEL {
            true => format!(
                "{what}: no clear difference: {middle}, but {n} and {m} runs are too few to \
                 exclude chance. Use at least four runs on each side, better more."
            ),
            false => format!("{what}: no clear difference ({chance}): {middle}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(first: &[f64], second: &[f64]) -> f64 {
        compare(first, second).unwrap().p
    }

    fn count(from: i32, to: i32) -> Vec<f64> {
        (from..=to).map(f64::from).collect()
    }

    #[test]
    fn probabilities_are_those_of_the_tables() {
        // Lots wholly apart: two of all ways to draw.
        for (n, m, all) in [(3, 3, 20.0), (4, 4, 70.0), (5, 5, 252.0), (4, 6, 210.0)] {
            let found = p(&count(1, n), &count(n + 1, n + m));
            assert!((found - 2.0 / all).abs() < 1e-12, "{n} {m} {found}");
        }
        // Published critical values for 5 % on both sides: U of 2 for five and five, 23 for ten and ten.
        let of_u = |n: i32, m: i32, u: usize| {
            // The second side begins below, and its last runs go up until U is reached.
            let ranks: Vec<usize> = (1..=n + m).map(|rank| 2 * rank as usize).collect();
            let m = m as usize;
            two_sided(&ranks, m, m * (m + 1) + 2 * u)
        };
        assert!(of_u(5, 5, 2) <= 0.05 && of_u(5, 5, 3) > 0.05);
        assert!(of_u(10, 10, 23) <= 0.05 && of_u(10, 10, 24) > 0.05);
        assert!(of_u(8, 10, 17) <= 0.05 && of_u(8, 10, 18) > 0.05);
        assert!(of_u(20, 20, 127) <= 0.05 && of_u(20, 20, 128) > 0.05);
    }

    #[test]
    fn ties_are_counted_as_they_are() {
        assert_eq!(p(&[1.0, 1.0, 1.0], &[1.0, 1.0]), 1.0);
        // 1 1 | 1 2 2: of the ten ways to draw three, the sum of ranks is at the top in one (with a mirror
        // image in none): checked by hand.
        let found = compare(&[1.0, 1.0], &[1.0, 2.0, 2.0]).unwrap();
        assert_eq!(found.u, 5.0);
        assert!((found.p - 0.4).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn either_side_may_be_the_first() {
        let (a, b) = ([1.0, 5.0, 7.0, 9.0], [6.0, 8.0, 10.0, 12.0, 13.0]);
        let (there, back) = (compare(&a, &b).unwrap(), compare(&b, &a).unwrap());
        assert!((there.p - back.p).abs() < 1e-12);
        assert_eq!(there.u + back.u, 20.0);
    }

    #[test]
    fn many_tests_must_be_more_certain() {
        assert_eq!(real_among(&[0.01, 0.04]), [true, true]);
        assert_eq!(real_among(&[0.03, 0.04]), [false, false]);
        assert_eq!(real_among(&[0.2, 0.01, 0.02]), [false, true, true]);
        for differences in [1, 6, 7, 100, 1000] {
            let runs = runs_needed(differences) as i32;
            let least = |runs: i32| p(&count(1, runs), &count(runs + 1, 2 * runs));
            assert!(least(runs) * (differences as f64) < LEVEL, "{differences}");
            assert!(
                least(runs - 1) * (differences as f64) >= LEVEL,
                "{differences}"
            );
        }
    }

    #[test]
    fn it_is_said_in_words() {
        let faster = compare(&count(1, 5), &count(11, 15)).unwrap();
        assert!(
            faster.says("TpmC", true).contains("B is better"),
            "{faster:?}"
        );
        assert!(faster.says("latency", false).contains("B is worse"));
        let few = compare(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert!(!few.is_real && few.says("x", true).contains("at least four runs"));
        let same = compare(&count(1, 10), &count(2, 11)).unwrap();
        assert!(same.says("x", true).contains("no clear difference (p = "));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(compare(&[], &[1.0]).is_err());
        assert!(compare(&[f64::NAN], &[1.0]).is_err());
        assert!(compare(&count(1, 61), &[1.0]).is_err());
        assert!(compare(&count(1, 60), &count(1, 60)).unwrap().p > 0.99);
    }
}
