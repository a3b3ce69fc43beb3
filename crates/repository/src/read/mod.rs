//! Reading a generation: what is in it, and the content of its files, every block verified.

mod cache;
mod file;
mod reader;

pub(crate) use cache::FrameCache;
pub use file::{BlockContent, FileReader};
pub(crate) use file::{LeafCache, read_entries};
pub use reader::Reader;
