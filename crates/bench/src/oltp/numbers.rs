//! Which rows are asked for.

use fastrand::Rng;
use serde::Serialize;

/// How numbers are spread. The parameters are sysbench's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Three of four are in the hundredth part in the middle, the others near the middle.
    Special,
    /// Each as often as any other.
    Uniform,
    /// Near the middle.
    Gaussian,
    /// Eight of ten are in the first fifth, and so on within it.
    Pareto,
    /// The n-th as often as 1 / n^0.8.
    Zipfian,
}

/// How many numbers are averaged to come near the middle.
const AVERAGED: u32 = 12;
/// Of a hundred numbers of the special kind, so many are in the middle.
const IN_THE_MIDDLE_PERCENT: f64 = 75.0;
/// How much of all the middle is.
const MIDDLE_PERCENT: u64 = 1;
/// The share of the rows that has most of the accesses.
const PARETO: f64 = 0.2;
/// How steeply Zipf's numbers fall.
const ZIPF: f64 = 0.8;

impl Distribution {
    /// Draws a number from 1 to `most`, which is at least 1.
    pub(super) fn draw(self, most: u32, random: &mut Rng) -> u32 {
        let most = most.max(1);
        match self {
            Self::Uniform => random.u32(1..=most),
            Self::Gaussian => 1 + averaged(most, random),
            Self::Special => special(most, random),
            Self::Pareto => {
                let power = PARETO.ln() / (1.0 - PARETO).ln();
                let drawn = f64::from(most) * random.f64().powf(power);
                1 + (drawn as u32).min(most - 1)
            }
            Self::Zipfian => zipf(most, random),
        }
    }
}

/// A number from 0 on that is below `most`.
fn averaged(most: u32, random: &mut Rng) -> u32 {
    let sum: u64 = (0..AVERAGED).map(|_| u64::from(random.u32(0..most))).sum();
    (sum / u64::from(AVERAGED)) as u32
}

fn special(most: u32, random: &mut Rng) -> u32 {
    if random.f64() * 100.0 >= IN_THE_MIDDLE_PERCENT {
        return 1 + averaged(most, random);
    }
    let middle = (u64::from(most) * MIDDLE_PERCENT / 100).max(1) as u32;
    let from = (most - middle) / 2;
    1 + from + random.u32(0..middle)
}

/// By rejection from a curve over the steps (Hörmann and Derflinger, 1996): no table of sums is needed,
/// however many rows there are.
fn zipf(most: u32, random: &mut Rng) -> u32 {
    // The area below x^-ZIPF, and its inverse.
    let area = |x: f64| x.powf(1.0 - ZIPF) / (1.0 - ZIPF);
    let inverse = |area: f64| (area * (1.0 - ZIPF)).powf(1.0 / (1.0 - ZIPF));
    let height = |x: f64| x.powf(-ZIPF);
    let from = area(1.5) - 1.0;
    let to = area(f64::from(most) + 0.5);
    loop {
        let drawn = from + random.f64() * (to - from);
        let x = inverse(drawn).round().clamp(1.0, f64::from(most));
        // What of the step lies below the curve is taken.
        if drawn >= area(x + 0.5) - height(x) {
            return x as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of drawn numbers that are in each tenth of 1 to 1000.
    fn tenths(distribution: Distribution) -> Vec<f64> {
        let mut random = Rng::with_seed(11);
        let mut counts = vec![0.0; 10];
        for _ in 0..50_000 {
            let drawn = distribution.draw(1000, &mut random);
            assert!((1..=1000).contains(&drawn), "{distribution:?} {drawn}");
            counts[(drawn as usize - 1) / 100] += 1.0 / 50_000.0;
        }
        counts
    }

    fn near(value: f64, wanted: f64) -> bool {
        (value - wanted).abs() < 0.02
    }

    #[test]
    fn numbers_are_spread_as_their_names_say() {
        assert!(
            tenths(Distribution::Uniform)
                .iter()
                .all(|share| near(*share, 0.1))
        );
        let gaussian = tenths(Distribution::Gaussian);
        // The mean of twelve has a deviation of a twelfth: 77 of a hundred are within 1.2 of them.
        assert!(near(gaussian[4] + gaussian[5], 0.77), "{gaussian:?}");
        let special = tenths(Distribution::Special);
        assert!(
            near(special[4] + special[5], 0.75 + 0.25 * 0.77),
            "{special:?}"
        );
        let pareto = tenths(Distribution::Pareto);
        assert!(near(pareto[0] + pareto[1], 0.8), "{pareto:?}");
        let zipf = tenths(Distribution::Zipfian);
        let sum = |from: u32, to: u32| (from..=to).map(|n| f64::from(n).powf(-ZIPF)).sum::<f64>();
        assert!(near(zipf[0], sum(1, 100) / sum(1, 1000)), "{zipf:?}");
        assert!(near(zipf[9], sum(901, 1000) / sum(1, 1000)), "{zipf:?}");
    }

    #[test]
    fn small_tables_have_numbers_too() {
        use Distribution::{Gaussian, Pareto, Special, Uniform, Zipfian};
        let mut random = Rng::with_seed(3);
        for distribution in [Special, Uniform, Gaussian, Pareto, Zipfian] {
            for most in [1, 2, 3] {
                for _ in 0..100 {
                    assert!((1..=most).contains(&distribution.draw(most, &mut random)));
                }
            }
        }
    }
}
