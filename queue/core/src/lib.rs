//! Message queues as tables: what lies below a storage engine, with no server in it.
//!
//! From the bottom up:
//!
//! * [`io`]: the few calls to the file system that are made, and in tests one that loses power.
//! * `log`: frames with checksums, in numbered segment files; rows and removals go into the same log.
//! * [`table`]: one queue. Its directory, recovery, group commit, which rows are live, who owns them,
//!   compaction.
//! * [`wait`]: tokens that are won once, and sessions that wait for the first of several tables.
//! * [`store`]: the tables of a server by their anchor files.
//! * [`place`]: where their rows are below a data directory, and how they come there.
//! * [`plain`]: files that are read where somebody else may have put anything.
//! * [`salvage`]: files of a server that does not run: checked, and what is whole of damaged ones.
//!
//! The format on disk is drawn in `docs/src/formats/queue.md`.

pub mod error;
pub mod io;
mod log;
pub mod place;
pub mod plain;
pub mod salvage;
pub mod store;
mod sync;
pub mod table;
pub mod wait;

pub use error::{Error, Result};
pub use store::{Anchor, Store};
pub use table::{Append, Condition, Copied, Options, Queue, Report, Source, Stats, Sync};
pub use wait::{Killer, Session, Waited, Wanted};
