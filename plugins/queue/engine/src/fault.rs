//! What went wrong, as a number for the handler and a text for the user.

use evenkeel_queue::Error;
use std::fmt;

/// Kinds of faults; `engine.h` has the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// The disk is full.
    Full = 2,
    /// A file cannot be read or written.
    Io = 3,
    /// A file does not hold what was written to it.
    Corrupt = 4,
    /// The table takes no more writes.
    Poisoned = 5,
    /// The table is gone, or was never there.
    Missing = 6,
    /// A row or a statement is too large.
    TooLarge = 7,
    /// The call makes no sense now.
    Misuse = 8,
    /// A defect of this library.
    Panic = 9,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub code: Code,
    /// What the user is told.
    pub text: String,
}

impl Fault {
    /// A call that makes no sense now.
    pub(crate) fn misuse(text: impl Into<String>) -> Self {
        Self {
            code: Code::Misuse,
            text: text.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Full => Code::Full,
            Error::Io { .. } => Code::Io,
            Error::Corrupt { .. } | Error::Foreign { .. } => Code::Corrupt,
            Error::Poisoned(_) => Code::Poisoned,
            Error::Dropped => Code::Missing,
            Error::TooLarge { .. } => Code::TooLarge,
            Error::NotOwner(_) | Error::NoSlot(_) => Code::Misuse,
        };
        let text = error.to_string();
        Self { code, text }
    }
}
