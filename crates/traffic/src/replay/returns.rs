//! Whether a statement should return the same rows when it runs again, as far as its text says.

use super::access::Piece;

/// What can be expected of the rows that a statement returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum Returns {
    /// The same rows, in any order.
    #[default]
    Rows = 0,
    /// The same rows in the same order.
    Sorted = 1,
    /// Rows that depend on when it runs, in which session, or on chance.
    Varying = 2,
    /// Rows that say something about the server.
    OfServer = 3,
    /// Nobody wants to know.
    Ignored = 4,
    /// Rows of before or after a change that committed at the same time.
    Concurrent = 5,
}

impl From<u8> for Returns {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Sorted,
            2 => Self::Varying,
            3 => Self::OfServer,
            4 => Self::Ignored,
            5 => Self::Concurrent,
            _ => Self::Rows,
        }
    }
}

impl Returns {
    /// Returns what can be expected of a statement.
    pub(super) fn of(pieces: &[Piece]) -> Self {
        if is_of_server(pieces) {
            return Self::OfServer;
        }
        let mut at_order = false;
        let mut is_sorted = false;
        for (at, piece) in pieces.iter().enumerate() {
            let Piece::Word(word) = piece else {
                at_order = false;
                continue;
            };
            if varies(word, &pieces[at + 1..]) {
                return Self::Varying;
            }
            is_sorted |= at_order && word == "by";
            at_order = word == "order";
        }
        match is_sorted {
            true => Self::Sorted,
            false => Self::Rows,
        }
    }

    /// Returns what can be expected if a change of the same tables committed at the same time.
    pub(super) fn beside_a_change(self) -> Self {
        match self {
            Self::Rows | Self::Sorted => Self::Concurrent,
            other => other,
        }
    }

    /// Returns what can be expected of two statements in one.
    pub(super) fn and(self, other: Self) -> Self {
        match (self as u8).max(other as u8) {
            // Of each of them its own.
            1 if self != other => Self::Rows,
            most => most.into(),
        }
    }
}

/// Whether a word is a function whose value is another one each time; what follows it is given, too.
fn varies(word: &str, then: &[Piece]) -> bool {
    let is_called = then.first() == Some(&Piece::Sign(b'('));
    let is_empty = is_called && then.get(1) == Some(&Piece::Sign(b')'));
    match word {
        "current_date" | "current_role" | "current_time" | "current_timestamp" | "current_user"
        | "localtime" | "localtimestamp" | "utc_date" | "utc_time" | "utc_timestamp" => true,
        "connection_id"
        | "curdate"
        | "curtime"
        | "last_insert_id"
        | "now"
        | "rand"
        | "random_bytes"
        | "sys_guid"
        | "sysdate"
        | "uuid"
        | "uuid_short"
        | "uuid_v4"
        | "uuid_v7"
        | "is_used_lock"
        | "ps_current_thread_id" => is_called,
        "session_user" | "system_user" | "user" | "unix_timestamp" => is_empty,
        _ => false,
    }
}

/// Whether the server says something about itself, or about its plans.
fn is_of_server(pieces: &[Piece]) -> bool {
    let verbs = [
        "show", "desc", "describe", "explain", "help", "analyze", "check", "checksum", "optimize",
        "repair",
    ];
    if matches!(pieces.first(), Some(Piece::Word(word)) if verbs.contains(&word.as_str())) {
        return true;
    }
    pieces.iter().enumerate().any(|(at, piece)| match piece {
        Piece::Variable(name) => name.starts_with("@@"),
        Piece::Name(name) => is_system(name) && pieces.get(at + 1) == Some(&Piece::Sign(b'.')),
        Piece::Word(word) => match pieces.get(at + 1) {
            Some(Piece::Sign(b'.')) => is_system(word.as_bytes()),
            Some(Piece::Sign(b'(')) => matches!(word.as_str(), "version" | "database" | "schema"),
            _ => false,
        },
        _ => false,
    })
}

/// Whether a schema is the server's own.
pub(super) fn is_system(schema: &[u8]) -> bool {
    let own: [&[u8]; 4] = [
        b"information_schema",
        b"performance_schema",
        b"mysql",
        b"sys",
    ];
    own.iter().any(|own| schema.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::super::access::access;
    use super::*;
    use evenkeel_sql::Mode;

    #[test]
    fn what_returns_other_rows_each_time_is_known() {
        for (sql, expected) in [
            ("SELECT a FROM t", Returns::Rows),
            ("SELECT a FROM t WHERE b = 'now()'", Returns::Rows),
            ("SELECT now, uuid FROM t", Returns::Rows),
            ("SELECT a, `rand` FROM t ORDER BY a", Returns::Sorted),
            ("SELECT a FROM t ORDER BY RAND()", Returns::Varying),
            ("SELECT unix_timestamp(a) FROM t", Returns::Rows),
            ("SELECT unix_timestamp()", Returns::Varying),
            ("select Current_Timestamp", Returns::Varying),
            ("SELECT NOW(6)", Returns::Varying),
            ("SELECT now (), a FROM t", Returns::Varying),
            ("SELECT /*!80000 uuid() */ 1", Returns::Varying),
            ("SELECT @@version_comment LIMIT 1", Returns::OfServer),
            ("SELECT @a", Returns::Rows),
            ("SELECT VERSION()", Returns::OfServer),
            ("SELECT version FROM t", Returns::Rows),
            ("SHOW STATUS LIKE 'a'", Returns::OfServer),
            ("EXPLAIN SELECT a FROM t", Returns::OfServer),
            ("SELECT 1 FROM `mysql`.user", Returns::OfServer),
            ("SELECT a FROM t; SELECT NOW()", Returns::Varying),
            ("SELECT a FROM t ORDER BY a; SELECT a FROM t", Returns::Rows),
            ("UPDATE t SET a = 1; SELECT a FROM t", Returns::Rows),
        ] {
            assert_eq!(
                access(sql.as_bytes(), Mode::default()).returns,
                expected,
                "{sql}"
            );
        }
    }
}
