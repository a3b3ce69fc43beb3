//! Old rows of MariaDB's system-versioned tables: who has them, and which columns say when a row held.
//!
//! What still holds ends at the end of time, which is in 2038 on some servers and in 2106 on others; on one
//! that was upgraded from the former to the latter, tables that were not rebuilt keep theirs. Files have
//! NULL there, which is no row's end, and each server makes its own end of time of it.

use crate::objects::text::{TokenKind, all_tokens, name_of};
use crate::objects::{self, Column, Generated, Objects};

/// The last time that servers know, in UTC; NULL on those that know none so late.
const LATER_END: &str = "FROM_UNIXTIME(4294967295.999999)";
/// The last time that the others know.
const EARLIER_END: &str = "FROM_UNIXTIME(2147483647.999999)";

/// Returns what is a server's end of time there, in a session in UTC.
pub(crate) fn end_of_time() -> String {
    format!("IFNULL({LATER_END}, {EARLIER_END})")
}

/// Returns what is until when a row held, and NULL of one that still does. (MariaDB 11.8 does not find
/// such times by IN.)
pub(super) fn until(column: &str) -> String {
    format!("NULLIF(NULLIF({column}, {LATER_END}), {EARLIER_END})")
}

/// Returns the columns that say from when to when a row held, as columns to be written. `None` for a
/// table that keeps no old rows, or keeps them by numbers of transactions, which mean nothing elsewhere.
pub(super) fn row_times(table: &objects::TableObject) -> Option<[Column; 2]> {
    let columns = || {
        let columns = table.columns.iter();
        columns.filter(|one| one.generated == Generated::RowTime)
    };
    if !table.versioned {
        return None;
    }
    if columns().next().is_none() {
        // They are in no list of the server's, and have these names.
        return Some(["row_start", "row_end"].map(unlisted));
    }
    let [start, end] = period(&table.create)?;
    let written = |name: String| {
        let found = columns().find(|one| one.name == name && one.data_type == "timestamp")?;
        Some(Column {
            generated: Generated::No,
            ..found.clone()
        })
    };
    Some([written(start)?, written(end)?])
}

/// Returns the tables whose old rows are not in a dump, by schema and name; `asked` says whether it was
/// to have them.
pub(super) fn left_out(objects: &Objects, asked: bool) -> Vec<String> {
    let databases = objects.databases.iter();
    let names = databases.flat_map(|database| {
        let tables = database.tables.iter().filter(|table| table.versioned);
        let left = tables.filter(|table| !asked || row_times(table).is_none());
        left.map(|table| format!("{}.{}", database.name, table.name))
    });
    names.collect()
}

fn unlisted(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        data_type: "timestamp".to_owned(),
        column_type: "timestamp(6)".to_owned(),
        charset: None,
        collation: None,
        nullable: false,
        generated: Generated::No,
        invisible: true,
        auto_increment: false,
    }
}

/// Returns the columns that a table's statement names in PERIOD FOR SYSTEM_TIME.
fn period(create: &[u8]) -> Option<[String; 2]> {
    let tokens = all_tokens(create)?;
    tokens.windows(8).find_map(|part| {
        let words = ["PERIOD", "FOR", "SYSTEM_TIME"];
        let is_named = words
            .iter()
            .zip(part)
            .all(|(word, token)| token.is_word(create, word));
        let signs = [(3, b'('), (5, b','), (7, b')')];
        let is_listed = signs.iter().all(|(at, sign)| part[*at].is_sign(*sign));
        let names = [part[4], part[6]];
        let names_are = names.iter().all(|one| one.kind == TokenKind::Name);
        (is_named && is_listed && names_are).then(|| names.map(|one| name_of(one.of(create))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_found() {
        let create = b"CREATE TABLE `t` (\n  `e` timestamp(6) GENERATED ALWAYS AS ROW END COMMENT 'PERIOD FOR \
            SYSTEM_TIME (`x`, `y`)',\n  PERIOD FOR SYSTEM_TIME (`a``b`, `e`)\n) WITH SYSTEM VERSIONING";
        assert_eq!(period(create), Some(["a`b".to_owned(), "e".to_owned()]));
        assert_eq!(
            period(b"CREATE TABLE `t` (`a` int) WITH SYSTEM VERSIONING"),
            None
        );
    }
}
