//! Ranges of a key as conditions. The server compares, in the columns' own collations.

use super::table::{DumpTable, Key};
use crate::objects::Column;
use evenkeel_server::connect::quote_name;
use std::fmt::Write;

/// A value of each of a key's columns, as literals.
pub(super) type Bound = Vec<String>;

/// Returns a cell of a key as a literal that compares as the column does.
pub(super) fn literal(column: &Column, cell: &[u8]) -> String {
    match &column.charset {
        // Numbers as they are.
        _ if column.is_integer() || column.data_type == "decimal" => {
            String::from_utf8_lossy(cell).into_owned()
        }
        _ if column.is_plain() => format!("'{}'", String::from_utf8_lossy(cell)),
        // The introducer gives the column's own character set: then the column's collation wins.
        Some(charset) => format!("_{charset} X'{}'", hex(cell)),
        None => format!("X'{}'", hex(cell)),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02X}");
    }
    text
}

/// Returns the names of the key's columns.
pub(super) fn names(table: &DumpTable, key: &Key) -> Vec<String> {
    key.columns
        .iter()
        .map(|at| quote_name(&table.columns[*at].name))
        .collect()
}

/// Returns the condition for rows whose key is after `bound`, or, when `or_equal`, at it.
///
/// Not `(a, b) > (x, y)`: MySQL 5.7 reads the whole index for it. The first column's own
/// condition is what every optimiser makes a range of.
pub(super) fn after(names: &[String], bound: &Bound, or_equal: bool) -> String {
    one_side(names, bound, ">", or_equal)
}

/// Returns the condition for rows whose key is before `bound`.
pub(super) fn before(names: &[String], bound: &Bound) -> String {
    one_side(names, bound, "<", false)
}

fn one_side(names: &[String], bound: &Bound, sign: &str, or_equal: bool) -> String {
    let last = names.len() - 1;
    let mut alternatives = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let mut terms: Vec<String> = (0..at)
            .map(|n| format!("{} = {}", names[n], bound[n]))
            .collect();
        let equal = if or_equal && at == last { "=" } else { "" };
        terms.push(format!("{name} {sign}{equal} {}", bound[at]));
        alternatives.push(terms.join(" AND "));
    }
    if last == 0 {
        return alternatives.remove(0);
    }
    format!(
        "{} {sign}= {} AND ({})",
        names[0],
        bound[0],
        alternatives
            .iter()
            .map(|terms| format!("({terms})"))
            .collect::<Vec<_>>()
            .join(" OR ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(data_type: &str, charset: Option<&str>) -> Column {
        Column::for_tests("c", data_type, charset)
    }

    #[test]
    fn literals_compare_as_their_columns() {
        for (column, cell, text) in [
            (column("bigint", None), "-5", "-5"),
            (column("decimal", None), "1.50", "1.50"),
            (column("datetime", None), "2026-01-02", "'2026-01-02'"),
            (
                column("varchar", Some("latin1")),
                "a'b",
                "_latin1 X'612762'",
            ),
            (column("varbinary", None), "a", "X'61'"),
            (column("varchar", Some("utf8mb4")), "", "_utf8mb4 X''"),
        ] {
            assert_eq!(literal(&column, cell.as_bytes()), text);
        }
    }

    #[test]
    fn composite_keys_are_spelled_out() {
        let names = ["a".to_owned(), "b".to_owned()];
        let bound = vec!["1".to_owned(), "2".to_owned()];
        assert_eq!(
            after(&names, &bound, true),
            "a >= 1 AND ((a > 1) OR (a = 1 AND b >= 2))"
        );
        assert_eq!(
            before(&names, &bound),
            "a <= 1 AND ((a < 1) OR (a = 1 AND b < 2))"
        );
        assert_eq!(after(&names[..1], &bound, true), "a >= 1");
    }

    /// What a condition of this shape says about numbers: a tiny reader of it.
    fn holds(condition: &str, row: &[i64]) -> bool {
        let term = |text: &str| {
            let mut words = text.trim_matches(['(', ')', ' ']).split(' ');
            let (name, sign, value) = (words.next(), words.next(), words.next());
            let at = ["a", "b", "c"]
                .iter()
                .position(|n| Some(*n) == name)
                .unwrap();
            let value: i64 = value.unwrap().parse().unwrap();
            match sign.unwrap() {
                "<" => row[at] < value,
                "<=" => row[at] <= value,
                ">" => row[at] > value,
                ">=" => row[at] >= value,
                _ => row[at] == value,
            }
        };
        let all = |text: &str| text.split(" AND ").all(term);
        match condition.split_once(" AND (") {
            Some((first, rest)) if rest.contains(" OR ") => {
                term(first) && rest.split(" OR ").any(all)
            }
            _ => all(condition),
        }
    }

    proptest! {
        #[test]
        fn every_row_is_on_one_side(row in proptest::collection::vec(-3i64..3, 3), bound in proptest::collection::vec(-3i64..3, 3), width in 1usize..4) {
            let names: Vec<String> = ["a", "b", "c"][..width].iter().map(|n| (*n).to_owned()).collect();
            let literals: Bound = bound[..width].iter().map(ToString::to_string).collect();
            let (row, bound) = (&row[..width], &bound[..width]);
            prop_assert_eq!(holds(&after(&names, &literals, true), row), row >= bound);
            prop_assert_eq!(holds(&after(&names, &literals, false), row), row > bound);
            prop_assert_eq!(holds(&before(&names, &literals), row), row < bound);
        }
    }
}
