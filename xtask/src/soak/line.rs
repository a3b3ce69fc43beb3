//! One line of the record, and what the record says of a commit.

use super::find::Entry;
use crate::git::short;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What became of one entry, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) commit: String,
    pub(super) entry: String,
    pub(super) seed: u64,
    pub(super) started: Timestamp,
    pub(super) seconds: u64,
    pub(super) outcome: Outcome,
    /// How many tests were run.
    pub(super) tests: u64,
    /// What each of them said of its loop.
    pub(super) efforts: Vec<String>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// It did not compile, or there was no test.
    DidNotRun,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::DidNotRun => "DID NOT RUN",
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.minutes();
        write!(out, "{} {} in {minutes} minutes", self.entry, self.outcome)?;
        self.efforts
            .iter()
            .try_for_each(|one| write!(out, "\n    {one}"))
    }
}

impl Line {
    /// Returns how long it took.
    pub(super) fn minutes(&self) -> String {
        format!("{}.{}", self.seconds / 60, self.seconds % 60 / 6)
    }

    /// Returns the commit as people read it.
    pub(super) fn short(&self) -> String {
        short(&self.commit)
    }
}

/// Whether an entry has passed at one of these commits, with this seed or with any.
pub(super) fn has_passed(
    lines: &[Line],
    commits: &BTreeSet<String>,
    entry: &Entry,
    seed: Option<u64>,
) -> bool {
    let name = entry.to_string();
    lines.iter().any(|line| {
        commits.contains(&line.commit)
            && line.entry == name
            && line.outcome == Outcome::Passed
            && seed.is_none_or(|seed| seed == line.seed)
    })
}

/// Returns the seed of the run at these commits that has not come to its end, if there is one.
pub(super) fn unfinished(lines: &[Line], commits: &BTreeSet<String>, all: &[Entry]) -> Option<u64> {
    let last = lines.iter().rfind(|line| commits.contains(&line.commit))?;
    let is_open = |entry| !has_passed(lines, commits, entry, None);
    all.iter().any(is_open).then_some(last.seed)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn entry(test: &str) -> Entry {
        Entry {
            package: "p".into(),
            test: Some(test.into()),
        }
    }

    pub(crate) fn line(commit: &str, test: &str, seed: u64, outcome: Outcome) -> Line {
        Line {
            commit: commit.into(),
            entry: format!("p::{test}"),
            seed,
            started: "2026-03-04T05:06:07Z".parse().unwrap(),
            seconds: 90,
            outcome,
            tests: 1,
            efforts: vec!["kills: 4 of 5, seed 7".into()],
        }
    }

    fn at(commit: &str) -> BTreeSet<String> {
        BTreeSet::from([commit.to_owned()])
    }

    #[test]
    fn what_has_passed_is_known_by_commit_and_seed() {
        let lines = [
            line("c", "a", 1, Outcome::Passed),
            line("c", "b", 1, Outcome::Failed),
        ];
        assert!(has_passed(&lines, &at("c"), &entry("a"), None));
        assert!(has_passed(&lines, &at("c"), &entry("a"), Some(1)));
        assert!(!has_passed(&lines, &at("c"), &entry("a"), Some(2)));
        assert!(!has_passed(&lines, &at("d"), &entry("a"), None));
        assert!(!has_passed(&lines, &at("c"), &entry("b"), None));
    }

    #[test]
    fn a_run_that_did_not_end_gives_its_seed() {
        let all = [entry("a"), entry("b")];
        let mut lines = vec![line("c", "a", 1, Outcome::Passed)];
        assert_eq!(unfinished(&lines, &at("c"), &all), Some(1));
        assert_eq!(unfinished(&lines, &at("d"), &all), None);
        lines.push(line("c", "b", 2, Outcome::Failed));
        assert_eq!(unfinished(&lines, &at("c"), &all), Some(2));
        lines.push(line("c", "b", 2, Outcome::Passed));
        assert_eq!(unfinished(&lines, &at("c"), &all), None);
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let text = serde_json::to_string(&line("c", "a", 1, Outcome::DidNotRun)).unwrap();
        assert!(
            text.contains("\"started\":\"2026-03-04T05:06:07Z\""),
            "{text}"
        );
        assert!(text.contains("\"outcome\":\"did_not_run\""), "{text}");
        let again: Line = serde_json::from_str(&text).unwrap();
        assert_eq!(
            again.to_string(),
            "p::a DID NOT RUN in 1.5 minutes\n    kills: 4 of 5, seed 7"
        );
    }
}
