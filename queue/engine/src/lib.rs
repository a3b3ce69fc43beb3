//! Queues for a server's storage engine: what a handler in C++ calls, and nothing of any server.
//!
//! | file | what |
//! |---|---|
//! | `tables` | the tables of a server that are open, by path; `names`: they get other ones, and copies take the place of tables; `statement`: names that a server's dictionary has, or will not have; `totals`: sums |
//! | `head` | what an anchor says before its columns |
//! | `columns` | what a stored row holds, for conditions |
//! | `connection` | what one connection owns and waits for |
//! | `cursor` | what one statement does to one table: rows gathered, a scan, removals |
//! | `owners` | which connection of the server it is that owns as whom |
//! | `fault` | what went wrong, as a number and a text |
//! | `calls` | all of it as C functions, guarded against panics; `engine.h` declares them |
//! | `keeper` | the thread that compacts, and makes durable what may wait |

mod calls;
mod columns;
mod connection;
mod cursor;
mod fault;
mod head;
mod keeper;
mod owners;
mod tables;

pub use columns::Columns;
pub use connection::{Asked, Connection, Ended};
pub use cursor::Cursor;
pub use fault::{Code, Fault};
pub use tables::Tables;
