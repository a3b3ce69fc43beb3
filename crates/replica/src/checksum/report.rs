//! What a comparison found.

use super::request::TableName;
use serde::{Deserialize, Serialize};

/// What a comparison found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ChecksumReport {
    /// The replica: where it was reached.
    pub replica: String,
    /// The source.
    pub source: String,
    /// The channel; empty for the default one.
    pub channel: String,
    /// The tables, by name.
    pub tables: Vec<ComparedTable>,
    /// How often both sides were looked at, each time at one place of the source's binary log.
    pub looks: u32,
    /// Those places.
    pub places: Vec<String>,
    /// How long the SQL thread stood or was on its way to such a place, all looks together, in seconds.
    pub applier_held_s: f64,
    /// The longest of them, in seconds.
    pub applier_held_longest_s: f64,
    /// How long writes on the source were paused, in seconds.
    pub source_writes_paused_s: f64,
    /// How long readers rested for others, in seconds.
    pub rested_s: f64,
    /// How long it all took, in seconds.
    pub seconds: f64,
}

/// How a table came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableVerdict {
    /// Every row is the same.
    Equal,
    /// Something is different.
    Differs,
    /// Nobody knows: `why` says what prevented it.
    NotCompared,
    /// It is not meant to be the same: `why` says so.
    LeftOut,
}

/// What was found of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
    /// How it came out.
    pub verdict: TableVerdict,
    /// Why it was not compared, or what is different about its definition.
    pub why: Option<String>,
    /// Rows on the source.
    pub rows: u64,
    /// Rows on the replica.
    pub rows_on_replica: u64,
    /// In how many pieces it was compared.
    pub chunks: u64,
    /// Rows that only the source has.
    pub missing: u64,
    /// Rows that only the replica has.
    pub extra: u64,
    /// Rows whose values differ.
    pub changed: u64,
    /// The first of these rows, by their keys.
    pub differences: Vec<RowDifference>,
}

/// In which way a row is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowDifferenceKind {
    /// The replica does not have it.
    Missing,
    /// The source does not have it.
    Extra,
    /// Its values differ.
    Changed,
}

/// A row that is different.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowDifference {
    /// In which way.
    pub kind: RowDifferenceKind,
    /// Its key: columns and values; without a key, none.
    pub key: Vec<KeyValue>,
}

/// A column of a key with its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyValue {
    /// The column.
    pub column: String,
    /// The value: bytes that are no text as `0x…`.
    pub value: String,
    /// The value as a server gives it, for statements.
    #[serde(skip)]
    pub(crate) raw: String,
}

impl ComparedTable {
    pub(super) fn new(name: &TableName, verdict: TableVerdict, why: Option<String>) -> Self {
        Self {
            database: name.database.clone(),
            table: name.table.clone(),
            verdict,
            why,
            rows: 0,
            rows_on_replica: 0,
            chunks: 0,
            missing: 0,
            extra: 0,
            changed: 0,
            differences: Vec::new(),
        }
    }

    /// Returns how many rows are different.
    #[must_use]
    pub fn different(&self) -> u64 {
        self.missing + self.extra + self.changed
    }
}

impl ChecksumReport {
    /// Returns how the whole came out: a difference outweighs what was not compared.
    #[must_use]
    pub fn verdict(&self) -> TableVerdict {
        let any = |verdict| self.tables.iter().any(|table| table.verdict == verdict);
        if any(TableVerdict::Differs) {
            TableVerdict::Differs
        } else if any(TableVerdict::NotCompared)
            || any(TableVerdict::LeftOut) && !any(TableVerdict::Equal)
        {
            // Nothing that was compared is nothing that is equal.
            TableVerdict::NotCompared
        } else {
            TableVerdict::Equal
        }
    }
}
