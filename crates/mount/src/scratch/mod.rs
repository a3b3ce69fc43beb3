//! A directory that is shown in place of files that are not all there yet.
//!
//! ```text
//! DIR/.evenkeel-mount/
//!   lock      held by the process that shows it
//!   marker    whose it is, and how far it got
//!   files/    sparse files, directories, links: every name and attribute is real
//!   maps      one byte per 64 KiB of each file that is not whole: 0 fetch it, 1 it is there
//! ```
//!
//! A file that is not whole says in the extended attribute `user.evenkeel.missing` where its map
//! begins, which file of the origin it stands for, and how long that is. The data is written before
//! its byte: a process that is killed loses nothing. A host that goes down does, because neither is
//! synced: such a directory is not shown again.

mod claim;
mod content;
mod filesystem;
mod fill;
mod map;
mod nodes;
mod overlay;

pub use claim::{Claim, Owner, Scratch};
pub(crate) use filesystem::Writable;
pub use overlay::Overlay;

use std::io;

/// What is fetched at once, in bytes: four pages of InnoDB.
const GRANULE: u64 = 64 << 10;

/// Where the content comes from that a scratch does not have yet.
pub trait Origin: Send + Sync + 'static {
    /// Fills the whole buffer with a file's bytes from `offset`.
    fn read_at(&self, file: u64, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}
