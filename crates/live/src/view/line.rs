//! Rates as lines: one for each interval, as `vmstat` has them. Where that is wider than the terminal, one for each
//! server.

use super::number;
use crate::poll::{PollState, Server};
use crate::rates::{Counts, total_per_s};

/// The header is repeated after so many lines.
const LINES_PER_HEADER: usize = 20;
/// Columns are not narrower than this.
const NARROWEST: usize = 7;

type CountColumn = (&'static str, fn(&Counts) -> Option<u64>);

/// What statements do, and its column.
const KINDS: [CountColumn; 5] = [
    ("select", |counts| counts.selects),
    ("insert", |counts| counts.inserts),
    ("update", |counts| counts.updates),
    ("delete", |counts| counts.deletes),
    ("commit", |counts| counts.commits),
];

/// The layout of the lines of some servers.
#[derive(Debug)]
pub struct Lines {
    names: Vec<String>,
    is_wide: bool,
    shown: usize,
}

impl Lines {
    /// Lays out lines for these servers, on a terminal of so many columns, if it is one.
    #[must_use]
    pub fn new(names: Vec<String>, columns: Option<usize>) -> Self {
        let mut lines = Self {
            names,
            is_wide: true,
            shown: 0,
        };
        let width = lines.header("00:00:00").chars().count();
        lines.is_wide = columns.is_none_or(|columns| width <= columns);
        lines
    }

    /// Returns what to show of an interval that ended at `time`, each line with its end.
    pub fn frame(&mut self, time: &str, servers: &[Server]) -> String {
        match self.is_wide {
            true => self.wide(time, servers),
            false => self.tall(time, servers),
        }
    }

    fn wide(&mut self, time: &str, servers: &[Server]) -> String {
        let mut text = match self.shown.is_multiple_of(LINES_PER_HEADER) {
            true => format!("{}\n", self.header(time)),
            false => String::new(),
        };
        self.shown += 1;
        let rates = servers.iter().map(|server| rate(&server.state));
        let mut cells: Vec<String> = rates.collect();
        if servers.len() > 1 {
            cells.push(total(servers, |counts| counts.queries));
        }
        cells.extend(KINDS.map(|(_, kind)| total(servers, kind)));
        let columns = self.columns();
        text.push_str(time);
        for (cell, column) in cells.iter().zip(&columns) {
            push(&mut text, cell, width(column));
        }
        text.push('\n');
        text
    }

    fn columns(&self) -> Vec<String> {
        let mut columns = match self.names.len() {
            1 => vec!["queries".to_owned()],
            _ => [self.names.as_slice(), &["total".to_owned()]].concat(),
        };
        columns.extend(KINDS.map(|(name, _)| name.to_owned()));
        columns
    }

    fn header(&self, time: &str) -> String {
        let mut text = format!("{:<1$}", "time", time.chars().count());
        for column in self.columns() {
            push(&mut text, &column, width(&column));
        }
        text
    }

    /// One line for each server, and their total.
    fn tall(&self, time: &str, servers: &[Server]) -> String {
        let names = self.names.iter().map(|name| name.chars().count());
        let first = names.max().unwrap_or(0).max(time.chars().count());
        let mut text = format!("{time:<first$}");
        push(&mut text, "queries", NARROWEST);
        for (name, _) in KINDS {
            push(&mut text, name, NARROWEST);
        }
        text.push('\n');
        for server in servers {
            text.push_str(&format!("{:<first$}", server.name));
            push(&mut text, &rate(&server.state), NARROWEST);
            let counts = server.counts();
            for (_, kind) in KINDS {
                let rate = counts.and_then(|counts| counts.per_s(kind(counts)));
                push(&mut text, &number(rate), NARROWEST);
            }
            text.push('\n');
        }
        text.push_str(&format!("{:<first$}", "total"));
        push(
            &mut text,
            &total(servers, |counts| counts.queries),
            NARROWEST,
        );
        for (_, kind) in KINDS {
            push(&mut text, &total(servers, kind), NARROWEST);
        }
        text.push_str("\n\n");
        text
    }
}

fn width(column: &str) -> usize {
    column.chars().count().max(NARROWEST)
}

/// Appends a cell, to the right of its column.
fn push(text: &mut String, cell: &str, width: usize) {
    text.push_str(&format!("  {cell:>width$}"));
}

fn total(servers: &[Server], which: impl Fn(&Counts) -> Option<u64>) -> String {
    number(total_per_s(
        servers.iter().filter_map(Server::counts),
        which,
    ))
}

/// Returns queries per second, or the word for why there are none.
fn rate(state: &PollState) -> String {
    match state {
        PollState::Counted(counts) => number(counts.per_s(counts.queries)),
        other => other.word().to_owned(),
    }
}
