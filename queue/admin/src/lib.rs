//! Queue management: those of a server, and the files of one that does not run.
//!
//! | file | what |
//! |---|---|
//! | `name` | which table is meant |
//! | `live` | what a server's queues look like; the first rows; compaction |
//! | `forward` | rows moved to another server, each exactly once |
//! | `files` | checks files, and salvages what is whole of damaged ones |

mod files;
mod forward;
mod live;
mod name;

pub use files::{Damage, FilesReport, IdRange, Salvage, TableFiles, check, salvage};
pub use forward::{Forward, Forwarded, forward};
pub use live::{
    Compacted, Owner, Peeked, QueueNumbers, QueueState, StatusReport, compact, peek, status,
};
pub use name::QueueName;
