//! How a column's values are masked, as it is typed.

use evenkeel_op::{Error, Result};
use regex::Regex;
use std::fmt;

/// A way to mask values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::dump) enum Way {
    Null,
    Empty,
    Fixed(String),
    Hash,
    Email,
    Shape,
    Year,
}

impl Way {
    /// Reads `hash`, `fixed:TEXT`, …
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "null" => Self::Null,
            "empty" => Self::Empty,
            "hash" => Self::Hash,
            "email" => Self::Email,
            "shape" => Self::Shape,
            "year" => Self::Year,
            _ => Self::Fixed(text.strip_prefix("fixed:")?.to_owned()),
        })
    }

    /// Returns its word, without what is to stand there.
    pub(in crate::dump) fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Empty => "empty",
            Self::Fixed(_) => "fixed",
            Self::Hash => "hash",
            Self::Email => "email",
            Self::Shape => "shape",
            Self::Year => "year",
        }
    }

    /// Returns whether values depend on a key.
    pub(super) fn is_keyed(&self) -> bool {
        matches!(self, Self::Hash | Self::Email | Self::Shape)
    }
}

/// Columns, and how they are masked.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// As it was typed.
    pub(super) typed: String,
    /// Matches `schema.table.column` in whole.
    pub(super) columns: Regex,
    pub(super) way: Way,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--mask '{}'", self.typed)
    }
}

impl Rule {
    /// Reads `schema.table.column=way`.
    pub(super) fn read(text: &str) -> Result<Self> {
        let (columns, way) = text.split_once('=').ok_or_else(|| no_rule(text))?;
        let columns = columns.trim();
        // A pattern has to have room for both points.
        if columns.matches('.').count() < 2 {
            return Err(no_rule(text));
        }
        let columns = Regex::new(&format!("^(?:{columns})$")).map_err(|error| {
            Error::usage(format!("'{columns}' is not a regular expression"))
                .because(error)
                .hint("a pattern must match the complete SCHEMA.TABLE.COLUMN: 'shop\\..*\\.email'")
        })?;
        Ok(Self {
            typed: text.to_owned(),
            columns,
            way: Way::read(way).ok_or_else(|| no_way(way))?,
        })
    }
}

fn no_rule(text: &str) -> Error {
    Error::usage(format!("'{text}' is not SCHEMA.TABLE.COLUMN=WAY"))
        .hint("write --mask 'shop.users.email=email'")
}

fn no_way(way: &str) -> Error {
    Error::usage(format!("'{way}' is not a way to mask a column"))
        .hint("use null, empty, fixed:TEXT, hash, email, shape or year")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let rule = Rule::read("s.t.c=fixed:a=b").unwrap();
        assert_eq!(rule.way, Way::Fixed("a=b".to_owned()));
        assert!(rule.columns.is_match("s.t.c") && !rule.columns.is_match("s.t.cc"));
        for (text, way) in [
            ("s.t.c=null", Way::Null),
            ("s.t.c=empty", Way::Empty),
            ("s.t.c=fixed:", Way::Fixed(String::new())),
            ("s.t.c=hash", Way::Hash),
            (r".*\..*\.e?mail=email", Way::Email),
            ("s.t.c=shape", Way::Shape),
            ("s.t.c=year", Way::Year),
        ] {
            assert_eq!(Rule::read(text).unwrap().way, way, "{text}");
        }
        for text in [
            "",
            "s.t.c",
            "s.t=null",
            "s.t.c=",
            "s.t.c=Hash",
            "s.t.c=fixed",
            "s.t.(=null",
        ] {
            assert!(Rule::read(text).is_err(), "{text}");
        }
    }
}
