//! What masked columns may not be: half of a join, unique no more, checked, computed from.

use super::definition::{Definition, Foreign, Part};
use super::fits::How;
use super::way::Rule;
use evenkeel_op::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A column that is masked.
#[derive(Debug, Clone)]
pub(super) struct Chosen<'r> {
    pub(super) rule: &'r Rule,
    pub(super) how: How,
}

/// A table of the dump, with what is masked of it by the columns' names in small letters.
pub(super) struct Site<'r> {
    pub(super) schema: String,
    pub(super) name: String,
    /// All columns' names.
    pub(super) columns: Vec<String>,
    pub(super) definition: Definition,
    pub(super) chosen: BTreeMap<String, Chosen<'r>>,
    /// Computed columns that patterns match too.
    pub(super) computed: Vec<(String, &'r Rule)>,
}

impl Site<'_> {
    fn shown(&self, column: &str) -> String {
        let cased = self.columns.iter().find(|one| one.to_lowercase() == column);
        let column = cased.map_or(column, String::as_str);
        format!("{}.{}.{column}", self.schema, self.name)
    }

    fn refused(&self, column: &str, rule: &Rule, why: &str) -> Error {
        Error::usage(format!("{rule}: {} {why}", self.shown(column)))
    }

    /// Says the same of a column, or of the masked one that it is computed from.
    fn refused_for(&self, name: &str, why: &str) -> Error {
        match self.source_of(name) {
            Some((column, rule)) => self.refused(&column, rule, why),
            None => Error::usage(format!("--mask: {} {why}", self.shown(name))),
        }
    }

    /// Checks all that the table itself says.
    pub(super) fn check(&self) -> Result<()> {
        let tainted = self.computed_from_masked();
        self.unique(&tainted)?;
        self.checks(&tainted)?;
        self.partitions(&tainted)?;
        self.shown_by_others()
    }

    fn unique(&self, tainted: &BTreeSet<String>) -> Result<()> {
        const HINT: &str =
            "texts stay unique with hash or email in 41 characters or more, numbers with shape";
        for part in self.definition.unique.iter().flatten() {
            let computed: Vec<&String> = match part {
                Part::Column { name, .. } => tainted.iter().filter(|one| *one == name).collect(),
                Part::Computed(names) => names
                    .iter()
                    .filter(|one| self.chosen.contains_key(*one) || tainted.contains(*one))
                    .collect(),
            };
            if let Some(name) = computed.first() {
                return Err(self
                    .refused_for(
                        name,
                        "is in an expression of a unique key, which may fail with masked values",
                    )
                    .hint(HINT));
            }
            let Part::Column { name, prefix } = part else {
                continue;
            };
            let Some(one) = self.chosen.get(name) else {
                continue;
            };
            if !one.how.stays_unique(*prefix) {
                return Err(self
                    .refused(
                        name,
                        one.rule,
                        "is in a unique key, and its masked values may be the same",
                    )
                    .hint(HINT));
            }
        }
        Ok(())
    }

    fn checks(&self, tainted: &BTreeSet<String>) -> Result<()> {
        for check in &self.definition.checks {
            for name in &check.names {
                let is_masked = self.chosen.contains_key(name) || tainted.contains(name);
                if !is_masked || check.is_json && self.stays_json(name) {
                    continue;
                }
                return Err(self
                    .refused_for(name, "has a CHECK, which masked values may violate")
                    .hint("drop the CHECK before the dump, or leave the column as it is"));
            }
        }
        Ok(())
    }

    fn stays_json(&self, name: &str) -> bool {
        match self.chosen.get(name).map(|one| &one.how) {
            Some(How::Null) => true,
            Some(How::Constant(text)) => serde_json::from_slice::<serde_json::Value>(text).is_ok(),
            _ => false,
        }
    }

    fn partitions(&self, tainted: &BTreeSet<String>) -> Result<()> {
        let found = self
            .definition
            .partitioned
            .iter()
            .find(|name| self.chosen.contains_key(*name) || tainted.contains(*name));
        let Some(name) = found else { return Ok(()) };
        Err(self
            .refused_for(
                name,
                "decides which partition a row is in, and the table's definition contains values of it",
            )
            .hint("leave the column as it is, or the table out with --exclude"))
    }

    /// A computed column that should be masked must show nothing but what is masked.
    fn shown_by_others(&self) -> Result<()> {
        for (column, rule) in &self.computed {
            if !self.shows_masked_only(column, self.columns.len()) {
                return Err(self.only_computed(column, rule));
            }
        }
        Ok(())
    }

    fn only_computed(&self, column: &str, rule: &Rule) -> Error {
        self.refused(
            column,
            rule,
            "is a generated column, and not all of the columns that it is computed from are masked",
        )
        .hint("mask the columns that it is computed from")
    }

    fn shows_masked_only(&self, column: &str, depth: usize) -> bool {
        let expression = self.definition.computed.iter().find(|one| one.0 == *column);
        let Some((_, names)) = expression.filter(|_| depth > 0) else {
            return false;
        };
        let is_column =
            |name: &&String| self.columns.iter().any(|one| one.to_lowercase() == **name);
        let mut read = names.iter().filter(is_column).peekable();
        read.peek().is_some()
            && read.all(|name| {
                self.chosen.contains_key(name) || self.shows_masked_only(name, depth - 1)
            })
    }

    /// Returns the computed columns whose values depend on masked ones.
    fn computed_from_masked(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        loop {
            let before = found.len();
            for (column, names) in &self.definition.computed {
                if names
                    .iter()
                    .any(|name| self.chosen.contains_key(name) || found.contains(name))
                {
                    found.insert(column.clone());
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Returns a masked column that something depends on: itself, or what it is computed from.
    fn source_of(&self, name: &str) -> Option<(String, &Rule)> {
        let mut name = name.to_owned();
        let tainted = self.computed_from_masked();
        for _ in 0..=self.columns.len() {
            if let Some(one) = self.chosen.get(&name) {
                return Some((name, one.rule));
            }
            let expression = self.definition.computed.iter().find(|one| one.0 == name);
            let next = expression.and_then(|(_, names)| {
                names
                    .iter()
                    .find(|one| self.chosen.contains_key(*one) || tainted.contains(*one))
            });
            match next {
                Some(next) => name.clone_from(next),
                None => return None,
            }
        }
        None
    }
}

/// Checks that both sides of each foreign key are masked alike.
pub(super) fn check_joins(sites: &[Site<'_>]) -> Result<()> {
    for child in sites {
        let tainted = child.computed_from_masked();
        for key in &child.definition.foreign {
            let parent = parent(sites, child, key);
            for (column, referenced) in key.columns.iter().zip(&key.referenced) {
                if tainted.contains(column) {
                    return Err(child
                        .refused_for(column, "is used to compute a column that has a foreign key")
                        .hint("leave the column as it is"));
                }
                let here = child.chosen.get(column);
                let there = parent.and_then(|parent| parent.chosen.get(referenced));
                if is_kept(here, there) {
                    continue;
                }
                return Err(torn(
                    child,
                    column,
                    (key, parent),
                    referenced,
                    (here, there),
                ));
            }
        }
    }
    Ok(())
}

fn is_kept(here: Option<&Chosen<'_>>, there: Option<&Chosen<'_>>) -> bool {
    match (here, there) {
        (None, None) => true,
        // NULL refers to nothing.
        (Some(here), _) if here.how == How::Null => true,
        (Some(here), Some(there)) => here.how == there.how && here.how.keeps_joins(),
        _ => false,
    }
}

fn torn(
    child: &Site<'_>,
    column: &str,
    (key, parent): (&Foreign, Option<&Site<'_>>),
    referenced: &str,
    (here, there): (Option<&Chosen<'_>>, Option<&Chosen<'_>>),
) -> Error {
    let rule = here
        .or(there)
        .map_or(String::new(), |one| format!("{}: ", one.rule));
    let schema = key.schema.as_ref().unwrap_or(&child.schema);
    let other = match parent {
        Some(parent) => parent.shown(referenced),
        None => format!(
            "{schema}.{}.{referenced}, which is not in this dump",
            key.table
        ),
    };
    Error::usage(format!(
        "{rule}a foreign key refers from {} to {other}, but they are not masked in the same way",
        child.shown(column)
    ))
    .hint("mask both in the same way, with hash, email or shape, and give both columns the same length")
}

fn parent<'s, 'r>(sites: &'s [Site<'r>], child: &Site<'_>, key: &Foreign) -> Option<&'s Site<'r>> {
    let schema = key.schema.as_ref().unwrap_or(&child.schema);
    let exact = |site: &&Site<'_>| site.schema == *schema && site.name == key.table;
    // The text may have the name in another case than the table.
    let alike = |site: &&Site<'_>| {
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        same(&site.schema, schema) && same(&site.name, &key.table)
    };
    sites
        .iter()
        .find(exact)
        .or_else(|| sites.iter().find(alike))
}
