//! The table of `top`: all servers, one of them selected, and what that one runs.

use super::number;
use crate::details::Digests;
use crate::gauges::{Gauges, details, lag_s};
use crate::poll::{PollState, Server};
use crate::rates::Counts;
use evenkeel_op::units;

/// The names of columns; the cells of a server are made in the same order.
const COLUMNS: [&str; 14] = [
    "server", "queries", "reads", "writes", "commits", "errors", "conn", "run", "hit%", "disk/s",
    "dirty%", "waits/s", "history", "lag",
];

/// Names are cut to this.
const NAME_LETTERS: usize = 24;
/// Classes of statements below a server that is not alone.
const DIGESTS_BESIDE: usize = 5;

/// By what servers are in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// As they were named.
    #[default]
    Named,
    /// Most queries first.
    Queries,
    /// Most threads that run first.
    Running,
    /// Longest lag first.
    Lag,
}

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A letter or digit.
    Letter(char),
    /// One server up.
    Up,
    /// One server down.
    Down,
    /// Details of the selected server, or back.
    Enter,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// A heading.
    Heading,
    /// The selected server.
    Selected,
}

/// A line without its end. Its text may be of others: control characters in it are the drawer's to escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What stands there.
    pub text: String,
    /// How.
    pub style: Style,
}

/// What is shown, and what was chosen with keys.
#[derive(Debug, Default)]
pub struct Board {
    sort: Sort,
    selected: usize,
    has_details: bool,
}

impl Board {
    /// Obeys a key; returns whether it was the one that ends it.
    pub fn press(&mut self, key: Key, servers: &[Server]) -> bool {
        let last = servers.len().saturating_sub(1);
        let order = self.order(servers);
        let at = order.iter().position(|index| *index == self.selected);
        let at = at.unwrap_or(0);
        let mut select = |at: usize| {
            self.selected = order.get(at.min(last)).copied().unwrap_or(0);
        };
        match key {
            Key::Letter('q' | 'Q') => return true,
            Key::Letter('s' | 'S') => self.sort = self.sort.next(),
            Key::Letter(digit @ '1'..='9') => select(digit as usize - '1' as usize),
            Key::Up | Key::Letter('k') => select(at.saturating_sub(1)),
            Key::Down | Key::Letter('j') => select(at + 1),
            Key::Enter => self.has_details = !self.has_details,
            Key::Letter(_) => {}
        }
        false
    }

    /// Returns which server is selected.
    #[must_use]
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Returns the lines for a terminal of so many rows.
    #[must_use]
    pub fn frame(&self, time: &str, servers: &[Server], rows: usize) -> Vec<Line> {
        let selected = servers.get(self.selected);
        if let (true, Some(server)) = (self.has_details, selected) {
            return self.details(time, server, rows);
        }
        let mut lines = vec![heading(format!(
            "evenkeel top  {time}  {}  sorted by {}  q quit  s sort  ↑↓ select  Enter details",
            units::count(servers.len(), "server"),
            self.sort.name()
        ))];
        let table = table(servers);
        lines.push(heading(table[0].clone()));
        let order = self.order(servers);
        let at = order.iter().position(|index| *index == self.selected);
        // The selected server is in the part that fits.
        let fits = rows.saturating_sub(4 + DIGESTS_BESIDE).max(1);
        let first = at.unwrap_or(0).saturating_sub(fits - 1);
        for index in order.iter().skip(first).take(fits) {
            let style = match *index == self.selected {
                true => Style::Selected,
                false => Style::Plain,
            };
            let text = table[index + 1].clone();
            lines.push(Line { text, style });
        }
        if let Some(server) = selected {
            lines.push(plain(String::new()));
            lines.extend(about(server, DIGESTS_BESIDE));
        }
        lines.truncate(rows);
        lines
    }

    fn details(&self, time: &str, server: &Server, rows: usize) -> Vec<Line> {
        let mut lines = vec![heading(format!(
            "{}  {}  {time}  q quit  Enter back",
            server.name,
            server.state.word()
        ))];
        let table = table(std::slice::from_ref(server));
        lines.push(heading(table[0].clone()));
        lines.push(plain(table[1].clone()));
        for source in details(server).map_or(&[][..], |details| &details.sources) {
            let name = match source.name.is_empty() {
                true => String::new(),
                false => format!(" ({})", source.name),
            };
            let lag = source
                .lag_s
                .map_or("unknown".to_owned(), |lag| format!("{lag} s"));
            let state = if source.is_running { "runs" } else { "stopped" };
            lines.push(plain(format!(
                "replicates from {}{name}: {state}, lag {lag}",
                source.host
            )));
        }
        lines.push(plain(String::new()));
        lines.extend(about(server, rows));
        lines.truncate(rows);
        lines
    }

    fn order(&self, servers: &[Server]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..servers.len()).collect();
        let of = |index: &usize| match self.sort {
            Sort::Named => None,
            Sort::Queries => servers[*index]
                .counts()
                .and_then(|counts| counts.per_s(counts.queries)),
            Sort::Running => Gauges::of(&servers[*index])
                .threads_running
                .map(|running| running as f64),
            Sort::Lag => lag_s(&servers[*index]).map(|lag| lag as f64),
        };
        // Stable: what is equal stays as it was named.
        order.sort_by(|a, b| {
            let unknown = f64::NEG_INFINITY;
            let (a, b) = (of(a).unwrap_or(unknown), of(b).unwrap_or(unknown));
            b.total_cmp(&a)
        });
        order
    }
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Named => Self::Queries,
            Self::Queries => Self::Running,
            Self::Running => Self::Lag,
            Self::Lag => Self::Named,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Named => "name",
            Self::Queries => "queries",
            Self::Running => "running threads",
            Self::Lag => "lag",
        }
    }
}

/// Returns a frame as plain text: all servers, and below them what each one runs.
#[must_use]
pub fn plain_frame(time: &str, servers: &[Server]) -> Vec<Line> {
    let mut lines = vec![heading(format!(
        "{time}  {}",
        units::count(servers.len(), "server")
    ))];
    lines.extend(table(servers).into_iter().map(plain));
    for server in servers {
        lines.push(plain(String::new()));
        lines.extend(about(server, DIGESTS_BESIDE));
    }
    lines.push(plain(String::new()));
    lines
}

/// Returns the table: its header, then one line for each server.
fn table(servers: &[Server]) -> Vec<String> {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(servers.iter().map(cells));
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &[String; COLUMNS.len()]| {
        let mut text = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            text.push_str(&format!("  {cell:>width$}"));
        }
        text
    };
    rows.iter().map(line).collect()
}

fn cells(server: &Server) -> [String; COLUMNS.len()] {
    let gauges = Gauges::of(server);
    [
        server.name.chars().take(NAME_LETTERS).collect(),
        queries(server),
        of_counts(server, |counts| counts.selects),
        of_counts(server, writes),
        of_counts(server, |counts| counts.commits),
        number(gauges.errors_per_s),
        whole(gauges.threads_connected),
        whole(gauges.threads_running),
        percent(gauges.buffer_pool_hit_percent),
        number(gauges.disk_reads_per_s),
        percent(gauges.dirty_percent),
        number(gauges.row_lock_waits_per_s),
        whole(gauges.history_list_length),
        lag(server),
    ]
}

/// Returns what a server runs, or why that is not known.
fn about(server: &Server, most: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if let PollState::Failed(error) = &server.state {
        lines.push(plain(format!("{}: {}", server.name, error.chain())));
    }
    let Some(details) = details(server) else {
        return lines;
    };
    for refused in &details.refused {
        lines.push(plain(format!("{}: not shown: {refused}", server.name)));
    }
    let reported = match &details.digests {
        Digests::Unknown => return lines,
        Digests::Off => format!(
            "{}: performance_schema is off, so classes of statements are not known; see the statements with \
             'evenkeel capture --interface any' on its host",
            server.name
        ),
        Digests::Ran(ran) if ran.is_empty() => format!("{}: no statement ended", server.name),
        Digests::Ran(ran) => {
            lines.push(heading(format!(
                "{:>8}  {:>9}  {:>6}  statements of {}, by time",
                "count", "ms each", "errors", server.name
            )));
            lines.extend(ran.iter().take(most).map(|one| {
                let ms = one.seconds * 1000.0 / one.count as f64;
                plain(format!(
                    "{:>8}  {ms:>9.3}  {:>6}  {}",
                    one.count, one.errors, one.text
                ))
            }));
            return lines;
        }
    };
    lines.push(plain(reported));
    lines
}

fn plain(text: String) -> Line {
    let style = Style::Plain;
    Line { text, style }
}

fn heading(text: String) -> Line {
    let style = Style::Heading;
    Line { text, style }
}

fn queries(server: &Server) -> String {
    match &server.state {
        PollState::Counted(counts) => number(counts.per_s(counts.queries)),
        other => other.word().to_owned(),
    }
}

fn of_counts(server: &Server, which: impl Fn(&Counts) -> Option<u64>) -> String {
    let counts = server.counts();
    number(counts.and_then(|counts| counts.per_s(which(counts))))
}

fn writes(counts: &Counts) -> Option<u64> {
    let all = [counts.inserts?, counts.updates?, counts.deletes?];
    Some(all.into_iter().fold(0, u64::saturating_add))
}

fn whole(value: Option<u64>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// Rounded down: only 100 is shown as 100.
fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| {
        format!("{:.1}", (value * 10.0).floor() / 10.0)
    })
}

fn lag(server: &Server) -> String {
    match details(server) {
        None => "-".to_owned(),
        Some(details) if details.sources.is_empty() => "-".to_owned(),
        Some(details) if details.sources.iter().any(|source| !source.is_running) => {
            "stopped".to_owned()
        }
        Some(_) => lag_s(server).map_or("unknown".to_owned(), |lag| format!("{lag}s")),
    }
}
