//! A capture replayed several times on one server, or on two variants in turn: medians, and whether the variants
//! differ.
//!
//! | file | what |
//! |---|---|
//! | `measured` | what is kept of a run |
//! | `page` | the same as a page with plots |

mod measured;
mod page;

pub use measured::{ClassRuns, Measured, Other};
pub use page::{page, percent, span};

use super::Outcome;
use super::plan::Plan;
use crate::digest::Class;
use evenkeel_op::Result;
use evenkeel_report::compare::{LEVEL, real_among, runs_needed};

/// One replay of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The round, from 1: each variant runs once in it.
    pub round: usize,
    /// The variant: 0 is A, 1 is B.
    pub variant: usize,
}

impl Turn {
    /// Returns the variant's letter.
    #[must_use]
    pub fn letter(self) -> char {
        letter(self.variant)
    }
}

/// Returns a variant's letter.
#[must_use]
pub fn letter(variant: usize) -> char {
    match variant {
        0 => 'A',
        _ => 'B',
    }
}

/// What several rounds came to.
#[derive(Debug)]
pub struct Rounds {
    /// How often each variant ran.
    pub rounds: usize,
    /// The runs in their order.
    pub turns: Vec<Turn>,
    /// How long each took, in the same order.
    pub seconds: Vec<f64>,
    /// All statements.
    pub total: ClassRuns,
    /// Each class, those with the most time in the capture first.
    pub classes: Vec<ClassRuns>,
    /// Statements that a run was to replay and did not, over all runs.
    pub lost: u64,
    /// Why sessions were lost: the first reason there was.
    pub loss: Option<String>,
    /// Statements that each run replayed and counted.
    pub statements: u64,
    /// Statements that each run replayed before, to warm the server up.
    pub warm_up: u64,
}

/// Returns the order of the runs: A B, B A, A B and so on, so that what changes slowly meets both alike.
#[must_use]
pub fn turns(rounds: usize, variants: usize) -> Vec<Turn> {
    (1..=rounds)
        .flat_map(|round| {
            (0..variants).map(move |place| Turn {
                round,
                variant: match round % 2 {
                    1 => place,
                    _ => variants - 1 - place,
                },
            })
        })
        .collect()
}

/// Replays a plan in rounds on one or two variants; `once` prepares the variant and replays.
///
/// # Errors
///
/// Those of `once`: the first ends all.
pub fn rounds(
    plan: &Plan,
    rounds: usize,
    variants: usize,
    mut once: impl FnMut(Turn) -> Result<Outcome>,
) -> Result<Rounds> {
    let original = &plan.original;
    let others = std::iter::once(&original.others).filter(|class| class.count > 0);
    let new = |class: &Class| ClassRuns::of(class, variants);
    let mut classes: Vec<ClassRuns> = original.classes.iter().map(new).collect();
    classes.extend(others.map(|class| {
        let mut runs = new(class);
        runs.fingerprint = "(classes beyond those that are kept)".to_owned();
        runs
    }));
    let mut all = Rounds {
        rounds,
        turns: turns(rounds, variants),
        seconds: Vec::new(),
        total: new(&original.total),
        classes,
        lost: 0,
        loss: None,
        statements: 0,
        warm_up: 0,
    };
    for turn in all.turns.clone() {
        all.add(turn, once(turn)?);
    }
    all.compare();
    Ok(all)
}

impl Rounds {
    fn add(&mut self, turn: Turn, outcome: Outcome) {
        let summary = &outcome.summary;
        let classes = summary.classes.iter().chain([&summary.others]);
        let parts = classes.zip(&outcome.differences);
        for (runs, (class, differences)) in self.classes.iter_mut().zip(parts) {
            runs.add(turn.variant, class, differences);
            self.total.merge_differences(turn.variant, differences);
        }
        self.total.add_run(turn.variant, &summary.total);
        self.seconds.push(outcome.seconds);
        self.lost += outcome.lost;
        self.loss = self.loss.take().or(outcome.loss);
        self.statements = self.statements.max(outcome.statements);
        self.warm_up = self.warm_up.max(outcome.warm_up);
    }

    fn compare(&mut self) {
        for class in &mut self.classes {
            class.compare();
        }
        self.total.compare();
        self.total.is_real = self.total.verdict.as_ref().is_some_and(|one| one.is_real);
        let tested = self
            .classes
            .iter()
            .filter_map(|class| class.verdict.as_ref());
        let real = real_among(&tested.map(|verdict| verdict.p).collect::<Vec<_>>());
        let tested = self.classes.iter_mut().filter(|one| one.verdict.is_some());
        for (class, is_real) in tested.zip(real) {
            class.is_real = is_real;
        }
    }

    /// Returns how many variants there are.
    #[must_use]
    pub fn variants(&self) -> usize {
        self.total.runs.len()
    }

    /// Returns how many rounds it takes to tell a class that differs from chance; `None` if there were as many.
    #[must_use]
    pub fn rounds_needed(&self) -> Option<usize> {
        let tested = self.classes.iter().filter(|one| one.verdict.is_some());
        let needed = runs_needed(tested.count());
        (self.variants() > 1 && needed > self.rounds).then_some(needed)
    }

    /// Whether even one difference alone cannot be told from chance by so many rounds.
    #[must_use]
    pub fn are_too_few(&self) -> bool {
        let verdict = self.total.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.p_least >= LEVEL)
    }

    /// Returns the classes whose results differ between the variants.
    pub fn other_results(&self) -> impl Iterator<Item = &ClassRuns> {
        self.classes.iter().filter(|class| !class.others.is_empty())
    }

    /// Returns how many outcomes were not those of the capture, over all runs.
    #[must_use]
    pub fn differences(&self) -> u64 {
        let all = self.total.differences.iter();
        all.map(super::Differences::counted).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_variant_is_always_the_first() {
        let letters =
            |variants| -> String { turns(4, variants).into_iter().map(Turn::letter).collect() };
        assert_eq!(letters(2), "ABBAABBA");
        assert_eq!(letters(1), "AAAA");
        let rounds: Vec<usize> = turns(2, 2).iter().map(|turn| turn.round).collect();
        assert_eq!(rounds, [1, 1, 2, 2]);
    }
}
