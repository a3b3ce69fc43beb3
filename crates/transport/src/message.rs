//! What two sides say to each other over a link: a lane, a head in JSON, and a body of bytes.
//!
//! ```text
//! 0  lane            1
//! 1  head length     4
//! 5  head                JSON
//!    body                the rest
//! ```

use evenkeel_op::{Context, Error, Event, Result};
use serde::{Deserialize, Serialize};

/// Which part of a side a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Lane {
    /// What should be done, and what came of it.
    Control = 1,
    /// What the repository is asked.
    Ask = 2,
    /// What it answers.
    Reply = 3,
}

/// Makes a message.
pub(crate) fn encode<T: Serialize>(lane: Lane, head: &T, body: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = vec![lane as u8, 0, 0, 0, 0];
    serde_json::to_writer(&mut bytes, head).context(|| "failed to write a message")?;
    let length = u32::try_from(bytes.len() - 5).context(|| "a message is too long")?;
    bytes[1..5].copy_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// Takes a message apart: lane, head, body.
pub(crate) fn split(bytes: &[u8]) -> Result<(Lane, &[u8], &[u8])> {
    let broken = || Error::failed("the other host sent an invalid message");
    let (fixed, rest) = bytes.split_at_checked(5).ok_or_else(broken)?;
    let lane = match fixed[0] {
        1 => Lane::Control,
        2 => Lane::Ask,
        3 => Lane::Reply,
        _ => return Err(broken()),
    };
    let length = u32::from_le_bytes([fixed[1], fixed[2], fixed[3], fixed[4]]) as usize;
    let (head, body) = rest.split_at_checked(length).ok_or_else(broken)?;
    Ok((lane, head, body))
}

/// Reads a head.
pub(crate) fn head<'a, T: Deserialize<'a>>(head: &'a [u8]) -> Result<T> {
    serde_json::from_slice(head).context(|| "the other host sent an invalid message")
}

/// What should be done on the far side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Order {
    /// Do what this command line says, and say what came of it.
    Run {
        /// The words as bytes, the program's name first; passwords among them.
        words: Vec<Vec<u8>>,
        /// What the repository is called on this side.
        repository: String,
    },
    /// Stop, as this signal would.
    Cancel {
        /// 2 or 15.
        signal: i32,
    },
}

/// What the far side says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Word {
    /// How far it is.
    Progress(Event),
    /// Its answer: text for standard output, as a body.
    Answer {
        /// The text.
        text: String,
    },
    /// It is done.
    Done {
        /// The exit code, or the failure.
        outcome: std::result::Result<u8, Failure>,
    },
}

/// An error as it crosses the link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    kind: String,
    message: String,
    hints: Vec<String>,
}

impl Failure {
    /// Writes an error down.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        Self {
            kind: error.kind().name().to_owned(),
            message: error.chain(),
            hints: error.hints().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Makes an error of it again.
    #[must_use]
    pub fn error(self) -> Error {
        let kind = evenkeel_op::ErrorKind::named(&self.kind);
        let error = Error::new(kind.unwrap_or(evenkeel_op::ErrorKind::Failed), self.message);
        self.hints.into_iter().fold(error, Error::hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;

    #[test]
    fn messages_are_taken_apart_as_they_were_made() {
        let bytes = encode(Lane::Ask, &Order::Cancel { signal: 15 }, b"body").unwrap();
        let (lane, head_bytes, body) = split(&bytes).unwrap();
        assert_eq!((lane, body), (Lane::Ask, &b"body"[..]));
        assert!(matches!(
            head(head_bytes).unwrap(),
            Order::Cancel { signal: 15 }
        ));
        for cut in 0..bytes.len() - body.len() {
            assert!(split(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn an_error_keeps_kind_message_and_hints() {
        let error = Error::new(ErrorKind::LockTimeout, "gave up").hint("try at night");
        let error = error.because(std::io::Error::other("why"));
        let back = Failure::of(&error).error();
        assert_eq!(back.kind(), ErrorKind::LockTimeout);
        assert_eq!(back.chain(), "gave up: why");
        assert_eq!(back.hints(), ["try at night"]);
    }
}
