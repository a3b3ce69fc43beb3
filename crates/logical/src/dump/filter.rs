//! Which tables are meant.

use evenkeel_op::{Error, Result};
use regex::Regex;
use std::collections::BTreeMap;

/// Schemas that the server makes itself.
pub(crate) const SYSTEM: [&str; 5] = [
    "mysql",
    "information_schema",
    "performance_schema",
    "sys",
    "ndbinfo",
];

/// Which tables, and which of their rows. Empty means all but the server's own.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    schemas: Vec<String>,
    tables: Option<Vec<Regex>>,
    exclude: Vec<Regex>,
    conditions: BTreeMap<String, String>,
}

impl Filter {
    /// Makes a filter: schemas by name, tables and those to leave out by patterns of
    /// `schema.table` that must match in whole, conditions as `schema.table=condition`.
    ///
    /// Errors: `Usage` for what is no pattern and no condition.
    pub fn new(
        schemas: &[String],
        tables: &[String],
        exclude: &[String],
        conditions: &[String],
    ) -> Result<Self> {
        let patterns = |list: &[String]| -> Result<Vec<Regex>> {
            list.iter().map(|text| pattern(text)).collect()
        };
        let mut split = BTreeMap::new();
        for text in conditions {
            let (table, condition) = text.split_once('=').ok_or_else(|| no_condition(text))?;
            if !table.contains('.') || condition.trim().is_empty() {
                return Err(no_condition(text));
            }
            split.insert(table.trim().to_owned(), condition.trim().to_owned());
        }
        let tables: Vec<Regex> = patterns(tables)?;
        Ok(Self {
            schemas: schemas.to_vec(),
            tables: Some(tables).filter(|list| !list.is_empty()),
            exclude: patterns(exclude)?,
            conditions: split,
        })
    }

    /// Returns whether a schema may hold anything that is meant.
    #[must_use]
    pub fn has_schema(&self, schema: &str) -> bool {
        if self.schemas.is_empty() {
            !SYSTEM
                .iter()
                .any(|system| system.eq_ignore_ascii_case(schema))
        } else {
            self.schemas.iter().any(|wanted| wanted == schema)
        }
    }

    /// Returns whether a table is meant.
    #[must_use]
    pub fn has_table(&self, schema: &str, table: &str) -> bool {
        let name = format!("{schema}.{table}");
        let any = |list: &[Regex]| list.iter().any(|pattern| pattern.is_match(&name));
        self.has_schema(schema) && self.tables.as_deref().is_none_or(any) && !any(&self.exclude)
    }

    /// Returns the condition that a table's rows must meet.
    #[must_use]
    pub fn condition(&self, schema: &str, table: &str) -> Option<&str> {
        let name = format!("{schema}.{table}");
        self.conditions.get(&name).map(String::as_str)
    }

    /// Returns the schemas and tables that were named exactly: each has to be there.
    pub(crate) fn named(&self) -> (&[String], impl Iterator<Item = &String>) {
        (&self.schemas, self.conditions.keys())
    }
}

fn no_condition(text: &str) -> Error {
    Error::usage(format!("'{text}' is not SCHEMA.TABLE=CONDITION"))
        .hint("write --where 'shop.orders=placed >= \"2026-01-01\"'")
}

fn pattern(text: &str) -> Result<Regex> {
    Regex::new(&format!("^(?:{text})$")).map_err(|error| {
        Error::usage(format!("'{text}' is not a regular expression"))
            .because(error)
            .hint("a pattern matches SCHEMA.TABLE in whole: 'shop\\.order.*'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(schemas: &[&str], tables: &[&str], exclude: &[&str]) -> Filter {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        Filter::new(&owned(schemas), &owned(tables), &owned(exclude), &[]).unwrap()
    }

    #[test]
    fn nothing_said_is_all_but_the_servers_own() {
        let all = filter(&[], &[], &[]);
        assert!(all.has_table("shop", "orders"));
        assert!(!all.has_table("mysql", "user") && !all.has_schema("SYS"));
    }

    #[test]
    fn patterns_match_in_whole() {
        let some = filter(&[], &["shop\\.o.*"], &[".*_old"]);
        assert!(some.has_table("shop", "orders"));
        assert!(!some.has_table("workshop", "orders") && !some.has_table("shop", "orders_old"));
        assert!(filter(&[], &["a|b.c"], &[]).has_table("b", "c"));
        assert!(Filter::new(&[], &["(".into()], &[], &[]).is_err());
    }

    #[test]
    fn conditions_belong_to_one_table() {
        let filter = Filter::new(&[], &[], &[], &["s.t=a = 1".into()]).unwrap();
        assert_eq!(filter.condition("s", "t"), Some("a = 1"));
        assert_eq!(filter.condition("s", "u"), None);
        assert!(Filter::new(&[], &[], &[], &["t".into()]).is_err());
        assert!(Filter::new(&[], &[], &[], &["s.t=".into()]).is_err());
    }
}
