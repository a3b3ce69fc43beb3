//! The small transactions of sysbench, on its tables: each can use what the other has loaded.
//!
//! | file | what |
//! |---|---|
//! | `numbers` | which rows are asked for: sysbench's distributions |
//! | `tables` | sysbench's layout, and what of it is there |
//! | `load` | rows, several connections at once, and on after an interruption |
//! | `session` | a connection with its statements, and the transactions |
//! | `measure`, `report`, `page` | a run, and what it came to |

mod load;
mod measure;
mod numbers;
mod page;
mod report;
mod session;
mod tables;

pub use load::{OltpLoadRequest, OltpLoaded, load};
pub use measure::{OltpRequest, measure};
pub use numbers::Distribution;
pub use page::{page, plot};
pub use report::{OltpReport, OltpSample};

use serde::Serialize;

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One row by its key, without a transaction around it.
    PointSelect,
    /// Ten rows by their keys, four ranges of a hundred rows.
    ReadOnly,
    /// `ReadOnly` and `WriteOnly` in one transaction.
    ReadWrite,
    /// Two rows changed, one deleted and written again.
    WriteOnly,
}

impl Mode {
    /// The name of sysbench's script.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PointSelect => "oltp_point_select",
            Self::ReadOnly => "oltp_read_only",
            Self::ReadWrite => "oltp_read_write",
            Self::WriteOnly => "oltp_write_only",
        }
    }

    fn reads(self) -> bool {
        self != Self::WriteOnly
    }

    fn writes(self) -> bool {
        matches!(self, Self::ReadWrite | Self::WriteOnly)
    }
}

/// Whose transactions they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Compat {
    /// Those of sysbench 1.0.
    #[serde(rename = "1.0")]
    Now,
    /// Those of sysbench 0.4: one more update of the row that is deleted. Its figures count 19 requests a
    /// transaction, without BEGIN and COMMIT.
    #[serde(rename = "0.4")]
    Old,
}

/// The tables that are worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// How many there are: `sbtest1` and so on.
    pub tables: u32,
    /// Rows of each.
    pub table_size: u32,
}
