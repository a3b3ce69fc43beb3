//! Shows files that lie elsewhere as a filesystem, by FUSE.
//!
//! ```text
//!              kernel ◄─── page cache ───► whoever reads
//!                │ /dev/fuse, several threads
//!     ┌──────────┴───────────┐
//!  browse                 scratch        names, metadata: real files in a directory of ours
//!     │                      │            content: what was read or written, in those files;
//!     ▼                      ▼                     the rest is fetched from
//!   Tree                   Origin
//! ```
//!
//! A [`Tree`] is shown read-only: its content never changes, so the kernel may keep all of it. A
//! [`Scratch`] is a directory whose sparse files stand for files of an [`Origin`]: a map says which
//! parts of each are missing. They are fetched when they are read, or by [`Overlay::fill`].
//! [`Mounted::delayed`] shows a plain directory in the same way, as if it lay on a slow disk.

mod attributes;
mod browse;
mod delayed;
mod listings;
mod scratch;
mod session;
mod tree;

pub use delayed::{Delay, Delayed, Reads};
pub use scratch::{Claim, Origin, Overlay, Owner, Scratch};
pub use session::{Mounted, heal};
pub use tree::{Attributes, Entry, NodeId, NodeKind, ROOT, Tree};

/// Threads that answer the kernel: reads of different frames are decompressed side by side.
const THREADS: usize = 4;
