//! What is known of a statement by its text: the same for all of one shape.

use super::access::{Access, access};
use super::only_reads::only_reads_in_any_mode;
use evenkeel_sql::Mode;

/// What is known of a statement by its text.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) access: Access,
    /// It changes no data, whatever its session and its server make of the text. False if nobody asked.
    pub(super) only_reads: bool,
}

impl Known {
    /// Reads a statement; whether it only reads is looked at if `is_asked`: that is as much again.
    pub(super) fn of(sql: &[u8], mode: Mode, is_asked: bool) -> Self {
        let access = access(sql, mode);
        let only_reads = is_asked && only_reads_in_any_mode(&access, sql, mode);
        Self { access, only_reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::fingerprint::{Rules, Shapes, fingerprint};
    use proptest::prelude::*;

    /// Pieces of statements, some of which are read otherwise beside others; `V` stands for a value.
    const PIECES: [&str; 46] = [
        "SELECT ",
        "INSERT INTO t ",
        "UPDATE t SET a=",
        "DELETE FROM t WHERE b<",
        "REPLACE t ",
        "V",
        "V",
        "V",
        " V ",
        "=V",
        "(V,V)",
        "-V",
        ",",
        "(",
        ")",
        " ",
        "a",
        "`b`",
        "`",
        "'",
        "''",
        "\\",
        "\"",
        "--",
        " -- ",
        "#",
        "/*",
        "*/",
        "/*!50000 ",
        "x",
        "N",
        "_utf8",
        "@",
        ".",
        "-",
        "1e5",
        " IN ",
        " VALUES ",
        " LIMIT ",
        ";",
        "SET autocommit=",
        " INTO OUTFILE ",
        " FOR UPDATE",
        " FROM t JOIN u ",
        "LOAD_FILE(",
        "\u{e4}",
    ];
    const VALUES: [&str; 12] = [
        "0",
        "00",
        "7",
        "123456",
        "''",
        "'a b'",
        "'FROM u'",
        "'0'",
        "'; DROP TABLE t'",
        "'/*'",
        "'--'",
        "'\"'",
    ];

    proptest! {
        #[test]
        fn statements_of_one_shape_are_read_alike(
            pieces in proptest::collection::vec(0..PIECES.len(), 1..12),
            first in 0..5_usize,
            values in proptest::collection::vec(0..VALUES.len(), 24),
        ) {
            let filled = |values: &[usize]| {
                let mut values = values.iter().map(|value| VALUES[*value]).cycle();
                let words = std::iter::once(first).chain(pieces.iter().copied()).map(|piece| PIECES[piece]);
                words.flat_map(str::chars).fold(String::new(), |mut sql, letter| {
                    match letter {
                        'V' => sql.push_str(values.next().unwrap_or_default()),
                        letter => sql.push(letter),
                    }
                    sql
                })
            };
            let (one, other) = (filled(&values[..12]), filled(&values[12..]));
            let mode = Mode::default();
            let mut known = Shapes::default();
            let mut prints = Shapes::default();
            for sql in [&one, &other] {
                let sql = sql.as_bytes();
                let whole = Known::of(sql, mode, true);
                let by_shape = known.get(sql, || Known::of(sql, mode, true));
                prop_assert_eq!(&by_shape.access, &whole.access);
                prop_assert_eq!(by_shape.only_reads, whole.only_reads);
                let print = || fingerprint(sql, false, Rules::Evenkeel, mode);
                prop_assert_eq!(&*prints.get(sql, print), &print());
            }
        }
    }
}
