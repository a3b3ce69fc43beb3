//! What a server's error number means to those who bring rows and definitions in.

use evenkeel_op::Error;
use evenkeel_server::connect::ServerNumber;

/// Why a server would not run a statement, as far as somebody continues after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A row with that key is there.
    RowIsThere,
    /// An index or a foreign key of that name is there.
    DefinitionIsThere,
    /// Another transaction was in the way: a deadlock, or a lock that was waited for too long.
    InTheWay,
    /// A default names a sequence that is not there.
    NoSequence,
    /// A column would get no value, and has no default.
    NoDefault,
    /// Anything else.
    Other,
}

impl Refusal {
    /// Returns what an error means; `None` for one that no server gave: a connection that was lost,
    /// a request to stop.
    #[must_use]
    pub fn of(error: &Error) -> Option<Self> {
        Some(match ServerNumber::of(error)? {
            1062 | 1586 => Self::RowIsThere,
            1061 | 1826 => Self::DefinitionIsThere,
            1205 | 1213 => Self::InTheWay,
            4091 => Self::NoSequence,
            1364 => Self::NoDefault,
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::connect::{mysql, query_error};
    use std::io;

    fn refused(code: u16) -> Error {
        let server = mysql::MySqlError {
            state: "HY000".to_owned(),
            message: "Duplicate entry '1205 ' for key 'a'".to_owned(),
            code,
        };
        query_error(&mysql::Error::MySqlError(server), "X")
    }

    #[test]
    fn numbers_are_found_in_errors_and_causes() {
        let lost = refused(1213);
        assert_eq!(Refusal::of(&lost), Some(Refusal::InTheWay));
        let reported = Error::failed("failed to load t").because(refused(1062));
        assert_eq!(Refusal::of(&reported), Some(Refusal::RowIsThere));
        assert_eq!(Refusal::of(&refused(1146)), Some(Refusal::Other));
        assert_eq!(Refusal::of(&Error::failed("the connection is gone")), None);
    }

    #[test]
    fn what_a_statement_quotes_is_no_refusal() {
        let gone = mysql::Error::IoError(io::ErrorKind::BrokenPipe.into());
        let error = query_error(&gone, "INSERT INTO t VALUES ('ERROR 1062 (23000)')");
        assert_eq!(Refusal::of(&error), None);
    }
}
