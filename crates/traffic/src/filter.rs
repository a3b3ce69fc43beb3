//! Which statements are wanted.

use crate::statement::Statement;
use evenkeel_op::{Error, Result};
use regex::bytes::{Regex, RegexBuilder};

/// The memory that a pattern may take once it is compiled.
const PATTERN_BYTES: usize = 4 << 20;

/// What a statement has to be like. Where a list is empty, anything will do; what a source does not know is in
/// no list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Not before this time, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Before this time.
    pub until_ns: Option<i64>,
    /// Accounts' names.
    pub users: Vec<String>,
    /// Default schemas.
    pub schemas: Vec<String>,
    /// Clients' addresses.
    pub hosts: Vec<String>,
    /// What the text has to match.
    pub pattern: Option<Regex>,
    /// How long it took at least, in nanoseconds. What was not answered yet may take as long.
    pub min_ns: u64,
}

impl Filter {
    /// Reads a regular expression for texts; letters of either case match.
    ///
    /// # Errors
    ///
    /// `Usage` when it is none.
    pub fn pattern(text: &str) -> Result<Regex> {
        let mut builder = RegexBuilder::new(text);
        builder.case_insensitive(true).size_limit(PATTERN_BYTES);
        builder.build().map_err(|error| {
            Error::usage(format!("'{text}' is not a regular expression"))
                .because(error)
                .hint("put a backslash before a character that stands for itself: \\(")
        })
    }

    /// Returns whether a statement is wanted.
    #[must_use]
    pub fn keeps(&self, statement: &Statement<'_>) -> bool {
        let is_among = |wanted: &[String], value: Option<&str>| {
            wanted.is_empty() || value.is_some_and(|value| wanted.iter().any(|one| one == value))
        };
        self.since_ns.is_none_or(|since| statement.at_ns >= since)
            && self.until_ns.is_none_or(|until| statement.at_ns < until)
            && is_among(&self.users, statement.user)
            && is_among(&self.schemas, statement.schema)
            && is_among(&self.hosts, statement.host)
            && match statement.total_ns {
                Some(ns) => ns >= self.min_ns,
                None => self.min_ns == 0 || statement.is_asked(),
            }
            && self
                .pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(statement.sql))
    }
}
