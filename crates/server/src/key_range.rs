//! Ranges of a key as conditions. The server compares, in the columns' own collations.

/// A value of each of a key's columns, as literals that compare as the columns do.
pub type Bound = Vec<String>;

/// Returns the condition for rows whose key is after `bound`, or, when `or_equal`, at it. `names` are quoted.
///
/// Not `(a, b) > (x, y)`: MySQL 5.7 reads the whole index for it. The first column's own
/// condition is what every optimiser makes a range of.
#[must_use]
pub fn after(names: &[String], bound: &[String], or_equal: bool) -> String {
    one_side(names, bound, ">", or_equal)
}

/// Returns the condition for rows whose key is before `bound`.
#[must_use]
pub fn before(names: &[String], bound: &[String]) -> String {
    one_side(names, bound, "<", false)
}

/// Returns the condition for rows whose key is before `bound` or at it.
#[must_use]
pub fn up_to(names: &[String], bound: &[String]) -> String {
    one_side(names, bound, "<", true)
}

fn one_side(names: &[String], bound: &[String], sign: &str, or_equal: bool) -> String {
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
            prop_assert_eq!(holds(&up_to(&names, &literals), row), row <= bound);
        }
    }
}
