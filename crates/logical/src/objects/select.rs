//! Which objects are wanted.

use evenkeel_op::{Error, Result};
use regex::Regex;

/// Schemas that belong to every server. Case counts: where a server tells `SYS` from `sys`, the former is a user's.
pub(crate) const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

/// Which objects to read: patterns over `schema.object`, and kinds to leave out.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Only these schemas, by exact name; all but the server's own when empty.
    pub databases: Vec<String>,
    /// Only objects of which one of these matches `schema.object`; all when empty.
    pub include: Vec<Regex>,
    /// Not those of which one of these matches.
    pub exclude: Vec<Regex>,
    /// Views.
    pub views: bool,
    /// Triggers.
    pub triggers: bool,
    /// Procedures, functions, packages.
    pub routines: bool,
    /// Events.
    pub events: bool,
    /// Users, roles and what they may do. Off unless asked for.
    pub accounts: bool,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            databases: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            views: true,
            triggers: true,
            routines: true,
            events: true,
            accounts: false,
        }
    }
}

impl Selection {
    /// Returns a pattern for [`Selection::include`] and [`Selection::exclude`], which has to match
    /// `schema.object` in whole.
    ///
    /// Errors: `Usage` for a text that is no regular expression.
    pub fn pattern(text: &str) -> Result<Regex> {
        Regex::new(&format!("^(?:{text})$")).map_err(|error| {
            Error::usage(format!("'{text}' is not a regular expression"))
                .because(error)
                .hint("a pattern must match the complete SCHEMA.NAME: 'shop\\.order.*'")
        })
    }

    /// Returns several patterns. Errors: as [`Selection::pattern`].
    pub fn patterns(texts: &[String]) -> Result<Vec<Regex>> {
        texts.iter().map(|text| Self::pattern(text)).collect()
    }

    /// Returns whether objects of this schema may be wanted.
    #[must_use]
    pub fn wants_database(&self, name: &str) -> bool {
        match self.databases.as_slice() {
            [] => !SYSTEM.contains(&name),
            named => named.iter().any(|one| one == name),
        }
    }

    /// Returns whether an object is wanted. A trigger goes with its table.
    #[must_use]
    pub fn wants(&self, database: &str, object: &str) -> bool {
        let name = format!("{database}.{object}");
        let included =
            self.include.is_empty() || self.include.iter().any(|one| one.is_match(&name));
        included && !self.exclude.iter().any(|one| one.is_match(&name))
    }
}

/// Returns the text of a pattern of [`Selection::pattern`] as it was typed.
pub(crate) fn typed(pattern: &str) -> &str {
    let inside = pattern.strip_prefix("^(?:");
    let inside = inside.and_then(|text| text.strip_suffix(")$"));
    inside.unwrap_or(pattern)
}

/// Patterns of a selection that nothing matches, as they were typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Of those of [`Selection::include`], what matches nothing that is wanted.
    pub include: Vec<String>,
    /// Of those of [`Selection::exclude`], what matches nothing at all.
    pub exclude: Vec<String>,
}

impl Unmatched {
    /// Begins with all of a selection's patterns.
    pub(crate) fn of(include: &[Regex], exclude: &[Regex]) -> Self {
        let typed = |all: &[Regex]| all.iter().map(|one| one.as_str().to_owned()).collect();
        Self {
            include: typed(include),
            exclude: typed(exclude),
        }
    }

    /// Takes out what matches this name. Returns whether the name is wanted.
    pub(crate) fn wants(&mut self, selection: &Selection, database: &str, object: &str) -> bool {
        let wanted = selection.wants(database, object);
        let name = format!("{database}.{object}");
        let matches = |all: &[Regex], text: &String| {
            let mut same = all.iter().filter(|one| one.as_str() == text);
            same.any(|one| one.is_match(&name))
        };
        self.include
            .retain(|text| !(wanted && matches(&selection.include, text)));
        self.exclude
            .retain(|text| !matches(&selection.exclude, text));
        wanted
    }

    /// Gives the patterns as they were typed.
    pub(crate) fn typed(mut self) -> Self {
        for text in self.include.iter_mut().chain(&mut self.exclude) {
            *text = typed(text).to_owned();
        }
        self
    }

    /// Fails where something that was asked for is not there.
    ///
    /// Errors: `Usage`, with the pattern.
    pub fn refuse(&self) -> Result<()> {
        match self.include.as_slice() {
            [] => Ok(()),
            some => Err(
                Error::usage(format!("nothing matches --table '{}'", some.join("', '"))).hint(
                    "a pattern must match the complete SCHEMA.NAME: 'shop\\.orders', 'shop\\..*'",
                ),
            ),
        }
    }

    /// Returns warnings of what is left out and is not there.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.exclude.iter().map(|text| {
            format!(
                "nothing matches --exclude '{text}': a pattern must match the complete SCHEMA.NAME"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_names_choose() {
        let all = Selection::default();
        assert!(all.wants_database("shop") && !all.wants_database("mysql"));
        assert!(all.wants_database("SYS") && all.wants_database("ndbinfo"));
        assert!(all.wants("shop", "t"));
        let some = Selection {
            databases: vec!["shop".to_owned()],
            include: vec![Selection::pattern(r"shop\..*|a").unwrap()],
            exclude: vec![Selection::pattern(r".*\.tmp_.*").unwrap()],
            ..Selection::default()
        };
        assert!(some.wants_database("shop") && !some.wants_database("other"));
        assert!(some.wants("shop", "t") && !some.wants("shop", "tmp_1"));
        assert!(!some.wants("workshop", "t") && !some.wants("a", "t"));
        assert!(Selection::pattern("(").is_err());
    }

    #[test]
    fn what_matches_nothing_is_named_as_it_was_typed() {
        let patterns = |all: &[&'static str]| -> Vec<Regex> {
            all.iter()
                .map(|one| Selection::pattern(one).unwrap())
                .collect()
        };
        let selection = Selection {
            include: patterns(&["orders", r"shop\..*", r"shop\.tmp"]),
            exclude: patterns(&[r"shop\.tmp", r"shopp\..*"]),
            ..Selection::default()
        };
        let mut left = Unmatched::of(&selection.include, &selection.exclude);
        assert!(left.wants(&selection, "shop", "orders"));
        assert!(!left.wants(&selection, "shop", "tmp"));
        let left = left.typed();
        assert_eq!(left.include, ["orders", r"shop\.tmp"]);
        assert_eq!(left.exclude, [r"shopp\..*"]);
        assert!(left.refuse().is_err() && left.warnings().count() == 1);
        assert!(Unmatched::default().refuse().is_ok());
    }
}
