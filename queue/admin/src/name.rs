//! Which table is meant.

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{quote, quote_name};
use std::fmt;
use std::str::FromStr;

/// A table by its database and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueName {
    /// The database.
    pub database: String,
    /// The table.
    pub table: String,
}

impl QueueName {
    /// Returns it as the queues' functions take it: a string of SQL.
    ///
    /// Errors: `Refused` where they cannot be told such a name.
    pub(crate) fn argument(&self) -> Result<String> {
        if self.database.contains(['.', ':']) || self.table.contains(':') {
            return Err(
                Error::refused(format!("the queue functions cannot take the name {self}")).hint(
                    "rename it: no dots or colons in the database's name, no colons in the table's",
                ),
            );
        }
        Ok(quote(&self.to_string()))
    }

    /// Returns it as SQL has tables.
    pub(crate) fn sql(&self) -> String {
        format!("{}.{}", quote_name(&self.database), quote_name(&self.table))
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

impl FromStr for QueueName {
    type Err = Error;

    /// Reads `database.table`. Errors: `Usage`.
    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => Ok(Self {
                database: database.to_owned(),
                table: table.to_owned(),
            }),
            _ => Err(Error::usage(format!("'{text}' names no table"))
                .hint("give it as DATABASE.TABLE: shop.jobs")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_quoted() {
        let name: QueueName = "shop.new jobs".parse().unwrap();
        assert_eq!(name.sql(), "`shop`.`new jobs`");
        assert_eq!(name.argument().unwrap(), "'shop.new jobs'");
        for nonsense in ["jobs", ".jobs", "shop."] {
            assert!(nonsense.parse::<QueueName>().is_err(), "{nonsense}");
        }
        let name: QueueName = "shop.a:b".parse().unwrap();
        assert!(name.argument().is_err());
    }
}
