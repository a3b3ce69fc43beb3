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
            Error::NotOwner(_) | Error::NoSlot(_) | Error::NotCopied(_) | Error::OutOfOrder(_) => {
                Code::Misuse
            }
        };
        let text = error.to_string();
        Self { code, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../engine.h");

    #[test]
    fn the_header_has_the_same_numbers() {
        let ours = [
            ("FULL", Code::Full),
            ("IO", Code::Io),
            ("CORRUPT", Code::Corrupt),
            ("POISONED", Code::Poisoned),
            ("MISSING", Code::Missing),
            ("TOO_LARGE", Code::TooLarge),
            ("MISUSE", Code::Misuse),
            ("PANIC", Code::Panic),
        ];
        let ours = ours.map(|(name, code)| format!("EVQ_{name} = {}", code as i32));
        let (_, rest) = HEADER.split_once("enum evq_code {").unwrap();
        let (theirs, _) = rest.split_once('}').unwrap();
        let theirs: Vec<&str> = theirs.split(',').map(str::trim).collect();
        assert_eq!(theirs, ours);
    }

    /// What is handed over as memory has the same members in the same order.
    #[test]
    fn the_header_has_the_same_structures() {
        let calls = include_str!("calls/mod.rs");
        for (name, ours) in [("evq_stats", "CStats"), ("evq_options", "COptions")] {
            let members = |text: &str, begin: String| {
                let (_, rest) = text.split_once(&begin).unwrap();
                let (body, _) = rest.split_once('}').unwrap();
                let lines = body.lines().map(|line| line.split("//").next().unwrap());
                lines.collect::<String>()
            };
            let mut theirs = Vec::new();
            for line in members(HEADER, format!("struct {name} {{")).split(';') {
                let Some((kind, names)) = line.trim().split_once(' ') else {
                    continue;
                };
                let bits = kind.trim_start_matches("uint").trim_end_matches("_t");
                theirs.extend(
                    names
                        .split(',')
                        .map(|name| format!("{}: u{bits}", name.trim())),
                );
            }
            let ours = members(calls, format!("struct {ours} {{"));
            let ours: Vec<&str> = ours.split(',').map(str::trim).collect();
            assert_eq!(ours[..ours.len() - 1], theirs);
        }
    }
}
