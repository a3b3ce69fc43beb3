//! What `queue` answers.

use super::Answer;
use crate::show::obeyed::is_obeyed;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_queue_admin::{
    Compacted, FilesReport, Forwarded, Peeked, QueueNumbers, QueueState, StatusReport, TableFiles,
};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Characters of a cell that are shown to people.
const CELL: usize = 60;

impl Answer for StatusReport {
    const SCHEMA: &'static str = "evenkeel/queue-status/1";

    fn text(&self) -> String {
        if self.queues.is_empty() {
            return "there are no queues\n".to_owned();
        }
        let mut table = TextTable::new(&[
            ("queue", Align::Left),
            ("rows", Align::Right),
            ("owned", Align::Right),
            ("oldest", Align::Right),
            ("waiters", Align::Right),
            ("came", Align::Right),
            ("went", Align::Right),
            ("came/s", Align::Right),
            ("went/s", Align::Right),
            ("size", Align::Right),
        ]);
        for one in &self.queues {
            table.row(cells(one));
        }
        let mut text = table.text();
        for one in &self.queues {
            let owners = one.numbers.iter().flat_map(|numbers| &numbers.owners);
            for owner in owners.flatten() {
                // Writing into a string cannot fail.
                let _ = writeln!(
                    text,
                    "{}.{}: connection {} owns {}",
                    one.database,
                    one.table,
                    owner.connection,
                    units::count(owner.rows, "row")
                );
            }
            if let Some(problem) = &one.problem {
                let _ = writeln!(text, "{}.{}: {problem}", one.database, one.table);
            }
        }
        text
    }
}

/// A queue's line: its name alone where nothing else is known.
fn cells(one: &QueueState) -> [String; 10] {
    let name = format!("{}.{}", one.database, one.table);
    let Some(numbers) = &one.numbers else {
        let mut cells = [const { String::new() }; 10];
        (cells[0], cells[1]) = (name, "?".to_owned());
        return cells;
    };
    [
        name,
        numbers.rows.to_string(),
        numbers.owned.to_string(),
        waited(numbers),
        numbers.waiters.to_string(),
        numbers.written.to_string(),
        numbers.removed.to_string(),
        format!("{:.1}", numbers.written_per_s),
        format!("{:.1}", numbers.removed_per_s),
        units::bytes(numbers.bytes),
    ]
}

/// How long the oldest row has waited, as far as that is known.
fn waited(one: &QueueNumbers) -> String {
    match one.oldest_s {
        _ if one.rows == 0 => String::new(),
        None => "?".to_owned(),
        // Whole seconds are known, and no more.
        Some(seconds) if seconds < 60 => format!("{seconds} s"),
        Some(seconds) => units::duration(Duration::from_secs(seconds)),
    }
}

/// A number of a queue for Prometheus: name, kind, help, and where it is.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&QueueNumbers) -> Vec<(String, u64)>,
);

/// A number that a queue has once, and that needs no more labels.
fn once(number: u64) -> Vec<(String, u64)> {
    vec![(String::new(), number)]
}

/// The rows of each connection.
fn of_owners(one: &QueueNumbers) -> Vec<(String, u64)> {
    let owners = one.owners.iter().flatten();
    owners
        .map(|owner| (format!(",connection=\"{}\"", owner.connection), owner.rows))
        .collect()
}

/// What is reported about each queue that can be read.
const METRICS: [Metric; 8] = [
    ("rows", "gauge", "Rows in the queue.", |one| once(one.rows)),
    ("rows_owned", "gauge", "Rows that a consumer owns.", |one| {
        once(one.owned)
    }),
    ("waiters", "gauge", "Consumers that wait.", |one| {
        once(one.waiters)
    }),
    (
        "rows_written_total",
        "counter",
        "Rows written since the server opened the queue.",
        |one| once(one.written),
    ),
    (
        "rows_removed_total",
        "counter",
        "Rows removed since the server opened the queue.",
        |one| once(one.removed),
    ),
    ("bytes", "gauge", "Bytes of its files.", |one| {
        once(one.bytes)
    }),
    (
        "oldest_row_seconds",
        "gauge",
        "How long the oldest row has waited, if known.",
        |one| one.oldest_s.map_or_else(Vec::new, once),
    ),
    (
        "rows_owned_by",
        "gauge",
        "Rows that a connection owns.",
        of_owners,
    ),
];

/// Returns the whole of a file for node_exporter's textfile collector.
#[must_use]
pub fn queue_metrics(report: &StatusReport) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(
            text,
            "# HELP evenkeel_queue_{name} {help}\n# TYPE evenkeel_queue_{name} {kind}"
        );
    };
    let line = |text: &mut String, name: &str, one: &QueueState, (more, value): (&str, u64)| {
        let _ = writeln!(
            text,
            "evenkeel_queue_{name}{{database=\"{}\",table=\"{}\"{more}}} {value}",
            escaped(&one.database),
            escaped(&one.table)
        );
    };
    for (name, kind, help, value) in METRICS {
        head(&mut text, name, kind, help);
        for one in &report.queues {
            for (more, value) in one.numbers.iter().flat_map(value) {
                line(&mut text, name, one, (&more, value));
            }
        }
    }
    head(
        &mut text,
        UNREADABLE,
        "gauge",
        "Whether nothing could be read of it: 1 if so.",
    );
    for one in &report.queues {
        let value = u64::from(one.problem.is_some());
        line(&mut text, UNREADABLE, one, ("", value));
    }
    text
}

/// What says of each queue whether it could be read.
const UNREADABLE: &str = "unreadable";

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

impl Answer for Peeked {
    const SCHEMA: &'static str = "evenkeel/queue-peek/1";

    fn text(&self) -> String {
        if self.rows.is_empty() {
            return format!("{}: no free row\n", self.table);
        }
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.collect();
            format!("{}\n", cells.join("\t"))
        };
        let mut text = line(&mut self.columns.iter().cloned());
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(|cell| shown(cell.as_deref()))));
        }
        text
    }
}

/// A cell on one line, and not forever.
fn shown(cell: Option<&str>) -> String {
    let Some(text) = cell else {
        return "NULL".to_owned();
    };
    let mut short: String = text.chars().take(CELL).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.replace(is_obeyed, " ")
}

impl Answer for Compacted {
    const SCHEMA: &'static str = "evenkeel/queue-compact/1";

    fn text(&self) -> String {
        format!(
            "{}: {}; {} before, {} now\n",
            self.table,
            units::count(self.rows, "row"),
            units::bytes(self.bytes_before),
            units::bytes(self.bytes_after)
        )
    }
}

impl Answer for Forwarded {
    const SCHEMA: &'static str = "evenkeel/queue-forward/1";

    fn text(&self) -> String {
        format!(
            "{} to {}: {} in {}\n",
            self.from,
            self.to,
            units::count(self.rows, "row"),
            match self.batches {
                1 => "1 batch".to_owned(),
                batches => format!("{batches} batches"),
            }
        )
    }
}

/// Returns the whole of a forwarder's file for node_exporter's textfile collector.
#[must_use]
pub fn forward_metrics(done: &Forwarded) -> String {
    let whole = [
        (
            "rows_total",
            "counter",
            "Rows that were sent since this run began.",
            done.rows,
        ),
        (
            "batches_total",
            "counter",
            "Batches that were sent since this run began.",
            done.batches,
        ),
        (
            "reconnects_total",
            "counter",
            "Reconnections.",
            done.reconnects,
        ),
    ];
    let labels = format!(
        "{{from=\"{}\",to=\"{}\"}}",
        escaped(&done.from),
        escaped(&done.to)
    );
    let mut text = String::new();
    let mut one = |name: &str, kind: &str, help: &str, value: String| {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "# HELP evenkeel_queue_forward_{name} {help}\n# TYPE evenkeel_queue_forward_{name} {kind}\n\
             evenkeel_queue_forward_{name}{labels} {value}"
        );
    };
    for (name, kind, help, value) in whole {
        one(name, kind, help, value.to_string());
    }
    if let Some(at) = done.caught_up_unix_s {
        let help = "When the queue was last seen empty.";
        one(
            "caught_up_timestamp_seconds",
            "gauge",
            help,
            format!("{at:.3}"),
        );
    }
    text
}

/// What `queue check` found.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct QueueCheckAnswer(pub FilesReport);

impl Answer for QueueCheckAnswer {
    const SCHEMA: &'static str = "evenkeel/queue-check/1";

    fn text(&self) -> String {
        let mut text: String = self.0.tables.iter().map(table).collect();
        if !self.0.sound {
            text.push_str("to salvage intact rows: evenkeel queue salvage\n");
        }
        text
    }
}

/// What `queue salvage` kept.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct QueueSalvageAnswer(pub FilesReport);

impl Answer for QueueSalvageAnswer {
    const SCHEMA: &'static str = "evenkeel/queue-salvage/1";

    fn text(&self) -> String {
        let one = |found: &TableFiles| {
            let written = found.written.as_ref();
            let written = written.map(|path| format!("  written: {}\n", path.display()));
            format!("{}{}", table(found), written.unwrap_or_default())
        };
        self.0.tables.iter().map(one).collect()
    }
}

/// What should be said of one table's files.
fn table(found: &TableFiles) -> String {
    if let Some(problem) = &found.problem {
        return format!("{}: LOST: {problem}\n", found.table);
    }
    let verdict = match found.damage.is_empty() {
        true => "sound",
        false => "DAMAGED",
    };
    let mut text = format!(
        "{}: {} in {}, {}: {verdict}\n",
        found.table,
        units::count(found.rows, "row"),
        units::count(found.files, "file"),
        units::bytes(found.bytes)
    );
    // Writing into a string cannot fail.
    for one in &found.damage {
        let bytes = match one.bytes {
            0 => String::new(),
            bytes => format!(", {}", units::count(bytes, "byte")),
        };
        let _ = writeln!(
            text,
            "  {}, offset {}{bytes}: {}",
            one.file.display(),
            one.offset,
            one.what
        );
    }
    if found.rows_out_of_broken_frames > 0 {
        let _ = writeln!(
            text,
            "  {} intact, and kept",
            match found.rows_out_of_broken_frames {
                1 => "1 row of a damaged statement is".to_owned(),
                rows => format!("{rows} rows of damaged statements are"),
            }
        );
    }
    if found.rows_missing > 0 {
        let _ = writeln!(
            text,
            "  at most {} missing, as far as is known{}",
            match found.rows_missing {
                1 => "1 row is".to_owned(),
                rows => format!("{rows} rows are"),
            },
            ids(found)
        );
    }
    if found.may_repeat {
        text.push_str("  removals may be lost: consumed rows may be delivered again\n");
    }
    if found.torn_bytes > 0 {
        let _ = writeln!(
            text,
            "  {} at the end, torn by a crash: no acknowledged statement",
            units::count(found.torn_bytes, "byte")
        );
    }
    text
}

fn ids(found: &TableFiles) -> String {
    let Some(first) = found.missing.first() else {
        return String::new();
    };
    let more = match found.missing.len() {
        1 => "",
        _ => " and others",
    };
    match first.count {
        1 => format!(": id {}{more}", first.first),
        count => format!(": ids {} to {}{more}", first.first, first.first + count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_queue_admin::Owner;
    use std::collections::BTreeMap;

    fn report() -> StatusReport {
        StatusReport {
            uptime_s: 10,
            queues: vec![QueueState {
                database: "shop".into(),
                table: "new \"jobs\"".into(),
                problem: None,
                numbers: Some(QueueNumbers {
                    rows: 3,
                    owned: 1,
                    waiters: 0,
                    written: 50,
                    removed: 47,
                    written_per_s: 5.0,
                    removed_per_s: 4.7,
                    bytes: 4096,
                    oldest_s: Some(75),
                    owners: Some(vec![Owner {
                        connection: 12,
                        rows: 1,
                    }]),
                    counters: BTreeMap::new(),
                }),
            }],
        }
    }

    #[test]
    fn what_cannot_be_read_is_listed_and_says_why() {
        let mut report = report();
        report.queues.push(QueueState {
            database: "shop".into(),
            table: "mails".into(),
            problem: Some("its file is damaged".into()),
            numbers: None,
        });
        assert!(!report.is_whole());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["queues"][0]["problem"], serde_json::Value::Null);
        assert_eq!(json["queues"][0]["rows"], 3);
        let keys: Vec<&String> = json["queues"][1].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["database", "problem", "table"], "{json}");
        let text = report.text();
        assert!(
            text.contains("\nshop.mails: its file is damaged\n"),
            "{text}"
        );
        assert!(
            text.contains(" owns 1 row\n"),
            "the others are there: {text}"
        );
        let metrics = queue_metrics(&report);
        let of_it: Vec<&str> = metrics
            .lines()
            .filter(|line| line.contains("mails"))
            .collect();
        assert_eq!(
            of_it,
            ["evenkeel_queue_unreadable{database=\"shop\",table=\"mails\"} 1"]
        );
    }

    #[test]
    fn every_metric_has_one_type_and_every_line_a_value() {
        let text = queue_metrics(&report());
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(values.len(), METRICS.len() + 1);
        assert!(values[3].starts_with("evenkeel_queue_rows_written_total{database=\"shop\""));
        for line in values {
            assert!(line.contains(r#"table="new \"jobs\"""#), "{line}");
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn who_owns_and_how_long_rows_wait_is_reported_where_it_is_known() {
        let mut report = report();
        let text = report.text();
        assert!(text.contains("shop.new \"jobs\": connection 12 owns 1 row\n"));
        let metrics = queue_metrics(&report);
        assert!(metrics.contains(
            "_rows_owned_by{database=\"shop\",table=\"new \\\"jobs\\\"\",connection=\"12\"} 1\n"
        ));
        let numbers = report.queues[0].numbers.as_mut().unwrap();
        assert_eq!(waited(numbers), units::duration(Duration::from_secs(75)));
        (numbers.oldest_s, numbers.owners) = (None, None);
        assert_eq!(waited(numbers), "?");
        assert!(!queue_metrics(&report).contains("\nevenkeel_queue_oldest_row_seconds{"));
        assert!(!report.text().contains("connection"));
    }

    #[test]
    fn cells_stay_on_their_line() {
        assert_eq!(shown(Some("a\nb\tc")), "a b c");
        assert_eq!(shown(None), "NULL");
        assert_eq!(shown(Some(&"ä".repeat(100))).chars().count(), CELL + 1);
    }
}
