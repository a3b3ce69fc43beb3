//! The client/server protocol of MySQL and MariaDB at the packet level.
//!
//! A [`Connection`] sends statements and hands out [`Row`]s that are slices of its one read buffer:
//! nothing is allocated for a row or a cell. Results are text; those of prepared statements are counted, not
//! decoded. A [`BinlogStream`] has the events of a binary log. TLS where the options ask for it.
//!
//! | file | what |
//! |---|---|
//! | `packet` | bytes ⇄ packets, those of 16 MiB and more joined |
//! | `decode` | integers, strings, OK, ERR, column definitions |
//! | `greeting`, `auth`, `login` | from a stream to a session |
//! | `stream`, `tls`, `compressed` | Unix socket, TCP, TLS, compression, with limits on how long they may be silent |
//! | `connection`, `rows`, `prepared` | statements and results |
//! | `bounded` | sessions with servers that may be anyone's |
//! | `standing` | such a session, asked without waiting |
//! | `play` | statements run for what they come to |
//! | `sums` | checksums of results, whatever protocol they came by |
//! | `binlog_stream` | a binary log, as replicas receive it |
//! | `refusal` | what an error number means |
//! | `watch` | a connection of others, seen from outside |
//! | `relay` | a connection of others, relayed |

mod auth;
mod binlog_stream;
mod bounded;
mod compressed;
mod connection;
mod decode;
mod greeting;
mod login;
mod packet;
mod play;
mod prepared;
mod refusal;
pub mod relay;
mod rows;
mod standing;
mod stream;
mod sums;
mod tls;
pub mod watch;

pub use binlog_stream::{BinlogRequest, BinlogStream, Received};
pub use bounded::BoundedSession;
pub use connection::{Connection, Done, SILENCE};
pub use decode::{Column, Malformed, SessionState};
pub use play::{Played, PlayedStatement};
pub use prepared::{Executed, Prepared, Value};
pub use refusal::Refusal;
pub use rows::{CellPart, Cells, Part, Pieces, Row, Rows, WHOLE};
pub use standing::{Heard, StandingSession};
pub use sums::Checksum;

/// What fuzzing and property tests feed bytes to.
#[doc(hidden)]
pub mod parse {
    pub use crate::decode::{Ending, ServerError};
    pub use crate::greeting::Greeting;
    pub use crate::packet::Packets;
}
