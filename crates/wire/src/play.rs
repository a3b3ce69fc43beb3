//! Statements that are run for the sake of what they come to: rows are counted and dropped.

use crate::connection::{Answer, COM_QUERY, Connection};
use crate::sums::{Checksum, Sums};
use evenkeel_op::Result;

const COM_INIT_DB: u8 = 2;
const COM_RESET_CONNECTION: u8 = 0x1f;

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

impl Connection {
    /// Runs a statement, whatever it is. What the server refuses is an outcome like any other. A server that asks for
    /// a local file gets an empty one.
    ///
    /// Errors: `Unreachable` when the connection is lost; `Interrupted`.
    pub fn play(&mut self, statement: &[u8]) -> Result<Played> {
        self.command(&[COM_QUERY], statement, WHAT)?;
        self.outcome()
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
        let mut played = Played::default();
        let mut sums = Sums::default();
        loop {
            match self.result(&mut played, &mut sums) {
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

    fn result(&mut self, played: &mut Played, sums: &mut Sums) -> Result<()> {
        match self.answer(WHAT)? {
            Answer::Ended(ending) => {
                self.note(ending);
                played.affected += ending.affected;
                played.warnings += u64::from(ending.warnings);
            }
            Answer::Columns(count) => {
                self.pass_over_definitions(count as usize, WHAT)?;
                self.rows_follow();
                sums.result(false);
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
