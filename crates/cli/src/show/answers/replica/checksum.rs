//! What `replica checksum` answers.

use crate::show::answers::Answer;
use crate::show::obeyed::is_obeyed;
use evenkeel_op::units;
use evenkeel_replica::checksum::{
    ChecksumReport, ComparedTable, RowDifference, RowDifferenceKind, TableVerdict,
};
use serde::Serialize;
use std::time::Duration;

/// How a replica compares with its source.
#[derive(Debug, Serialize)]
pub struct ReplicaChecksumAnswer {
    verdict: TableVerdict,
    #[serde(flatten)]
    report: ChecksumReport,
}

impl ReplicaChecksumAnswer {
    /// Takes what was found.
    #[must_use]
    pub fn new(report: ChecksumReport) -> Self {
        Self {
            verdict: report.verdict(),
            report,
        }
    }
}

impl Answer for ReplicaChecksumAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-checksum/1";

    fn text(&self) -> String {
        let report = &self.report;
        let verdict = match self.verdict {
            TableVerdict::Equal | TableVerdict::LeftOut => "equal",
            TableVerdict::Differs => "DIFFERENT",
            TableVerdict::NotCompared => "equal, as far as it was compared",
        };
        let compared = report.tables.iter().filter(|table| table.chunks > 0);
        let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
        let seconds = |s: f64| units::duration(Duration::from_secs_f64(s));
        let mut text = format!(
            "{} and its source {}: {verdict}\n  {}, {} compared in {}; SQL thread stopped for {} ({} at most)\n",
            report.replica,
            report.source,
            units::count(compared.count(), "table"),
            units::count(rows, "row"),
            seconds(report.seconds),
            seconds(report.applier_held_s),
            seconds(report.applier_held_longest_s),
        );
        if report.source_writes_paused_s > 0.0 {
            let paused = seconds(report.source_writes_paused_s);
            text.push_str(&format!("  writes on the source paused for {paused}\n"));
        }
        for table in &report.tables {
            text.push_str(&of_table(table));
        }
        text
    }
}

fn of_table(table: &ComparedTable) -> String {
    let name = plain(&format!("{}.{}", table.database, table.table));
    let why = plain(table.why.as_deref().unwrap_or_default());
    match table.verdict {
        TableVerdict::Equal => String::new(),
        TableVerdict::LeftOut => format!("  left out: {name}: {why}\n"),
        TableVerdict::NotCompared => format!("  NOT COMPARED: {name}: {why}\n"),
        TableVerdict::Differs if table.different() == 0 => format!("  DIFFERS: {name}: {why}\n"),
        TableVerdict::Differs => {
            let mut text = format!(
                "  DIFFERS: {name}: {} missing, {} extra, {} changed of {}\n",
                table.missing,
                table.extra,
                table.changed,
                units::count(table.rows, "row")
            );
            for row in &table.differences {
                text.push_str(&format!("    {}\n", of_row(row)));
            }
            let more = table.different() - table.differences.len() as u64;
            if more > 0 {
                text.push_str(&format!("    and {more} more\n"));
            }
            text
        }
    }
}

fn of_row(row: &RowDifference) -> String {
    let kind = match row.kind {
        RowDifferenceKind::Missing => "missing on the replica",
        RowDifferenceKind::Extra => "only on the replica",
        RowDifferenceKind::Changed => "changed",
    };
    if row.key.is_empty() {
        return format!("{kind}: a row of a table without a key");
    }
    let key = row.key.iter();
    let key: Vec<String> = key
        .map(|part| plain(&format!("{}={}", part.column, part.value)))
        .collect();
    format!("{kind}: {}", key.join(", "))
}

/// What servers say, as text and not as what a terminal obeys.
fn plain(text: &str) -> String {
    text.replace(is_obeyed, " ")
}
