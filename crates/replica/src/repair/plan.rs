//! The plan: which rows differ, how they are on both sides, and what would be done about it.

use super::identity::Identity;
use crate::checksum::{RowDifferenceKind, TableName};
use evenkeel_op::{Error, Result};
use serde::{Deserialize, Serialize};

/// The format of the file.
pub(super) const SCHEMA: &str = "evenkeel/replica-repair-plan/1";

/// A row's values, as the columns' own rules give them: `null` for NULL, bytes in hexadecimal.
pub(super) type RowValues = Vec<Option<String>>;

/// What differs, and what would be done about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairPlan {
    pub(super) schema: String,
    pub(super) made: String,
    pub(super) replica: Identity,
    pub(super) source: Identity,
    pub(super) channel: String,
    /// Where in the source's binary log both sides were looked at.
    pub(super) place: String,
    /// Why the source's rows are taken to be right.
    pub(super) why: Vec<String>,
    /// The rows, by table.
    pub tables: Vec<PlannedTable>,
    /// Tables that this plan leaves as they are, although they may differ.
    pub not_planned: Vec<NotPlanned>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// The statements, for people: what is run is made of the rows again.
    pub sql: Vec<String>,
    /// Of all of the above.
    pub hash: String,
}

/// A table with rows that differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
    /// Its columns, in the order of the rows' values.
    pub columns: Vec<String>,
    /// Its definition, as far as it matters: the plan is of no other.
    pub(super) definition: String,
    /// The rows.
    pub rows: Vec<PlannedRow>,
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRow {
    /// In which way.
    pub kind: RowDifferenceKind,
    /// Its key, for people.
    pub row: String,
    /// The key's values.
    pub(super) key: Vec<String>,
    /// How it is on the replica; `null` if it is not there.
    pub(super) replica: Option<RowValues>,
    /// How it is on the source.
    pub(super) source: Option<RowValues>,
}

/// A table that a plan leaves alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotPlanned {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
    /// Why.
    pub why: String,
}

impl RepairPlan {
    pub(super) fn seal(&mut self) -> Result<()> {
        self.hash = self.computed()?;
        Ok(())
    }

    /// Refuses a plan that is not as it was made.
    pub(super) fn check(&self) -> Result<()> {
        let refused = |why: &str| {
            Err(Error::refused(format!("the plan {why}")).hint("make a new one with --output"))
        };
        if self.schema != SCHEMA {
            return refused("has another format than this program's");
        }
        if self.hash != self.computed()? {
            return refused("was changed after it was made");
        }
        let fits = |table: &PlannedTable| {
            let width = table.columns.len();
            let is_row = |values: &Option<RowValues>| {
                values.as_ref().is_none_or(|values| values.len() == width)
            };
            let mut rows = table.rows.iter();
            rows.all(|row| is_row(&row.replica) && is_row(&row.source))
        };
        match self.tables.iter().all(fits) {
            true => Ok(()),
            false => refused("has rows that do not fit their tables"),
        }
    }

    fn computed(&self) -> Result<String> {
        let bare = Self {
            hash: String::new(),
            ..self.clone()
        };
        let text = serde_json::to_string(&bare)
            .map_err(|error| Error::failed("failed to write a plan").because(error))?;
        Ok(blake3::hash(text.as_bytes()).to_hex().to_string())
    }

    /// Returns how many rows differ.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.tables.iter().map(|table| table.rows.len()).sum()
    }
}

impl PlannedTable {
    pub(super) fn name(&self) -> TableName {
        TableName {
            database: self.database.clone(),
            table: self.table.clone(),
        }
    }

    /// Returns how many of its rows are of a kind.
    #[must_use]
    pub fn count(&self, kind: RowDifferenceKind) -> usize {
        self.rows.iter().filter(|row| row.kind == kind).count()
    }
}

impl PlannedRow {
    /// Returns the row for the way back.
    pub(super) fn turned(self) -> Self {
        let kind = match self.kind {
            RowDifferenceKind::Missing => RowDifferenceKind::Extra,
            RowDifferenceKind::Extra => RowDifferenceKind::Missing,
            RowDifferenceKind::Changed => RowDifferenceKind::Changed,
        };
        Self {
            kind,
            replica: self.source,
            source: self.replica,
            ..self
        }
    }
}

/// Returns the time as it is written down.
pub(super) fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
