//! Reading a generation: what is in it, and the content of its files, every block verified.

mod cache;
mod file;
mod reader;

pub(crate) use cache::FrameCache;
pub(crate) use file::read_entries;
pub use file::{BlockContent, FileReader};
pub use reader::Reader;
