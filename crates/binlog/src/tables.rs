//! Which tables an event changes, as far as the event says.

use crate::groups::statement;
use crate::{Header, kind};

/// Statements that change no table's rows, by their first words. Whatever else stands in a log as a
/// statement changes what its text says.
const HARMLESS: [&str; 13] = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "ANALYZE",
    "FLUSH",
    "GRANT",
    "REVOKE",
    "SET PASSWORD",
    "CREATE USER",
    "ALTER USER",
    "DROP USER",
    "CREATE DATABASE",
];

/// What an event changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// No rows of any table.
    Nothing,
    /// Nothing yet: the rows that follow under this number are those of this table.
    Table {
        /// What rows name it by.
        number: u64,
        /// Its database.
        schema: String,
        /// Its name.
        table: String,
    },
    /// Rows of the table that was given this number. What foreign keys do to others stands nowhere.
    Rows {
        /// Of the table.
        number: u64,
        /// What was done to them.
        done: Done,
    },
    /// Whatever the text of this statement does.
    Statement(Vec<u8>),
    /// Something, but not which tables; in words, what it is.
    Unsaid(String),
}

/// What was done to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// They are new.
    Inserted,
    /// They have other values.
    Updated,
    /// They are gone.
    Deleted,
}

/// Says what an event changes. `body` is without the checksum.
#[must_use]
pub fn change(header: &Header, body: &[u8]) -> Change {
    match header.kind {
        kind::TABLE_MAP => match table(body) {
            Some((number, schema, table)) => Change::Table {
                number,
                schema,
                table,
            },
            None => Change::Unsaid("an event that is damaged".to_owned()),
        },
        kind::QUERY => match statement(body) {
            Some(text) => by_text(text),
            None => Change::Unsaid("an event that is damaged".to_owned()),
        },
        20..=25 | 30..=32 | 39 | 166..=171 => match number(body) {
            Some(NO_TABLE) => Change::Nothing,
            Some(number) => Change::Rows {
                number,
                done: done(header.kind),
            },
            None => Change::Unsaid("an event that is damaged".to_owned()),
        },
        kind::STOP
        | kind::ROTATE
        | kind::FORMAT_DESCRIPTION
        | kind::XID
        | kind::XA_PREPARE
        | kind::INTVAR
        | kind::RAND
        | kind::USER_VAR
        | kind::BEGIN_LOAD_QUERY
        | kind::HEARTBEAT
        | kind::HEARTBEAT_V2
        | kind::ROWS_QUERY
        | kind::GTID
        | kind::GTID_TAGGED
        | kind::ANONYMOUS_GTID
        | kind::PREVIOUS_GTIDS
        | kind::MARIADB_ANNOTATE_ROWS
        | kind::MARIADB_CHECKPOINT
        | kind::MARIADB_GTID
        | kind::MARIADB_GTID_LIST
        | kind::MARIADB_START_ENCRYPTION => Change::Nothing,
        kind::TRANSACTION_PAYLOAD => Change::Unsaid("a compressed transaction".to_owned()),
        other => Change::Unsaid(format!("an event of kind {other}")),
    }
}

/// Returns when the server was started that wrote this format description: 0 when it has been running
/// since before the file. Body: `u16 4, 50 bytes server version, u32 created`.
#[must_use]
pub fn started(body: &[u8]) -> u32 {
    let created = body.get(52..).and_then(|rest| rest.first_chunk());
    created.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// What an event without rows has in place of a table's number.
const NO_TABLE: u64 = 0xFF_FFFF;

/// What events of rows begin with: 6 bytes.
fn number(body: &[u8]) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(body.get(..6)?);
    Some(u64::from_le_bytes(bytes))
}

/// Each version of row events has one for each of the three; 39 is MySQL's update of parts of JSON.
fn done(kind: u8) -> Done {
    match kind {
        20 | 23 | 30 | 166 | 169 => Done::Inserted,
        22 | 25 | 32 | 168 | 171 => Done::Deleted,
        _ => Done::Updated,
    }
}

/// Body: `6 bytes number, u16 flags, u8 length, schema, 0, u8 length, table, 0`.
fn table(body: &[u8]) -> Option<(u64, String, String)> {
    let text = |at: usize| {
        let length = usize::from(*body.get(at)?);
        let name = body.get(at + 1..at + 1 + length)?;
        Some((String::from_utf8_lossy(name).into_owned(), at + length + 2))
    };
    let (schema, next) = text(8)?;
    let (table, _) = text(next)?;
    Some((number(body)?, schema, table))
}

fn by_text(text: &[u8]) -> Change {
    let begins = |words: &str| {
        text.get(..words.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(words.as_bytes()))
            && text
                .get(words.len())
                .is_none_or(|next| !next.is_ascii_alphanumeric() && *next != b'_')
    };
    if HARMLESS.into_iter().any(begins) {
        return Change::Nothing;
    }
    Change::Statement(text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8) -> Header {
        Header {
            time: 0,
            kind,
            server: 1,
            length: 100,
            next: 0,
            flags: 0,
        }
    }

    fn query(text: &str) -> Change {
        let body = [&[0; 8][..], &[1, 0, 0, 2, 0, 9, 9], b"d\0", text.as_bytes()].concat();
        change(&header(kind::QUERY), &body)
    }

    #[test]
    fn rows_name_their_table() {
        let body = b"\x07\0\0\0\0\0\x01\0\x04shop\0\x06orders\0\x02\x03\x0f";
        let named = Change::Table {
            number: 7,
            schema: "shop".to_owned(),
            table: "orders".to_owned(),
        };
        assert_eq!(change(&header(kind::TABLE_MAP), body), named);
        for cut in 0..20 {
            let cut = change(&header(kind::TABLE_MAP), &body[..cut]);
            assert!(matches!(cut, Change::Unsaid(_)), "{cut:?}");
        }
    }

    #[test]
    fn rows_say_what_was_done() {
        for (kinds, done) in [
            ([20, 23, 30, 166, 169], Done::Inserted),
            ([21, 24, 31, 167, 170], Done::Updated),
            ([22, 25, 32, 168, 171], Done::Deleted),
            ([39; 5], Done::Updated),
        ] {
            for kind in kinds {
                let rows = change(&header(kind), b"\x07\0\0\0\0\x01\x01\0rest");
                let number = 7 + (1 << 40);
                assert_eq!(rows, Change::Rows { number, done }, "{kind}");
                let none = change(&header(kind), b"\xFF\xFF\xFF\0\0\0\x01\0");
                assert_eq!(none, Change::Nothing, "{kind}");
                assert!(matches!(change(&header(kind), b"\x07"), Change::Unsaid(_)));
            }
        }
    }

    #[test]
    fn statements_may_have_changed_anything() {
        for text in ["BEGIN", "COMMIT", "savepoint `x`", "GRANT ALL ON *.* TO u"] {
            assert_eq!(query(text), Change::Nothing, "{text}");
        }
        for text in [
            "INSERT INTO t VALUES (1)",
            "TRUNCATE t",
            "BEGINNING",
            "XA COMMIT X'1'",
            "",
        ] {
            assert_eq!(query(text), Change::Statement(text.into()), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_taken_for_nothing() {
        let unsaid = [
            kind::EXECUTE_LOAD_QUERY,
            kind::INCIDENT,
            kind::TRANSACTION_PAYLOAD,
            200,
        ];
        for kind in unsaid {
            let said = change(&header(kind), &[]);
            assert!(matches!(said, Change::Unsaid(_)), "{kind}");
        }
    }

    #[test]
    fn a_start_stands_in_the_first_event() {
        let mut body = vec![4, 0];
        body.extend([b'8'; 50]);
        body.extend(7u32.to_le_bytes());
        assert_eq!(started(&body), 7);
        assert_eq!(started(&body[..50]), 0);
    }
}
