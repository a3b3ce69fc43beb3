//! What a replica does not apply on purpose.

use super::status::Status;
use crate::abilities::Abilities;
use crate::connect::Session;
use evenkeel_op::Result;

/// The filters of one channel, as the status lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    do_db: Vec<String>,
    ignore_db: Vec<String>,
    do_table: Vec<String>,
    ignore_table: Vec<String>,
    wild_do_table: Vec<String>,
    wild_ignore_table: Vec<String>,
    rewrite_db: Vec<String>,
    /// Of whole servers or GTID domains: they say nothing of tables.
    others: Vec<String>,
}

impl Filters {
    /// Asks the server. Errors: those of the session.
    pub fn read(session: &mut Session, abilities: &Abilities, channel: &str) -> Result<Self> {
        let rows = session.rows(super::status::statement(abilities))?;
        let mut found = Self::default();
        for row in rows.iter().map(Status) {
            if row.channel() == channel {
                found = Self::of(|name| row.get(name).unwrap_or_default().to_owned());
            }
        }
        Ok(found)
    }

    fn of(get: impl Fn(&str) -> String) -> Self {
        let list = |name: &str| {
            let text = get(name);
            let names = text
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            names.map(str::to_owned).collect::<Vec<String>>()
        };
        let others = [
            "Replicate_Do_Domain_Ids",
            "Replicate_Ignore_Domain_Ids",
            "Replicate_Ignore_Server_Ids",
        ];
        let others = others
            .iter()
            .filter(|name| !matches!(get(name).trim(), "" | "()"));
        Self {
            do_db: list("Replicate_Do_DB"),
            ignore_db: list("Replicate_Ignore_DB"),
            do_table: list("Replicate_Do_Table"),
            ignore_table: list("Replicate_Ignore_Table"),
            wild_do_table: list("Replicate_Wild_Do_Table"),
            wild_ignore_table: list("Replicate_Wild_Ignore_Table"),
            rewrite_db: list("Replicate_Rewrite_DB"),
            others: others.map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Returns what there is, in words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let all = [
            ("Replicate_Do_DB", &self.do_db),
            ("Replicate_Ignore_DB", &self.ignore_db),
            ("Replicate_Do_Table", &self.do_table),
            ("Replicate_Ignore_Table", &self.ignore_table),
            ("Replicate_Wild_Do_Table", &self.wild_do_table),
            ("Replicate_Wild_Ignore_Table", &self.wild_ignore_table),
            ("Replicate_Rewrite_DB", &self.rewrite_db),
        ];
        let some = all.iter().filter(|(_, list)| !list.is_empty());
        let mut words: Vec<String> = some
            .map(|(name, list)| format!("the replica filters by {name}={}", list.join(",")))
            .collect();
        words.extend(
            self.others
                .iter()
                .map(|name| format!("the replica filters by {name}")),
        );
        words
    }

    /// Returns whether a filter is there that does not go by tables: which rows it keeps out, nobody can say.
    #[must_use]
    pub fn may_leave_out_rows(&self) -> bool {
        !self.rewrite_db.is_empty() || !self.others.is_empty()
    }

    /// Returns the filter that keeps rows of a table out, or may.
    #[must_use]
    pub fn refusal(&self, database: &str, table: &str) -> Option<&'static str> {
        let whole = format!("{database}.{table}");
        let has = |list: &[String], name: &str| list.iter().any(|one| one == name);
        let like = |list: &[String]| list.iter().any(|pattern| is_like(pattern, &whole));
        if !self.rewrite_db.is_empty() {
            return Some("Replicate_Rewrite_DB");
        }
        if !self.others.is_empty() {
            return Some("a filter of servers or domains");
        }
        if !self.do_db.is_empty() && !has(&self.do_db, database) {
            return Some("Replicate_Do_DB");
        }
        if has(&self.ignore_db, database) {
            return Some("Replicate_Ignore_DB");
        }
        if has(&self.do_table, &whole) {
            return None;
        }
        if has(&self.ignore_table, &whole) {
            return Some("Replicate_Ignore_Table");
        }
        if like(&self.wild_do_table) {
            return None;
        }
        if like(&self.wild_ignore_table) {
            return Some("Replicate_Wild_Ignore_Table");
        }
        let is_listed = !self.do_table.is_empty() || !self.wild_do_table.is_empty();
        is_listed.then_some("Replicate_Do_Table")
    }
}

/// Returns whether a name is like a pattern of SQL's LIKE: `%` is anything, `_` one character, `\` takes the next as
/// it is.
fn is_like(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    like(&pattern, &name)
}

fn like(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], rest) => rest.is_empty(),
        (['%', more @ ..], rest) => (0..=rest.len()).any(|at| like(more, &rest[at..])),
        (['_', more @ ..], [_, rest @ ..]) => like(more, rest),
        (['\\', one, more @ ..], [first, rest @ ..]) => one == first && like(more, rest),
        ([one, more @ ..], [first, rest @ ..]) => one == first && like(more, rest),
        (_, []) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(name: &str, value: &str) -> Filters {
        Filters::of(|asked| match asked == name {
            true => value.to_owned(),
            false => String::new(),
        })
    }

    #[test]
    fn patterns_are_those_of_like() {
        assert!(is_like("shop.%", "shop.orders") && !is_like("shop.%", "shops.orders"));
        assert!(is_like("s_op.o%s", "shop.orders") && !is_like("shop\\_a.%", "shopxa.t"));
        assert!(is_like("shop\\_a.%", "shop_a.t"));
    }

    #[test]
    fn filters_keep_tables_out() {
        for (name, value, out, through) in [
            ("Replicate_Do_DB", "a,b", "c", "b"),
            ("Replicate_Ignore_DB", "a, c", "c", "b"),
            ("Replicate_Do_Table", "b.t", "c", "b"),
            ("Replicate_Ignore_Table", "c.t", "c", "b"),
            ("Replicate_Wild_Do_Table", "b.%", "c", "b"),
            ("Replicate_Wild_Ignore_Table", "c.%", "c", "b"),
        ] {
            let filters = filters(name, value);
            assert!(filters.refusal(out, "t").is_some(), "{name}");
            assert_eq!(filters.refusal(through, "t"), None, "{name}");
            assert_eq!(filters.words().len(), 1);
        }
        assert_eq!(Filters::default().refusal("a", "t"), None);
        assert!(
            filters("Replicate_Ignore_Server_Ids", "7")
                .refusal("a", "t")
                .is_some()
        );
        assert_eq!(
            filters("Replicate_Ignore_Domain_Ids", "()"),
            Filters::default()
        );
    }
}
