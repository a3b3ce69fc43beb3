//! The statements that both sides run: what they say must be the same for the same rows, and for others not.
//!
//! A row's text has all its values, one after the other, so that no two rows have the same text: NULLs are listed in
//! front, bytes have their length in front, long values stand for themselves by a digest. A row's number is the first
//! 64 bits of the text's SHA-256 (newer versions of MySQL have neither SHA-1 nor MD5 any more), and a piece of a table has the count and the sum of its rows' numbers. Not their XOR:
//! two rows alike would cancel out. Not CRC32: it is linear, so that two rows which swapped their values would, too.

use super::catalog::{ComparableTable, Key};
use super::column::Column;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;
use evenkeel_server::key_range::{Bound, after, up_to};
use serde::{Deserialize, Serialize};

/// Some rows of a table: those behind one key, up to and with another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) after: Option<Bound>,
    pub(super) up_to: Option<Bound>,
}

/// The statements for one table.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    table: String,
    hash: String,
    force: String,
    /// Names of the columns that ranges are of.
    cut: Vec<String>,
    /// Values and columns of the same.
    cut_values: Vec<String>,
    cut_columns: Vec<Column>,
    /// Values of the columns that name a row.
    identity_values: Vec<String>,
    identity_columns: Vec<Column>,
    /// Ranges are read from their end: see `Abilities::sticky_range_ends`.
    backwards: bool,
}

impl Statements {
    pub(super) fn of(table: &ComparableTable, backwards: bool) -> Self {
        let identity = table.identity();
        let columns = |count: fn(&Key) -> usize| -> Vec<Column> {
            let all = identity
                .iter()
                .flat_map(|key| key.columns.iter().take(count(key)));
            all.flatten().map(|at| table.columns[*at].clone()).collect()
        };
        let cut_columns = columns(|key| key.ordering);
        let identity_columns = columns(|key| key.columns.len());
        let values = |columns: &[Column]| columns.iter().map(Column::as_value).collect();
        let force = identity.filter(|_| !cut_columns.is_empty());
        Self {
            table: table.quoted(),
            hash: hash(&table.columns),
            force: force.map_or_else(String::new, |key| {
                format!(" FORCE INDEX ({})", quote_name(&key.name))
            }),
            cut: cut_columns
                .iter()
                .map(|one| quote_name(&one.name))
                .collect(),
            cut_values: values(&cut_columns),
            cut_columns,
            identity_values: values(&identity_columns),
            identity_columns,
            backwards: backwards && force.is_some(),
        }
    }

    /// Whether a read may be wrong once, and right when it is done again.
    pub(super) fn may_be_wrong_once(&self) -> bool {
        self.backwards
    }

    /// Whether pieces can be cut.
    pub(super) fn can_cut(&self) -> bool {
        !self.cut.is_empty()
    }

    /// The columns that name a row.
    pub(super) fn identity(&self) -> &[Column] {
        &self.identity_columns
    }

    /// The order in which rows are read.
    fn order(&self) -> String {
        match self.backwards {
            true => format!(" ORDER BY {} DESC", self.cut.join(" DESC, ")),
            false => String::new(),
        }
    }

    fn conditions(&self, range: &Range) -> String {
        let after = range
            .after
            .as_ref()
            .map(|bound| after(&self.cut, bound, false));
        let up_to = range.up_to.as_ref().map(|bound| up_to(&self.cut, bound));
        let both: Vec<String> = after
            .into_iter()
            .chain(up_to)
            .map(|one| format!("({one})"))
            .collect();
        match both.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", both.join(" AND ")),
        }
    }

    /// Count and sum of a range's rows.
    pub(super) fn sums(&self, range: &Range) -> String {
        if self.backwards {
            // Without the limit, the order would be optimised away.
            return format!(
                "SELECT COUNT(*), COALESCE(SUM(h), 0) FROM (SELECT {} AS h FROM {}{}{}{} LIMIT {}) AS piece",
                self.hash,
                self.table,
                self.force,
                self.conditions(range),
                self.order(),
                u64::MAX
            );
        }
        format!(
            "SELECT COUNT(*), COALESCE(SUM({}), 0) FROM {}{}{}",
            self.hash,
            self.table,
            self.force,
            self.conditions(range)
        )
    }

    /// The key of the row that so many rows behind a range's beginning end with; and whether it is in the range.
    pub(super) fn bound(&self, range: &Range, rows: u64) -> String {
        let end = range.up_to.as_ref();
        let is_in = end.map_or("1".to_owned(), |bound| {
            format!("({})", up_to(&self.cut, bound))
        });
        let open = Range {
            after: range.after.clone(),
            up_to: None,
        };
        format!(
            "SELECT {}, {is_in} FROM {}{}{} ORDER BY {} LIMIT 1 OFFSET {}",
            self.cut_values.join(", "),
            self.table,
            self.force,
            self.conditions(&open),
            self.cut.join(", "),
            rows.saturating_sub(1)
        )
    }

    /// Makes a bound of the row that [`Statements::bound`] has; `None` for one that is not in the range.
    ///
    /// Errors: `Failed` for values that are none of their columns: they become part of statements for the other server.
    pub(super) fn literals(&self, row: &[String]) -> Result<Option<Bound>> {
        let Some((is_in, values)) = row.split_last() else {
            return Ok(None);
        };
        let mut both = self.cut_columns.iter().zip(values);
        if !both.clone().all(|(column, value)| column.could_be(value)) {
            return Err(Error::failed("the server sends a key that makes no sense"));
        }
        Ok((is_in == "1").then(|| {
            both.by_ref()
                .map(|(column, value)| column.literal(value))
                .collect()
        }))
    }

    /// Number of each row of a range, behind its key.
    pub(super) fn rows(&self, range: &Range) -> String {
        format!(
            "SELECT {}{} FROM {}{}{}{}",
            self.keys(),
            self.hash,
            self.table,
            self.force,
            self.conditions(range),
            self.order()
        )
    }

    fn keys(&self) -> String {
        let values = self.identity_values.iter();
        values.map(|value| format!("{value}, ")).collect()
    }

    /// Count and sum of all rows, in so many heaps by their numbers.
    pub(super) fn heaps(&self, heaps: u64) -> String {
        let (hash, table) = (&self.hash, &self.table);
        let heap = self.heap(heaps);
        format!("SELECT {heap} AS heap, COUNT(*), SUM({hash}) FROM {table} GROUP BY heap")
    }

    /// Heaps are of keys, where there are any: a row that changed stays in its own.
    fn heap(&self, heaps: u64) -> String {
        match self.identity_values.is_empty() {
            true => format!("({} % {heaps})", self.hash),
            false => format!(
                "(CRC32(CONCAT_WS('#', {})) % {heaps})",
                self.identity_values.join(", ")
            ),
        }
    }

    /// Number of each row of some heaps, behind its key.
    pub(super) fn rows_of_heaps(&self, heaps: u64, of: &[u64]) -> String {
        let of: Vec<String> = of.iter().map(u64::to_string).collect();
        format!(
            "SELECT {}{} FROM {} WHERE {} IN ({})",
            self.keys(),
            self.hash,
            self.table,
            self.heap(heaps),
            of.join(", ")
        )
    }
}

fn hash(columns: &[Column]) -> String {
    let counted = columns.iter().filter(|column| column.counts());
    let nulls = counted.clone().filter(|column| column.nullable);
    let nulls: Vec<String> = nulls
        .map(|column| format!("ISNULL({})", quote_name(&column.name)))
        .collect();
    let nulls = match nulls.as_slice() {
        [] => String::new(),
        some => format!("CONCAT({}), ", some.join(", ")),
    };
    let parts: Vec<String> = counted.map(Column::as_part).collect();
    let text = format!("CONCAT_WS('#', {nulls}{})", parts.join(", "));
    format!("CAST(CONV(LEFT(SHA2({text}, 256), 16), 16, 10) AS UNSIGNED)")
}

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::table;
    use super::*;

    #[test]
    fn statements_read_one_range_in_the_keys_order() {
        let mut name = Column::for_tests("n", "varchar", Some("utf8mb4"));
        name.nullable = true;
        let columns = vec![Column::for_tests("a", "int", None), name];
        let statements = Statements::of(&table(columns.clone(), &[0]), false);
        let range = Range {
            after: Some(vec!["7".to_owned()]),
            up_to: None,
        };
        let hash = "CAST(CONV(LEFT(SHA2(CONCAT_WS('#', CONCAT(ISNULL(`n`)), `a`, LENGTH(`n`), \
                    CAST(`n` AS BINARY)), 256), 16), 16, 10) AS UNSIGNED)";
        assert_eq!(
            statements.sums(&range),
            format!(
                "SELECT COUNT(*), COALESCE(SUM({hash}), 0) FROM `d`.`t` FORCE INDEX (`PRIMARY`) WHERE (`a` > 7)"
            )
        );
        assert_eq!(
            statements.bound(&range, 10),
            "SELECT `a`, 1 FROM `d`.`t` FORCE INDEX (`PRIMARY`) WHERE (`a` > 7) ORDER BY `a` LIMIT 1 OFFSET 9"
        );
        assert_eq!(
            statements
                .literals(&["8".to_owned(), "0".to_owned()])
                .unwrap(),
            None
        );
        let hostile = ["1) INTO OUTFILE '/tmp/x' -- ".to_owned(), "1".to_owned()];
        assert!(statements.literals(&hostile).is_err());
        let backwards = Statements::of(&table(columns, &[0]), true);
        assert!(
            backwards
                .sums(&range)
                .contains("WHERE (`a` > 7) ORDER BY `a` DESC LIMIT")
        );
        assert!(backwards.rows(&range).ends_with("ORDER BY `a` DESC"));
        assert!(
            statements
                .rows(&Range::default())
                .starts_with("SELECT `a`, CAST(")
        );
    }
}
