//! Which objects are meant, and which rows of tables.

use super::mask::Masks;
use crate::objects::Selection;
use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;

/// Which objects, and which of the tables' rows.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub(super) selection: Selection,
    conditions: BTreeMap<String, String>,
    /// Old rows of system-versioned tables too.
    pub(super) history: bool,
    /// What stands in the place of values.
    pub(super) masks: Masks,
}

impl Filter {
    /// Makes a filter; conditions are written `schema.table=condition`.
    ///
    /// Errors: `Usage` for what is no condition.
    pub fn new(selection: Selection, conditions: &[String]) -> Result<Self> {
        let mut split = BTreeMap::new();
        for text in conditions {
            let (table, condition) = text.split_once('=').ok_or_else(|| no_condition(text))?;
            if !table.contains('.') || condition.trim().is_empty() {
                return Err(no_condition(text));
            }
            split.insert(table.trim().to_owned(), condition.trim().to_owned());
        }
        Ok(Self {
            selection,
            conditions: split,
            history: false,
            masks: Masks::default(),
        })
    }

    /// Takes old rows of system-versioned tables in, or leaves them out.
    #[must_use]
    pub fn with_history(self, history: bool) -> Self {
        Self { history, ..self }
    }

    /// Has columns masked.
    #[must_use]
    pub fn with_masks(self, masks: Masks) -> Self {
        Self { masks, ..self }
    }

    /// Returns the condition that a table's rows must meet.
    #[must_use]
    pub fn condition(&self, schema: &str, table: &str) -> Option<&str> {
        let name = format!("{schema}.{table}");
        self.conditions.get(&name).map(String::as_str)
    }

    /// Returns the tables that have conditions: each has to be there.
    pub(super) fn named(&self) -> impl Iterator<Item = &String> {
        self.conditions.keys()
    }
}

fn no_condition(text: &str) -> Error {
    Error::usage(format!("'{text}' is not SCHEMA.TABLE=CONDITION"))
        .hint("write --where 'shop.orders=placed >= \"2026-01-01\"'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_belong_to_one_table() {
        let filter = |text: &str| Filter::new(Selection::default(), &[text.to_owned()]);
        let one = filter("s.t=a = 1").unwrap();
        assert_eq!(one.condition("s", "t"), Some("a = 1"));
        assert_eq!(one.condition("s", "u"), None);
        assert!(filter("t").is_err() && filter("s.t=").is_err());
    }
}
