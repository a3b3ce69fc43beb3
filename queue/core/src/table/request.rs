//! What threads ask a table to write, and what they are answered.

use crate::error::Result;
use crate::log::rows::TableState;

/// A row of a table that is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Its id.
    pub id: u64,
    /// When it came, as [`Queue::came`](super::Table::came) says.
    pub came: u64,
    /// The row.
    pub bytes: Vec<u8>,
}

/// The last id that a source sent, and where it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Which of the 64 sources, from 0.
    pub slot: u8,
    /// The source's id of these rows.
    pub id: u64,
    /// Whether the id is taken even if it is not larger than the last one.
    pub is_reset: bool,
}

/// What a thread wants to have written.
#[derive(Debug)]
pub(crate) enum Request {
    Append {
        rows: Vec<Vec<u8>>,
        bytes: u64,
        source: Option<Source>,
    },
    Remove(Vec<u64>),
    /// Rows of a table that this one is copied from, with their ids.
    Adopt {
        rows: Vec<Copied>,
        bytes: u64,
    },
    /// What is known of that table besides its rows.
    Inherit(Box<TableState>),
    /// Removes all rows, owned ones too.
    Truncate,
    /// Makes everything durable; and says in the log that it is.
    Close(bool),
}

/// The id of the first row that was appended.
pub(crate) type Answer = Result<Option<u64>>;
