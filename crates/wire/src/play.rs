//! Statements that are run for the sake of what they come to: rows are counted and dropped.

use crate::connection::{Answer, COM_QUERY, Connection};
use crate::prepared::COM_STMT_EXECUTE;
use crate::sums::{Checksum, Sums};
use evenkeel_op::Result;

const COM_INIT_DB: u8 = 2;
const COM_RESET_CONNECTION: u8 = 0x1f;
const COM_STMT_CLOSE: u8 = 0x19;

/// What a statement came to. Of several results, or several statements in one, the sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
    /// Warnings.
    pub warnings: u64,
    /// Bytes of all rows.
    pub bytes: u64,
    /// The number of the error that the server refused it with.
    pub error: Option<u16>,
    /// Of all rows, if there was a result.
    pub checksum: Option<Checksum>,
}

/// A statement that the server has prepared for a connection.
#[derive(Debug)]
pub struct PlayedStatement {
    id: u32,
}

impl Connection {
    /// Runs a statement, whatever it is. What the server refuses is an outcome like any other. A server that asks for
    /// a local file gets an empty one.
    ///
    /// Errors: `Unreachable` when the connection is lost; `Interrupted`.
    pub fn play(&mut self, statement: &[u8]) -> Result<Played> {
        self.command(&[COM_QUERY], statement, WHAT)?;
        self.outcome()
    }

    /// Prepares a statement, whatever it is. What the server refuses it with is an outcome, too.
    ///
    /// Errors: as [`Connection::play`].
    pub fn play_prepare(
        &mut self,
        statement: &[u8],
    ) -> Result<std::result::Result<PlayedStatement, u16>> {
        match self.describe(statement, WHAT) {
            Ok((id, _)) => Ok(Ok(PlayedStatement { id })),
            Err(error) => Ok(Err(self.refusal().ok_or(error)?)),
        }
    }

    /// Runs a prepared statement. The values are in binary: a bit for each NULL, a one, the types, the values; nothing
    /// where there are no parameters.
    ///
    /// Errors: as [`Connection::play`].
    pub fn play_execute(&mut self, statement: &PlayedStatement, values: &[u8]) -> Result<Played> {
        let [a, b, c, d] = statement.id.to_le_bytes();
        // No cursor, once.
        let head = [COM_STMT_EXECUTE, a, b, c, d, 0, 1, 0, 0, 0];
        self.command(&head, values, WHAT)?;
        self.outcome_of(true)
    }

    /// Has the server forget a prepared statement.
    ///
    /// Errors: as [`Connection::play`].
    pub fn play_close(&mut self, statement: PlayedStatement) -> Result<()> {
        // There is no answer.
        self.command(&[COM_STMT_CLOSE], &statement.id.to_le_bytes(), WHAT)
    }

    /// Makes a schema the session's default.
    ///
    /// Errors: as [`Connection::play`].
    pub fn play_default_schema(&mut self, schema: &[u8]) -> Result<Played> {
        self.command(&[COM_INIT_DB], schema, WHAT)?;
        self.outcome()
    }

    /// Gives the session the state of a new one.
    ///
    /// Errors: as [`Connection::play`].
    pub fn play_reset(&mut self) -> Result<Played> {
        self.command(&[COM_RESET_CONNECTION], &[], WHAT)?;
        self.outcome()
    }

    /// Reads all that a command is answered with.
    pub(crate) fn outcome(&mut self) -> Result<Played> {
        self.outcome_of(false)
    }

    fn outcome_of(&mut self, is_binary: bool) -> Result<Played> {
        let mut played = Played::default();
        let mut sums = Sums::default();
        loop {
            match self.result(&mut played, &mut sums, is_binary) {
                Ok(()) if self.has_more() => {}
                Ok(()) => {
                    played.checksum = sums.checksum();
                    return Ok(played);
                }
                Err(error) => {
                    played.error = Some(self.refusal().ok_or(error)?);
                    return Ok(played);
                }
            }
        }
    }

    fn result(&mut self, played: &mut Played, sums: &mut Sums, is_binary: bool) -> Result<()> {
        match self.answer(WHAT)? {
            Answer::Ended(ending) => {
                self.note(ending);
                played.affected += ending.affected;
                played.warnings += u64::from(ending.warnings);
            }
            Answer::Columns(count) => {
                sums.result(is_binary);
                for _ in 0..count {
                    sums.column(self.packet(WHAT)?);
                }
                if self.has_eof() {
                    self.packet(WHAT)?;
                }
                self.rows_follow();
                while let Some(row) = self.row(WHAT)? {
                    sums.row(row);
                    played.rows += 1;
                    played.bytes += row.len() as u64;
                }
                played.warnings += u64::from(self.warnings());
            }
            Answer::WantsFile => {
                let done = self.send_file(&mut std::io::empty(), WHAT)?;
                played.affected += done.affected;
                played.warnings += u64::from(done.warnings);
            }
        }
        Ok(())
    }
}

/// What a message calls the statement: its text is not ours to show.
const WHAT: &str = "a replayed statement";
