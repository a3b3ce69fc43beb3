//! A statement as it was seen, whatever it was seen by.

use evenkeel_op::{Cancel, Result};
use evenkeel_wire::Checksum;
use std::time::Duration;

/// What a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// A statement as text.
    Query,
    /// A statement is prepared; it runs later.
    Prepare,
    /// A prepared statement runs; its text has the values in place of `?` where they are known.
    Execute,
    /// A session begins; `sql` is empty.
    Connect,
    /// A session ends; `sql` is empty.
    Quit,
    /// Anything else, by its number in the protocol.
    Other(u8),
}

/// A statement as it was seen. What a source does not know is `None`.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    /// When the request was complete, in nanoseconds since 1970, by the clock of who saw it.
    pub at_ns: i64,
    /// The same for all statements of one connection within a source.
    pub connection: u64,
    /// The server's number of the connection.
    pub session: Option<u32>,
    /// The account's name.
    pub user: Option<&'a str>,
    /// Where the client is.
    pub host: Option<&'a str>,
    /// The default schema.
    pub schema: Option<&'a str>,
    /// What was asked for.
    pub command: Command,
    /// The text, in the connection's character set; may be cut, see `sql_bytes`.
    pub sql: &'a [u8],
    /// How many bytes the whole text has.
    pub sql_bytes: u64,
    /// The text, or a value in it, was not seen: it is not the statement that ran.
    pub is_unseen: bool,
    /// From the complete request to the first byte of the answer, in nanoseconds.
    pub first_ns: Option<u64>,
    /// From the complete request to the last byte of the answer, in nanoseconds.
    pub total_ns: Option<u64>,
    /// Time spent waiting for locks, in nanoseconds.
    pub lock_ns: Option<u64>,
    /// Rows in the answer.
    pub rows_sent: Option<u64>,
    /// Rows the server read for it.
    pub rows_examined: Option<u64>,
    /// Rows changed.
    pub rows_affected: Option<u64>,
    /// Bytes of the request on the wire.
    pub bytes_in: Option<u64>,
    /// Bytes of the answer on the wire.
    pub bytes_out: Option<u64>,
    /// Warnings that the server counted.
    pub warnings: Option<u64>,
    /// The server's error number, when it failed.
    pub error: Option<u16>,
    /// Of all rows in the answer.
    pub checksum: Option<Checksum>,
    /// The connection's number of the prepared statement that it is about.
    pub statement: Option<u32>,
    /// The values that a prepared statement ran with, in binary.
    pub values: Option<&'a [u8]>,
}

impl Statement<'_> {
    /// Whether a client waits for an answer to it.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        matches!(
            self.command,
            Command::Query | Command::Prepare | Command::Execute
        )
    }

    /// Whether the text was cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        (self.sql.len() as u64) < self.sql_bytes
    }
}

/// What a source hands out that is watched as statements come.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A statement.
    Statement(&'a Statement<'a>),
    /// Nothing more at this moment: what was held back can be shown.
    Pause,
    /// The server that was asked has not answered for so long.
    Silent(Duration),
}

/// How much of what went by a source could see. All zero where a source cannot miss anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Statements handed out.
    pub statements: u64,
    /// Statements known to have been there whose text was not seen.
    pub unseen: u64,
    /// Packets read.
    pub packets: u64,
    /// Packets that the kernel could not keep.
    pub packets_dropped: u64,
    /// Statements that the kernel had no room for.
    pub commands_lost: u64,
    /// What else the kernel had no room for: ends of statements, parts of texts.
    pub events_lost: u64,
    /// Bytes of streams that never came.
    pub bytes_missing: u64,
    /// Connections whose text was hidden by TLS.
    pub connections_encrypted: u64,
    /// Entries or packets that could not be decoded.
    pub undecodable: u64,
}

/// Where statements come from.
pub trait Source {
    /// Hands each statement to `each`, in the order in which they were seen, until there are no more, `cancel` is set or
    /// `each` fails.
    ///
    /// # Errors
    ///
    /// When the source cannot be read, and what `each` fails with.
    fn read(
        &mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage>;
}
