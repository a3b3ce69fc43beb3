//! Rows as text.

use std::sync::Arc;

/// One row of a result: text by column name or position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    names: Arc<[String]>,
    values: Vec<Option<String>>,
}

impl Row {
    /// Returns a column by name (ASCII case does not matter: servers disagree about it); `None` for
    /// SQL NULL and for a column that is not there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let index = self
            .names
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))?;
        self.at(index)
    }

    /// Returns a column by position, from 0; `None` for SQL NULL and past the end.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&str> {
        self.values.get(index)?.as_deref()
    }

    /// Returns the column names in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Makes a row of values, and of the names of their columns: where there are none, values are found by position only.
    #[must_use]
    pub fn new(names: Arc<[String]>, values: Vec<Option<String>>) -> Self {
        Self { names, values }
    }

    pub(super) fn from_driver(row: mysql::Row) -> Self {
        let names = row
            .columns_ref()
            .iter()
            .map(|column| column.name_str().into_owned())
            .collect();
        let values = row.unwrap().into_iter().map(text).collect();
        Self { names, values }
    }
}

/// The text protocol sends bytes and NULL only. What is not UTF-8 (a file name, say) comes out
/// with replacement characters; ask for HEX() where bytes matter.
fn text(value: mysql::Value) -> Option<String> {
    match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
        other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
    }
}
