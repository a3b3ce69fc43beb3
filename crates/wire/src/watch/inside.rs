//! The prepared statements of a session that is seen from within the server: its commands come complete, and its answers
//! are not seen.

use super::redact::redacted;
use super::statements::{Rendered, Statements, placeholders};
use evenkeel_sql::Mode;

/// What is known of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// How long its text is; more than there is where it was cut.
    pub sql_bytes: u64,
    /// The text or a value in it is not known.
    pub is_unseen: bool,
}

/// Remembers the statements that a session prepared.
#[derive(Debug)]
pub struct Inside {
    statements: Statements,
    mode: Mode,
    keep: usize,
}

impl Inside {
    /// Starts with no statements. Of each text at most `keep` bytes are kept.
    #[must_use]
    pub fn new(keep: usize) -> Self {
        Self {
            statements: Statements::default(),
            mode: Mode::default(),
            keep: keep.max(64),
        }
    }

    /// Remembers a statement by the server's number; `sql_bytes` says how long its text is.
    pub fn prepare(&mut self, number: u32, sql: &[u8], sql_bytes: u64) {
        let parameters = placeholders(sql, self.mode).len();
        let parameters = u16::try_from(parameters).unwrap_or(u16::MAX);
        let length = sql_bytes.max(sql.len() as u64);
        self.statements
            .add(number, parameters, sql, length, self.mode);
    }

    /// Returns the number that is meant: MariaDB's clients have one for the last statement.
    #[must_use]
    pub fn meant(&self, number: u32) -> u32 {
        self.statements.meant(number)
    }

    /// Returns whether a statement's text is known.
    #[must_use]
    pub fn knows(&self, number: u32) -> bool {
        self.statements.knows(number)
    }

    /// Returns whether a text has values to come: it is as it was prepared.
    #[must_use]
    pub fn has_placeholders(&self, sql: &[u8]) -> bool {
        !placeholders(sql, self.mode).is_empty()
    }

    /// Puts the text that an execution comes to into `into`. `packet` is what follows the command in the protocol; its
    /// parameters have no names.
    pub fn execute(&mut self, packet: &[u8], into: &mut Vec<u8>) -> Execution {
        let (mode, keep) = (self.mode, self.keep);
        let rendered = self
            .statements
            .execute(packet, Some(false), mode, keep, into, None);
        self.execution(rendered, packet, true, into)
    }

    /// Puts the text of an execution for many rows into `into`; its values are not written out.
    pub fn execute_bulk(&mut self, packet: &[u8], into: &mut Vec<u8>) -> Execution {
        let rendered = self.statements.text(number_of(packet), self.keep, into);
        self.execution(rendered, packet, false, into)
    }

    fn execution(
        &self,
        rendered: Rendered,
        packet: &[u8],
        is_part_unseen: bool,
        into: &mut Vec<u8>,
    ) -> Execution {
        let (sql_bytes, is_unseen) = match rendered {
            Rendered::Whole(length) => (length, false),
            Rendered::Part(length) => (length, is_part_unseen),
            Rendered::Unknown => {
                let number = self.meant(number_of(packet));
                *into = format!("stmt#{number}").into_bytes();
                (into.len() as u64, true)
            }
        };
        Execution {
            sql_bytes,
            is_unseen,
        }
    }

    /// Keeps a piece of a value that is sent ahead of the execution: what follows the command in the protocol.
    pub fn send_ahead(&mut self, packet: &[u8]) {
        // Of what is too short nothing is known.
        let _ = self.statements.send_ahead(packet);
    }

    /// Forgets the values that were sent ahead.
    pub fn reset(&mut self, number: u32) {
        self.statements.reset(self.statements.meant(number));
    }

    /// Forgets a statement.
    pub fn close(&mut self, number: u32) {
        self.statements.remove(self.statements.meant(number));
    }

    /// Forgets all statements: the session is as new.
    pub fn clear(&mut self) {
        self.statements.clear();
    }

    /// Returns a text without its passwords; `None` where it has none.
    #[must_use]
    pub fn redacted(&self, sql: &[u8]) -> Option<Vec<u8>> {
        redacted(sql, self.mode)
    }
}

/// Returns the statement's number that a packet begins with.
fn number_of(packet: &[u8]) -> u32 {
    let number = packet.first_chunk::<4>();
    number.map_or(0, |number| u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_have_their_values() {
        let mut session = Inside::new(100);
        let mut text = Vec::new();
        let packet = [7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 5];
        let unknown = session.execute(&packet, &mut text);
        assert_eq!((&text[..], unknown.is_unseen), (&b"stmt#7"[..], true));
        session.prepare(7, b"SELECT ?", 8);
        let known = session.execute(&packet, &mut text);
        assert_eq!((&text[..], known.is_unseen), (&b"SELECT 5"[..], false));
        session.close(7);
        assert!(!session.knows(7));
    }
}
