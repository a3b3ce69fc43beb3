//! The record as people read it.

use super::find::Entry;
use super::line::Line;
use crate::record::day;
use std::fmt::Write as _;

/// Returns a table of what became of each entry the last time.
pub(super) fn page(entries: &[&Entry], lines: &[Line]) -> String {
    let mut page = String::from(
        "| entry | rounds | seed | commit | date | minutes | outcome |\n\
         |---|---|---:|---|---|---:|---|\n",
    );
    for entry in entries {
        let name = entry.to_string();
        // Writing to a String cannot fail.
        let _ = match lines.iter().rfind(|line| line.entry == name) {
            Some(line) => writeln!(
                page,
                "| {name} | {} | {} | {} | {} | {} | {} |",
                rounds(line),
                line.seed,
                line.short(),
                day(line.started),
                line.minutes(),
                line.outcome
            ),
            None => writeln!(page, "| {name} | | | | | | not yet |"),
        };
    }
    page
}

/// Returns what the tests said of their loops, without the seed, which has a column.
fn rounds(line: &Line) -> String {
    let seed = format!(", seed {}", line.seed);
    let reported = line.efforts.iter();
    let reported: Vec<&str> = reported
        .map(|one| one.strip_suffix(&seed).unwrap_or(one))
        .collect();
    reported.join("; ").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::super::line::Outcome;
    use super::super::line::tests::{entry, line};
    use super::*;

    #[test]
    fn the_last_time_is_shown() {
        let (a, b) = (entry("a"), entry("b"));
        let lines = [
            line("0123456789abcdef", "a", 1, Outcome::Failed),
            line("0123456789abcdef+changes.12", "a", 7, Outcome::Passed),
        ];
        let page = page(&[&a, &b], &lines);
        let rows: Vec<&str> = page.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| p::a | kills: 4 of 5 | 7 | 0123456789ab+changes | 2026-03-04 | 1.5 | passed |",
                "| p::b | | | | | | not yet |",
            ]
        );
    }
}
