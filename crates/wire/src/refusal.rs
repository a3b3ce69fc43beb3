//! What a server's error number means to those who bring rows and definitions in.

use evenkeel_op::Error;

/// Why a server would not run a statement, as far as somebody goes on after it.
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
        Some(match code(error)? {
            1062 | 1586 => Self::RowIsThere,
            1061 | 1826 => Self::DefinitionIsThere,
            1205 | 1213 => Self::InTheWay,
            4091 => Self::NoSequence,
            1364 => Self::NoDefault,
            _ => Self::Other,
        })
    }
}

/// Returns the server's number of an error, as the message or one of its causes has it.
fn code(error: &Error) -> Option<u16> {
    const BEFORE: &str = "ERROR ";
    let text = error.chain();
    let at = text.find(BEFORE)? + BEFORE.len();
    text[at..].split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_messages_and_causes() {
        let lost = Error::failed("ERROR 1213 (40001): Deadlock found");
        assert_eq!(Refusal::of(&lost), Some(Refusal::InTheWay));
        let there = Error::failed("ERROR 1062 (23000): Duplicate entry '1205 ' for key 'a'");
        let told = Error::failed("failed to load t").because(there);
        assert_eq!(Refusal::of(&told), Some(Refusal::RowIsThere));
        let other = Error::failed("ERROR 1146 (42S02): Table 's.t' doesn't exist");
        assert_eq!(Refusal::of(&other), Some(Refusal::Other));
        assert_eq!(Refusal::of(&Error::failed("the connection is gone")), None);
    }
}
