//! One line of the record, and what the record says.

use super::Entry;
use super::trial::Outcome;
use crate::git::short;
use crate::record::day;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What became of one entry, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) commit: String,
    pub(super) name: String,
    /// With what the test said, when one failed.
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    pub(super) started: Timestamp,
    pub(super) seconds: u64,
}

/// Whether an entry was killed at one of these commits, the last time it was tried there.
pub(super) fn was_killed(lines: &[Line], commits: &BTreeSet<String>, name: &str) -> bool {
    let mut there = lines.iter().filter(|line| commits.contains(&line.commit));
    let last = there.rfind(|line| line.name == name);
    last.is_some_and(|line| line.outcome.is_killed())
}

/// Returns what became of each entry the last time: how many at which commit and when, and by name
/// those that no test noticed.
pub(super) fn page(entries: &[Entry], lines: &[Line]) -> String {
    let last = |entry: &Entry| lines.iter().rfind(|line| line.name == entry.name);
    let found: Vec<&Line> = entries.iter().filter_map(last).collect();
    let mut commits: Vec<(&str, Timestamp)> = Vec::new();
    for line in &found {
        match commits
            .iter_mut()
            .find(|(commit, _)| *commit == line.commit)
        {
            Some((_, first)) => *first = line.started.min(*first),
            None => commits.push((&line.commit, line.started)),
        }
    }
    commits.sort_by_key(|(_, first)| *first);
    let mut page = String::from(
        "| commit | from | to | killed | survived | proved nothing | minutes |\n\
         |---|---|---|---:|---:|---:|---:|\n",
    );
    for (commit, _) in &commits {
        let here: Vec<&Line> = found
            .iter()
            .copied()
            .filter(|line| line.commit == *commit)
            .collect();
        row(&mut page, &short(commit), &here);
    }
    row(&mut page, "**all**", &found);
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "\n{} of {} have been tried.",
        found.len(),
        entries.len()
    );
    for line in found.iter().filter(|line| !line.outcome.is_killed()) {
        let _ = writeln!(page, "* `{}`: {}", line.name, line.outcome);
    }
    page
}

fn row(page: &mut String, what: &str, lines: &[&Line]) {
    let count = |is: fn(&Outcome) -> bool| lines.iter().filter(|line| is(&line.outcome)).count();
    let days = || lines.iter().map(|line| line.started);
    let _ = writeln!(
        page,
        "| {what} | {} | {} | {} | {} | {} | {} |",
        days().min().map(day).unwrap_or_default(),
        days().max().map(day).unwrap_or_default(),
        count(Outcome::is_killed),
        count(|one| *one == Outcome::Survived),
        count(Outcome::is_invalid),
        lines.iter().map(|line| line.seconds).sum::<u64>() / 60,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        toml::from_str(&format!(
            "name = '{name}'\nfault = 'F1'\nwhy = 'w'\nfile = 'f'\nfind = 'b'\nreplace = ''\n\
             package = 'evenkeel-op'\ntest = 't'\n"
        ))
        .unwrap()
    }

    fn line(commit: &str, name: &str, day: u8, outcome: Outcome) -> Line {
        Line {
            commit: commit.into(),
            name: name.into(),
            outcome,
            started: format!("2026-03-0{day}T05:06:07Z").parse().unwrap(),
            seconds: 120,
        }
    }

    fn killed() -> Outcome {
        Outcome::Killed {
            said: "left: 1".into(),
        }
    }

    #[test]
    fn the_last_trial_at_the_commit_counts() {
        let lines = [
            line("c", "a", 1, killed()),
            line("c", "b", 1, killed()),
            line("c", "b", 2, Outcome::Survived),
        ];
        let at = |commits: &[&str]| commits.iter().map(|one| (*one).to_owned()).collect();
        assert!(was_killed(&lines, &at(&["c"]), "a"));
        assert!(was_killed(&lines, &at(&["b", "c", "d"]), "a"));
        assert!(!was_killed(&lines, &at(&["c"]), "b"));
        assert!(!was_killed(&lines, &at(&["d"]), "a"));
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for outcome in [
            killed(),
            Outcome::Survived,
            Outcome::NoTest { code: Some(4) },
        ] {
            let text = serde_json::to_string(&line("c", "a", 1, outcome.clone())).unwrap();
            let again: Line = serde_json::from_str(&text).unwrap();
            assert_eq!(again.outcome, outcome, "{text}");
        }
        let text = serde_json::to_string(&line("c", "a", 1, killed())).unwrap();
        assert!(
            text.contains("\"outcome\":\"killed\",\"said\":\"left: 1\""),
            "{text}"
        );
    }

    #[test]
    fn the_record_is_reported_by_commit() {
        let entries = ["a", "b", "c", "d"].map(entry);
        let lines = [
            line("old", "a", 1, Outcome::Survived),
            line("old", "b", 1, Outcome::Survived),
            line("old", "c", 2, killed()),
            line("new", "a", 3, killed()),
            line("new", "gone", 3, killed()),
        ];
        assert_eq!(
            page(&entries, &lines),
            "| commit | from | to | killed | survived | proved nothing | minutes |\n\
             |---|---|---|---:|---:|---:|---:|\n\
             | old | 2026-03-01 | 2026-03-02 | 1 | 1 | 0 | 4 |\n\
             | new | 2026-03-03 | 2026-03-03 | 1 | 0 | 0 | 2 |\n\
             | **all** | 2026-03-01 | 2026-03-03 | 2 | 1 | 0 | 6 |\n\
             \n3 of 4 have been tried.\n\
             * `b`: SURVIVED\n"
        );
    }
}
