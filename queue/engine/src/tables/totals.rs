//! What all tables together are and have done.

use super::{Known, Tables};
use crate::fault::Fault;
use crate::owners::by_connection;
use evenkeel_queue::{Queue, Stats};
use std::fmt::Write as _;
use std::path::Path;

impl Known {
    /// Keeps what was counted in a table that is about to be closed.
    pub(super) fn remember(&mut self, table: &Queue) {
        let counted = Stats {
            rows: 0,
            owned: 0,
            waiters: 0,
            files: 0,
            bytes: 0,
            dead_bytes: 0,
            memory: 0,
            ..table.stats()
        };
        add(&mut self.past, &counted);
    }
}

impl Tables {
    /// Sums over the tables that are open, and what was counted, since the start, in those that were.
    #[must_use]
    pub fn totals(&self) -> Stats {
        let mut sum = self.known().past;
        for (_, table) in self.all() {
            add(&mut sum, &table.stats());
        }
        sum
    }

    /// The numbers of a table, each on a line behind its name, as `queue_stats()` returns them.
    ///
    /// # Errors
    ///
    /// As with [`table`](Self::table).
    pub fn numbers(&self, path: &Path) -> Result<String, Fault> {
        let table = self.table(path)?;
        let stats = table.stats();
        let owners = by_connection(&table.owners());
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |name: &str, number: u64| {
            let _ = writeln!(text, "{name}: {number}");
        };
        line("rows", stats.rows as u64);
        line("rows_owned", stats.owned as u64);
        line("waiters", stats.waiters as u64);
        line("rows_written", stats.appended);
        line("rows_removed", stats.removed);
        line("bytes", stats.bytes);
        line("files", stats.files as u64);
        line("memory", stats.memory as u64);
        line("wait_immediate", stats.waits_at_once);
        line("wait_delayed", stats.waits_later);
        line("wait_timeout", stats.waits_timed_out);
        line("restored_by_abort", stats.back_by_abort);
        line("restored_by_close", stats.back_by_close);
        line("bytes_removed", stats.dead_bytes);
        if let Some(seconds) = table.oldest_s() {
            line("oldest_row_seconds", seconds);
        }
        line("owners", owners.len() as u64);
        for (connection, rows) in owners {
            line(&format!("rows_owned_by_{connection}"), rows as u64);
        }
        Ok(text)
    }

    /// The numbers of each open table, and the sums, as text.
    #[must_use]
    pub fn status(&self) -> String {
        let mut text = String::new();
        for (path, table) in self.all() {
            let mut parts = path.iter().rev().map(|part| part.to_string_lossy());
            let name = parts.next().unwrap_or_default();
            let database = parts.next().unwrap_or_default();
            let title = format!("TABLE {database}.{name}");
            write(&mut text, &title, &table.stats(), waiting(&table));
        }
        write(&mut text, "ALL TABLES", &self.totals(), Vec::new());
        text
    }
}

/// How long the oldest row has waited, and who owns rows.
fn waiting(table: &Queue) -> Vec<String> {
    let oldest = table.oldest_s().filter(|seconds| *seconds > 0);
    let oldest = oldest.map(|seconds| format!("the oldest row has waited {seconds} s"));
    let owners = by_connection(&table.owners());
    let owners = owners
        .iter()
        .map(|(connection, rows)| format!("connection {connection} owns {rows} rows"));
    oldest.into_iter().chain(owners).collect()
}

fn write(text: &mut String, title: &str, stats: &Stats, more: Vec<String>) {
    let per_group = stats.requests as f64 / stats.groups.max(1) as f64;
    let lines = [
        format!("{title}\n{}", "-".repeat(title.len())),
        format!(
            "rows {}, of them owned {}; waiters {}",
            stats.rows, stats.owned, stats.waiters
        ),
        format!(
            "rows written {}, removed {}; returned by queue_abort {}, by closed connections {}",
            stats.appended, stats.removed, stats.back_by_abort, stats.back_by_close
        ),
        format!(
            "waits with a row at once {}, later {}, with none in time {}",
            stats.waits_at_once, stats.waits_later, stats.waits_timed_out
        ),
        format!(
            "files {}, bytes {}, of them of rows that are gone {}; bytes of memory {}",
            stats.files, stats.bytes, stats.dead_bytes, stats.memory
        ),
        format!(
            "writes {}, of {per_group:.2} statements each; syncs {}",
            stats.groups, stats.syncs
        ),
    ];
    for line in lines.into_iter().chain(more) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    }
    text.push('\n');
}

fn add(sum: &mut Stats, one: &Stats) {
    sum.rows += one.rows;
    sum.owned += one.owned;
    sum.waiters += one.waiters;
    sum.appended += one.appended;
    sum.removed += one.removed;
    sum.files += one.files;
    sum.bytes += one.bytes;
    sum.dead_bytes += one.dead_bytes;
    sum.memory += one.memory;
    sum.waits_at_once += one.waits_at_once;
    sum.waits_later += one.waits_later;
    sum.waits_timed_out += one.waits_timed_out;
    sum.back_by_abort += one.back_by_abort;
    sum.back_by_close += one.back_by_close;
    sum.groups += one.groups;
    sum.requests += one.requests;
    sum.syncs += one.syncs;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Asked, Connection};
    use std::time::Duration;

    #[test]
    fn what_was_counted_stays_when_a_table_is_closed_or_dropped() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("shop")).unwrap();
        let tables = Tables::start(dir.path()).unwrap();
        let paths = ["one", "two"].map(|name| dir.path().join("shop").join(name));
        for path in &paths {
            tables.create(path, b"0\0").unwrap();
            let table = tables.table(path).unwrap();
            table.append(vec![b"row".to_vec(); 3], None).unwrap();
        }
        let mut connection = Connection::new(0);
        let asked = [Asked {
            path: paths[1].clone(),
            condition: None,
        }];
        for _ in 0..4 {
            let none = Duration::ZERO;
            connection
                .wait(&tables, &asked, 1, none, &|| false)
                .unwrap();
        }
        connection.abort().unwrap();
        let before = tables.totals();
        assert_eq!((before.appended, before.removed, before.rows), (6, 3, 3));
        assert_eq!((before.waits_at_once, before.waits_timed_out), (3, 1));
        assert!(tables.status().contains("TABLE shop.two\n"));
        tables.drop_table(&paths[1]).unwrap();
        tables.release(&paths[0]).unwrap();
        let after = tables.totals();
        assert_eq!((after.appended, after.removed, after.rows), (6, 3, 0));
        assert_eq!((after.waits_at_once, after.waits_timed_out), (3, 1));
        assert!(!tables.status().contains("shop.two"));
    }
}
