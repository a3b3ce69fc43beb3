//! Queue management: how queues get into a server, those of a server, and the files of one that does not run.
//!
//! | file | what |
//! |---|---|
//! | `name` | which table is meant |
//! | `live` | what a server's queues look like; the first rows; compaction |
//! | `forward` | rows moved to another server, each exactly once |
//! | `engine` | the queue engine put into a server, changed, taken out |
//! | `procedures` | the same for the queue's verbs as SQL over InnoDB |
//! | `problems` | what is wrong with the files of all queues, for who proves a backup |
//! | `files` | checks files, and salvages what is whole of damaged ones |

pub mod engine;
mod files;
mod forward;
mod live;
mod name;
mod problems;
pub mod procedures;

pub use files::{Damage, FilesReport, IdRange, Salvage, TableFiles, check, salvage};
pub use forward::{Forward, Forwarded, forward};
pub use live::{
    Compacted, Owner, Peeked, QueueNumbers, QueueState, StatusReport, compact, peek, status,
};
pub use name::QueueName;
pub use problems::problems;
