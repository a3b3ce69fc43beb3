//! What a session does next.

use super::returns::Returns;
use evenkeel_wire::Checksum;

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum What {
    /// A statement.
    #[default]
    Statement = 0,
    /// The session gets another default schema; the text is its name.
    Schema = 1,
    /// The session gets the state of a new one.
    Reset = 2,
    /// The session ends.
    Quit = 3,
    /// A statement is prepared.
    Prepare = 4,
    /// A prepared statement runs; the text is what it comes to.
    Execute = 5,
    /// A prepared statement is forgotten.
    Close = 6,
}

impl What {
    /// Whether it is a statement that runs.
    pub(super) fn is_statement(self) -> bool {
        matches!(self, Self::Statement | Self::Execute)
    }
}

impl From<u8> for What {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Schema,
            2 => Self::Reset,
            3 => Self::Quit,
            4 => Self::Prepare,
            5 => Self::Execute,
            6 => Self::Close,
            _ => Self::Statement,
        }
    }
}

/// What a statement came to when it was captured, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Did {
    /// How long it took, in nanoseconds.
    pub(super) total_ns: Option<u64>,
    /// Rows returned.
    pub(super) rows: Option<u64>,
    /// Rows changed.
    pub(super) affected: Option<u64>,
    /// The number of the error that it failed with.
    pub(super) error: Option<u16>,
    /// Whether it is known that it did not fail, where there is no error.
    pub(super) is_error_known: bool,
    /// Of all rows returned.
    pub(super) checksum: Option<Checksum>,
    /// What can be expected of the rows.
    pub(super) returns: Returns,
}

/// A step of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// When it was captured, in nanoseconds since 1970.
    pub(super) at_ns: i64,
    pub(super) what: What,
    /// Which of the plan's classes it belongs to.
    pub(super) class: u32,
    /// Whether its session is in a transaction before it, and so may have locks.
    pub(super) in_transaction: bool,
    /// Steps of other sessions that have to be done before: a session, and the number of its step.
    pub(super) after: Vec<(u32, u32)>,
    pub(super) did: Did,
    /// The session's number of the prepared statement that it is about.
    pub(super) statement: u32,
    pub(super) text: Vec<u8>,
    /// Of a prepared statement that runs.
    pub(super) values: Vec<u8>,
}
