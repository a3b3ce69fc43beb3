//! Copies a running server's files into a directory, on the same host or from another one; nothing is stored
//! in between, and of files that are there already only the blocks that differ cross.
//!
//! ```text
//! sender, beside the server                         receiver, beside the target
//! freeze ─► list ───────────────────────────────►   judge the list; take up or make the directory
//!           for each stretch of a file:
//!           have/FILE-STRETCH  ◄─────────────────   take the old file, hash what was taken
//!           read, check pages, hash, compare
//!           put/NUMBER: what differs ───────────►   hash, write; compare the stretch's hash
//! let go ─► end ────────────────────────────────►   all there? then relink, dress, show
//! ```
//!
//! The receiver is a [`Store`](evenkeel_repository::store::Store) of its own kind, so that a link to another
//! host carries all of it, with its resumption and its limits. It trusts the sender in nothing: a host that was
//! taken over may send any names, numbers and bytes.

mod list;
mod pack;
mod receive;
mod report;
mod send;

pub use receive::{CloneTarget, Receiver};
pub use report::CloneReport;
pub use send::send;
