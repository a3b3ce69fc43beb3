//! InnoDB page, tablespace and redo log formats of MySQL and MariaDB: bytes in, facts out.
//!
//! The crate reads given files and buffers and never talks to a server. Where a format is not
//! known it says so, with the reason; it does not guess.

pub mod checksum;
pub mod doublewrite;
pub mod kind;
pub mod names;
pub mod page;
pub mod redo;
pub mod space;

mod bytes;
mod header;

pub use checksum::{Verdict, Why, has_stray_bits, verify};
pub use header::PageHeader;
pub use kind::PageKind;
pub use page::{PageSize, PageType};
pub use space::{ChecksumKind, Probe, SpaceFormat};
