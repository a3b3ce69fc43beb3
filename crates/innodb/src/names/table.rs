//! Which table a file or a dictionary entry is of.

use super::encoding::decode;
use std::fmt;

/// A table, and the part of it that one tablespace holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The partition, if it has any.
    pub partition: Option<String>,
    /// The subpartition, if it has any.
    pub subpartition: Option<String>,
}

impl TableName {
    /// Reads the path of a table's file: `…/bank/accounts#P#p0.ibd`. Nothing for files that hold
    /// no single table: system, undo and general tablespaces lie outside of a schema.
    #[must_use]
    pub fn of_file(path: &str) -> Option<Self> {
        let (rest, file) = path.rsplit_once('/')?;
        let stem = file.strip_suffix(".ibd")?;
        let (above, schema) = match rest.rsplit_once('/') {
            Some((above, schema)) => (Some(above), schema),
            None => (None, rest),
        };
        // "data/mysql.ibd" is a root and a file, without a schema between them.
        above.map(|_| Self::of_parts(schema, stem))
    }

    /// Reads the dictionary's spelling: `bank/accounts#P#p0`.
    #[must_use]
    pub fn of_dictionary(name: &str) -> Self {
        let (schema, table) = name.split_once('/').unwrap_or(("", name));
        Self::of_parts(schema, table)
    }

    fn of_parts(schema: &str, stem: &str) -> Self {
        let (table, rest) = split_mark(stem, ["#P#", "#p#"]);
        let (partition, sub) = match rest {
            Some(rest) => {
                let (partition, sub) = split_mark(rest, ["#SP#", "#sp#"]);
                (Some(decode(partition)), sub.map(decode))
            }
            None => (None, None),
        };
        Self {
            schema: decode(schema),
            table: decode(table),
            partition,
            subpartition: sub,
        }
    }

    /// Returns the table's name as SQL writes it, whatever is in it: `` `bank`.`accounts` ``.
    #[must_use]
    pub fn quoted(&self) -> String {
        let quote = |name: &str| format!("`{}`", name.replace('`', "``"));
        if self.schema.is_empty() {
            return quote(&self.table);
        }
        format!("{}.{}", quote(&self.schema), quote(&self.table))
    }
}

/// Splits at the first of two spellings of a mark: servers differ in case.
fn split_mark<'a>(text: &'a str, marks: [&str; 2]) -> (&'a str, Option<&'a str>) {
    marks
        .iter()
        .find_map(|mark| text.split_once(mark))
        .map_or((text, None), |(before, after)| (before, Some(after)))
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.schema.is_empty() {
            write!(f, "{}.", self.schema)?;
        }
        f.write_str(&self.table)?;
        if let Some(partition) = &self.partition {
            write!(f, " partition {partition}")?;
        }
        if let Some(subpartition) = &self.subpartition {
            write!(f, " subpartition {subpartition}")?;
        }
        Ok(())
    }
}
