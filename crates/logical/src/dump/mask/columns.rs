//! What is masked of a table's columns.

use super::fits::How;
use super::key::MaskKey;
use std::sync::Arc;

/// What is masked of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::dump) struct TableMask {
    pub(super) key: Arc<MaskKey>,
    /// By column, as files have them.
    pub(super) columns: Vec<Option<ColumnMask>>,
}

/// What is masked of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnMask {
    pub(super) way: &'static str,
    pub(super) how: How,
}

impl TableMask {
    /// Returns the name of the way in which the column there is masked.
    pub(in crate::dump) fn way(&self, at: usize) -> Option<&'static str> {
        self.columns.get(at)?.as_ref().map(|one| one.way)
    }

    /// Returns what is the same as long as the same is masked with the same key.
    pub(in crate::dump) fn mark(&self) -> String {
        let mut columns = self.columns.iter().flatten();
        let key = match columns.any(|one| one.how.is_keyed()) {
            true => self.key.mark(),
            false => String::new(),
        };
        format!("{:?} {key}", self.columns)
    }
}
