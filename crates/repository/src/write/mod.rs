//! Writing a generation: workers fill packs, builders map files, a commit makes it real.

mod base;
mod begin;
mod builder;
mod commit;
mod effort;
mod growing;
mod leaf;
mod maps;
mod shared;
mod worker;

pub use base::{BaseFile, BaseInfo, RunKind};
pub use begin::{Begin, Writer};
pub use builder::FileBuilder;
pub use commit::CommitInfo;
pub use effort::Compression;
pub use growing::GrowingBuilder;
pub use leaf::{Change, Leaf};
pub(crate) use worker::PackWriter;
pub use worker::Worker;
