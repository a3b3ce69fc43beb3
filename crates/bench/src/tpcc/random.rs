//! The specification's random numbers, names and strings (TPC-C 5.11, clauses 2.1.6 and 4.3.2).

use fastrand::Rng;

/// The parts that last names are made of (4.3.2.3).
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// The constants of the skewed numbers. Those of a run differ from those of its data by a distance
/// that the specification allows (2.1.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Constants {
    last_name: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    /// Those that data are made with.
    pub(super) const DATA: Self = Self {
        last_name: 123,
        customer: 259,
        item: 4987,
    };

    /// Draws those of a run.
    pub(super) fn of_run(random: &mut Rng) -> Self {
        let allowed =
            |distance: &u32| (65..=119).contains(distance) && ![96, 112].contains(distance);
        let last_name = loop {
            let drawn = random.u32(0..=255);
            if allowed(&drawn.abs_diff(Self::DATA.last_name)) {
                break drawn;
            }
        };
        Self {
            last_name,
            customer: random.u32(0..=1023),
            item: random.u32(0..=8191),
        }
    }

    /// Draws those of a run that keeps no distance.
    pub(super) fn at_any_distance(random: &mut Rng) -> Self {
        Self {
            last_name: random.u32(0..=255),
            ..Self::of_run(random)
        }
    }
}

/// NURand: numbers from `from` to `to`, some of which come more often (2.1.6).
fn skewed(random: &mut Rng, a: u32, c: u32, from: u32, to: u32) -> u32 {
    let both = random.u32(0..=a) | random.u32(from..=to);
    (both + c) % (to - from + 1) + from
}

/// Returns a customer's number, from 1 to `customers`.
pub(super) fn customer(random: &mut Rng, constants: Constants, customers: u32) -> u32 {
    skewed(random, 1023, constants.customer, 1, customers)
}

/// Returns an item's number, from 1 to `items`.
pub(super) fn item(random: &mut Rng, constants: Constants, items: u32) -> u32 {
    skewed(random, 8191, constants.item, 1, items)
}

/// Returns the number of a last name, below `names`.
pub(super) fn last_name_number(random: &mut Rng, constants: Constants, names: u32) -> u32 {
    skewed(random, 255, constants.last_name, 0, names - 1)
}

/// Returns the last name of a number below 1 000.
pub(super) fn last_name(number: u32) -> String {
    [number / 100, number / 10 % 10, number % 10]
        .map(|digit| SYLLABLES[digit as usize])
        .concat()
}

/// Appends letters and digits, so many at least and at most.
pub(super) fn push_text(out: &mut Vec<u8>, random: &mut Rng, from: usize, to: usize) {
    for _ in 0..random.usize(from..=to) {
        out.push(random.alphanumeric() as u8);
    }
}

/// Appends digits.
pub(super) fn push_digits(out: &mut Vec<u8>, random: &mut Rng, length: usize) {
    for _ in 0..length {
        out.push(b'0' + random.u8(..10));
    }
}

/// Appends 26 to 50 letters; in a tenth of the cases ORIGINAL is among them (4.3.3.1).
pub(super) fn push_data(out: &mut Vec<u8>, random: &mut Rng) {
    const ORIGINAL: &[u8] = b"ORIGINAL";
    let from = out.len();
    push_text(out, random, 26, 50);
    if random.u8(..10) == 0 {
        let at = random.usize(from..=out.len() - ORIGINAL.len());
        out[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn skewed_numbers_stay_in_their_range_and_are_skewed() {
        let mut random = Rng::with_seed(7);
        let mut counts = vec![0u32; 3001];
        for _ in 0..300_000 {
            counts[customer(&mut random, Constants::DATA, 3000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        // Evenly it would be a hundred each.
        let most = counts.iter().max().unwrap();
        assert!(*most > 400, "{most}");
        // A number that needs ten bits to be zero twice hardly ever comes.
        let seen = counts[1..].iter().filter(|count| **count > 0).count();
        assert!((2500..3000).contains(&seen), "{seen} of 3000 came");
    }

    #[test]
    fn a_run_keeps_its_distance_from_its_data() {
        for seed in 0..200 {
            let run = Constants::of_run(&mut Rng::with_seed(seed));
            let distance = run.last_name.abs_diff(Constants::DATA.last_name);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
        }
    }

    #[test]
    fn a_tenth_of_data_is_original() {
        let mut random = Rng::with_seed(1);
        let original = (0..10_000)
            .filter(|_| {
                let mut out = Vec::new();
                push_data(&mut out, &mut random);
                assert!((26..=50).contains(&out.len()));
                out.windows(8).any(|part| part == b"ORIGINAL")
            })
            .count();
        assert!((800..1200).contains(&original), "{original}");
    }
}
