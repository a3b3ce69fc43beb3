//! Which rows of a piece are different, when its sums are.

use super::align::{Pair, View};
use super::column::Column;
use super::report::{KeyValue, RowDifference, RowDifferenceKind};
use super::sql::{Range, Statements};
use evenkeel_op::{Error, Result, workers};
use std::collections::{BTreeSet, HashMap};

/// In so many heaps is a table parted whose rows cannot be cut by key.
const HEAPS: u64 = 1024;
/// How often it is tried to see all rows of a range.
const TRIES: usize = 4;
/// More rows of one side are not kept in memory.
const ROWS_MAX: usize = 2_000_000;

/// Rows that are different: all counted, some named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Different {
    pub(super) missing: u64,
    pub(super) extra: u64,
    pub(super) changed: u64,
    pub(super) named: Vec<RowDifference>,
    /// Rows that were compared, on each side.
    seen: (u64, u64),
}

impl Different {
    pub(super) fn count(&self) -> u64 {
        self.missing + self.extra + self.changed
    }

    fn add(&mut self, kind: RowDifferenceKind, times: u64, key: Vec<KeyValue>, named_max: usize) {
        *match kind {
            RowDifferenceKind::Missing => &mut self.missing,
            RowDifferenceKind::Extra => &mut self.extra,
            RowDifferenceKind::Changed => &mut self.changed,
        } += times;
        for _ in 0..times {
            if self.named.len() >= named_max {
                break;
            }
            let key = key.clone();
            self.named.push(RowDifference { kind, key });
        }
    }
}

/// Compares the rows of a range one by one, by their numbers. `counts` is how many there are on each side.
///
/// Errors: those of the views; `Failed` when there are too many rows to tell, or not as many as there should be.
pub(super) fn different(
    pair: &mut Pair,
    statements: &Statements,
    range: &Range,
    counts: (u64, u64),
    named_max: usize,
) -> Result<Different> {
    let sql = match statements.can_cut() {
        true => statements.rows(range),
        false => {
            let heaps = unequal_heaps(pair, statements)?;
            statements.rows_of_heaps(HEAPS, &heaps)
        }
    };
    for _ in 0..TRIES {
        let found = compare(pair, statements.identity(), &sql, named_max)?;
        // Heaps are not all of the range.
        if found.seen == counts || !statements.can_cut() {
            return Ok(found);
        }
    }
    Err(Error::failed(
        "a server does not return all rows of a range",
    ))
}

/// Returns the heaps whose sums differ.
fn unequal_heaps(pair: &mut Pair, statements: &Statements) -> Result<Vec<u64>> {
    let sql = statements.heaps(HEAPS);
    let read = |view: &mut View| -> Result<BTreeSet<Vec<String>>> {
        let mut heaps = BTreeSet::new();
        view.each_row(&sql, &mut |cells| {
            let cells = cells.iter().map(|cell| cell.unwrap_or_default().to_owned());
            heaps.insert(cells.collect());
            Ok(())
        })?;
        Ok(heaps)
    };
    let (here, there) = both(pair, read)?;
    let unequal = here.symmetric_difference(&there);
    let numbers: BTreeSet<u64> = unequal
        .filter_map(|heap| heap.first()?.parse().ok())
        .collect();
    if numbers.is_empty() {
        return Err(Error::failed(
            "the sums of a table changed while it was read",
        ));
    }
    Ok(numbers.into_iter().collect())
}

/// Does the same on both sides at once.
pub(super) fn both<T: Send>(
    pair: &mut Pair,
    read: impl Fn(&mut View) -> Result<T> + Sync,
) -> Result<(T, T)> {
    let (source, replica) = (&mut pair.source, &mut pair.replica);
    std::thread::scope(|scope| {
        let there = scope.spawn(|| read(replica));
        let here = read(source);
        let there = workers::joined(there, "a reader of the replica");
        Ok((here?, there?))
    })
}

/// The rows of the source that the replica has not shown yet: by key, or where there is none, by number, with how many
/// of them there are.
struct Left(HashMap<Vec<String>, (String, u64)>);

fn compare(pair: &mut Pair, identity: &[Column], sql: &str, named_max: usize) -> Result<Different> {
    let mut left = Left(HashMap::new());
    let mut found = Different::default();
    let has_key = !identity.is_empty();
    pair.source.each_row(sql, &mut |cells| {
        let (key, number) = parts(cells, has_key)?;
        left.0.entry(key).or_insert((number, 0)).1 += 1;
        found.seen.0 += 1;
        match left.0.len() > ROWS_MAX {
            true => Err(Error::failed(format!(
                "more than {ROWS_MAX} rows would have to be compared one by one"
            ))),
            false => Ok(()),
        }
    })?;
    pair.replica.each_row(sql, &mut |cells| {
        let (key, number) = parts(cells, has_key)?;
        found.seen.1 += 1;
        let Some((expected, times)) = left.0.get_mut(&key) else {
            found.add(
                RowDifferenceKind::Extra,
                1,
                shown(identity, &key),
                named_max,
            );
            return Ok(());
        };
        if *expected != number {
            found.add(
                RowDifferenceKind::Changed,
                1,
                shown(identity, &key),
                named_max,
            );
        }
        *times -= 1;
        if *times == 0 {
            left.0.remove(&key);
        }
        Ok(())
    })?;
    for (key, (_, times)) in left.0 {
        found.add(
            RowDifferenceKind::Missing,
            times,
            shown(identity, &key),
            named_max,
        );
    }
    found.named.sort();
    Ok(found)
}

/// Parts a row into its key and its number, which is its key where there is no other.
fn parts(cells: &[Option<&str>], has_key: bool) -> Result<(Vec<String>, String)> {
    let texts: Option<Vec<String>> = cells.iter().map(|cell| cell.map(str::to_owned)).collect();
    let mut texts = texts.ok_or_else(|| Error::failed("a row has no number"))?;
    let number = texts.pop().unwrap_or_default();
    if !has_key {
        texts.push(number.clone());
    }
    Ok((texts, number))
}

fn shown(identity: &[Column], key: &[String]) -> Vec<KeyValue> {
    let columns = identity.iter().zip(key);
    columns
        .map(|(column, value)| KeyValue {
            column: column.name.clone(),
            value: column.shown(value),
            raw: value.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_some_are_named() {
        let mut found = Different::default();
        found.add(RowDifferenceKind::Missing, 3, Vec::new(), 2);
        found.add(RowDifferenceKind::Changed, 1, Vec::new(), 2);
        assert_eq!((found.missing, found.changed, found.count()), (3, 1, 4));
        assert_eq!(found.named.len(), 2);
    }

    #[test]
    fn a_row_without_a_key_is_its_number() {
        let cells = [Some("1"), Some("99")];
        assert_eq!(
            parts(&cells, true).unwrap(),
            (vec!["1".to_owned()], "99".to_owned())
        );
        assert_eq!(parts(&cells[1..], false).unwrap().0, ["99"]);
        assert!(parts(&[None], false).is_err());
    }
}
