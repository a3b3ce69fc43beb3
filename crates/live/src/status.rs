//! A server's counters, as `SHOW GLOBAL STATUS` has them.

use evenkeel_server::connect::Row;
use std::collections::BTreeMap;

/// Since when the server has been running, in seconds.
pub const UPTIME: &str = "Uptime";
/// Statements of clients; not those inside stored programs.
pub const QUESTIONS: &str = "Questions";

/// Statements by what they do. One kind is the sum of several counters.
pub const SELECTS: &[&str] = &["Com_select", "Qcache_hits"];
/// See [`SELECTS`].
pub const INSERTS: &[&str] = &[
    "Com_insert",
    "Com_insert_select",
    "Com_replace",
    "Com_replace_select",
    "Com_load",
];
/// See [`SELECTS`].
pub const UPDATES: &[&str] = &["Com_update", "Com_update_multi"];
/// See [`SELECTS`].
pub const DELETES: &[&str] = &["Com_delete", "Com_delete_multi"];
/// See [`SELECTS`]. A statement that commits by itself is not in it.
pub const COMMITS: &[&str] = &["Com_commit"];

/// What some servers do not have: MySQL has no query cache since 8.0.
const OPTIONAL: &[&str] = &["Qcache_hits"];

/// Counters and gauges of one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status(BTreeMap<&'static str, u64>);

impl Status {
    /// Takes the values of these names from the rows of an answer. What is not a number is not there.
    #[must_use]
    pub fn of(names: &[&'static str], rows: &[Row]) -> Self {
        let pairs = rows.iter().filter_map(|row| Some((row.at(0)?, row.at(1)?)));
        Self::of_pairs(names, pairs)
    }

    /// Does the same from names and values.
    #[must_use]
    pub fn of_pairs<'a>(
        names: &[&'static str],
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut status = Self::default();
        for (name, value) in pairs {
            let known = names.iter().find(|known| known.eq_ignore_ascii_case(name));
            if let (Some(known), Ok(value)) = (known, value.parse()) {
                status.0.insert(known, value);
            }
        }
        status
    }

    /// Returns a value, if the server has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Returns by how much a counter has grown since `before`; `None` where one of the two does not have it, and
    /// where it went down.
    #[must_use]
    pub fn grown(&self, before: &Self, name: &str) -> Option<u64> {
        self.get(name)?.checked_sub(before.get(name)?)
    }

    /// Returns by how much the sum of some counters has grown; `None` where that is not known of one of them.
    #[must_use]
    pub fn grown_in_all(&self, before: &Self, names: &[&str]) -> Option<u64> {
        let mut sum = 0u64;
        for name in names {
            let is_nowhere = self.get(name).is_none() && before.get(name).is_none();
            if is_nowhere && OPTIONAL.contains(name) {
                continue;
            }
            sum = sum.checked_add(self.grown(before, name)?)?;
        }
        Some(sum)
    }
}

/// Returns the names that rates of statements are made from.
#[must_use]
pub fn of_statements() -> Vec<&'static str> {
    let kinds = [SELECTS, INSERTS, UPDATES, DELETES, COMMITS].concat();
    [&[UPTIME, QUESTIONS], kinds.as_slice()].concat()
}

/// Returns the statement that asks for these names and no others: all of them would be some 500 rows.
#[must_use]
pub fn statement(scope: &str, names: &[&str]) -> String {
    format!(
        "SHOW {scope} STATUS WHERE Variable_name IN ('{}')",
        names.join("','")
    )
}
