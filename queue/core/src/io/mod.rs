//! The calls to the file system and the clock that are made here, and nothing else is relied on.

mod disk;
#[cfg(any(test, feature = "simulate"))]
pub mod simulated;

pub use disk::Disk;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Directories and names. What was created, renamed or unlinked is only durable after
/// [`sync_dir`](Io::sync_dir) of the directory.
pub trait Io: Send + Sync + 'static {
    /// Makes a file that must not be there yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>>;
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;
    /// Gives a file another name, in the place of what has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a name.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory; its parent is there. It may be there already.
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// What time it is, in seconds since 1970. It may go back.
    fn unix_s(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| since.as_secs())
    }
}

/// An open file. Reads and writes name their place, so that threads share it.
pub trait File: Send + Sync + 'static {
    /// Reads exactly as many bytes as fit.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes. After an error any part of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts the file, or fills it up with zeros. What was reserved behind is given back.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether nothing is in it.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Makes what was written durable, with the length that is needed to read it.
    fn sync(&self) -> io::Result<()>;
    /// Reserves space up to `bytes` without changing the length. A file system that cannot says
    /// nothing.
    fn reserve(&self, bytes: u64) -> io::Result<()>;
    /// The file's bytes in memory, if it can be mapped: the file must not be cut from now on.
    fn map(&self) -> Option<Map>;
}

/// A file's bytes as memory.
pub type Map = Box<dyn Deref<Target = [u8]> + Send + Sync>;
