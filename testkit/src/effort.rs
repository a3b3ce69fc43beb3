//! How much of a long loop a run does: a sample in `make test`, all of it in `make soak`.
//!
//! What a sample takes is decided by a seed that all tests of a run share, and that is printed. The tests that
//! share a list of points take turns: if their parts are all of the list, each point is in the sample of one of
//! them, whatever the seed.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Which of the tests that share a list this is: the third of four is `Part::new(2, 4)`.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    nth: usize,
    of: usize,
}

impl Part {
    /// A test that shares a list with nobody.
    pub const WHOLE: Self = Self::new(0, 1);

    /// The test number `nth`, from 0, of `of`.
    #[must_use]
    pub const fn new(nth: usize, of: usize) -> Self {
        assert!(nth < of, "parts are counted from 0");
        Self { nth, of }
    }
}

/// Returns whether loops run in full: `EVENKEEL_EFFORT=full`, as `make soak` sets it.
#[must_use]
pub fn is_full() -> bool {
    match std::env::var("EVENKEEL_EFFORT").as_deref() {
        Ok("full") => true,
        Ok("sample" | "") | Err(_) => false,
        Ok(other) => panic!("EVENKEEL_EFFORT is 'sample' or 'full', not '{other}'"),
    }
}

/// Returns the seed of the run: `EVENKEEL_SEED`, or one that the tests of a run of nextest share, or 0.
#[must_use]
pub fn seed() -> u64 {
    if let Ok(text) = std::env::var("EVENKEEL_SEED") {
        return text.parse().expect("EVENKEEL_SEED is a number");
    }
    std::env::var("NEXTEST_RUN_ID").map_or(0, |run| {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        hasher.finish() % 1_000_000
    })
}

/// Returns how many rounds of a loop to run: `sample`, or `all` of them in full, or `EVENKEEL_ROUNDS`.
#[must_use]
pub fn rounds(what: &str, sample: u32, all: u32) -> u32 {
    let set = std::env::var("EVENKEEL_ROUNDS").ok();
    let rounds = match set {
        Some(text) => text.parse().expect("EVENKEEL_ROUNDS is a number"),
        None if is_full() => all,
        None => sample,
    };
    tell(what, rounds as usize, all as usize);
    rounds
}

/// Returns the points of a list that a test is put through: in full all of them, else those whose turn it is.
#[must_use]
pub fn share<T: Clone>(what: &str, points: &[T], part: Part) -> Vec<T> {
    let taken: Vec<T> = match is_full() {
        true => points.to_vec(),
        false => turn(points, part, seed()),
    };
    tell(what, taken.len(), points.len());
    taken
}

/// Returns the variants that a test runs for: in full all of them, else `some`, whose turn the seed says it is. For
/// a choice of servers or filesystems that each take as long as all the rest of a test.
#[must_use]
pub fn draw<T: Clone>(what: &str, variants: &[T], some: usize) -> Vec<T> {
    let taken = match is_full() {
        true => variants.to_vec(),
        false => drawn(variants, some, seed()),
    };
    tell(what, taken.len(), variants.len());
    taken
}

fn drawn<T: Clone>(variants: &[T], some: usize, seed: u64) -> Vec<T> {
    let first = (seed % variants.len() as u64) as usize;
    let endless = variants.iter().cycle().skip(first);
    endless.take(some.min(variants.len())).cloned().collect()
}

fn turn<T: Clone>(points: &[T], part: Part, seed: u64) -> Vec<T> {
    let first = (seed % part.of as u64) as usize;
    let is_mine = |at: usize| (at + first) % part.of == part.nth;
    let points = points.iter().enumerate();
    points
        .filter(|(at, _)| is_mine(*at))
        .map(|(_, point)| point.clone())
        .collect()
}

/// What `cargo xtask soak` looks for in the output.
fn tell(what: &str, done: usize, all: usize) {
    println!("effort: {what}: {done} of {all}, seed {}", seed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_somebodys_turn_whatever_the_seed() {
        let points: Vec<u32> = (0..11).collect();
        for seed in 0..20 {
            let mut taken: Vec<u32> = (0..3)
                .flat_map(|nth| turn(&points, Part::new(nth, 3), seed))
                .collect();
            taken.sort_unstable();
            assert_eq!(taken, points, "seed {seed}");
        }
    }

    #[test]
    fn each_variant_is_drawn_by_some_seed_and_none_twice() {
        for some in 1..6 {
            let mut all: Vec<u32> = Vec::new();
            for seed in 0..5 {
                let mut taken = drawn(&[0, 1, 2, 3, 4], some, seed);
                assert_eq!(taken.len(), some.min(5));
                all.append(&mut taken);
            }
            all.sort_unstable();
            all.dedup();
            assert_eq!(all, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn turns_change_with_the_seed() {
        let points = [1, 2, 3];
        let first = |seed| turn(&points, Part::new(0, 3), seed);
        assert_eq!(
            [first(0), first(1), first(2), first(3)],
            [vec![1], vec![3], vec![2], vec![1]]
        );
        assert_eq!(turn(&points, Part::WHOLE, 7), points);
    }
}
