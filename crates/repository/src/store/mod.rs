//! Where a repository's objects live: a small trait, so that faults can be injected and other
//! places than a directory can follow.
//!
//! Objects are written once, from front to back, and become visible and durable together when
//! they are finished. Only `head` is ever replaced.

mod frames;
mod holder;
mod local;
mod location;
mod making;

pub use frames::FrameEncoder;
pub use local::{LocalStore, Step, Tap};
pub use location::Location;

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// What happens when an object of that name exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Finishing fails with [`io::ErrorKind::AlreadyExists`].
    Refuse,
    /// The new object takes its place atomically.
    Replace,
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Beside other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// One direct child of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name without its folder.
    pub name: String,
    /// Length in bytes; 0 for a folder.
    pub size: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// A frame that is not compressed yet.
#[derive(Debug, Clone, Copy)]
pub struct RawFrame<'a> {
    /// zstd level.
    pub level: i32,
    /// What checksums in its pack begin with.
    pub seed: u32,
    /// Its number in the pack.
    pub number: u32,
    /// Length of each block, in bytes.
    pub lengths: &'a [u32],
    /// The blocks, one after another.
    pub raw: &'a [u8],
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeFrame {
    /// Length of the whole frame, in bytes.
    pub length: u32,
    /// Its checksum.
    pub crc: u32,
}

/// An object being written. Dropped unfinished, it leaves nothing behind.
pub trait NewObject: Send {
    /// Appends all of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Appends a frame that the place where it is kept compresses; `None` when that is the
    /// caller's to do.
    fn write_frame(&mut self, frame: &RawFrame<'_>) -> io::Result<Option<MadeFrame>> {
        let _ = frame;
        Ok(None)
    }
    /// Makes the object durable, then visible under its name.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A finished object being read, from many threads at once.
pub trait StoredObject: Send + Sync {
    /// Returns its length in bytes.
    fn size(&self) -> u64;
    /// Fills `buffer` from `offset` or fails; a short object is [`io::ErrorKind::UnexpectedEof`].
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// Held until dropped.
pub trait Lock: Send + Sync + Debug {}

/// A place for objects. Names are relative, parts joined by `/`.
pub trait Store: Send + Sync + Debug {
    /// Begins a new object.
    fn create(&self, name: &str, existing: Existing) -> io::Result<Box<dyn NewObject>>;
    /// Opens a finished object.
    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>>;
    /// Opens many objects: together, where each alone would cost a round trip. In the order of the
    /// names, one result each.
    fn open_all(&self, names: &[String]) -> Vec<io::Result<Box<dyn StoredObject>>> {
        names.iter().map(|name| self.open(name)).collect()
    }
    /// Lists the direct children of a folder, unfinished objects included; a missing folder is
    /// [`io::ErrorKind::NotFound`].
    fn list(&self, folder: &str) -> io::Result<Vec<Listed>>;
    /// Lists many folders, as [`Store::open_all`] opens objects.
    fn list_all(&self, folders: &[String]) -> Vec<io::Result<Vec<Listed>>> {
        folders.iter().map(|folder| self.list(folder)).collect()
    }
    /// Removes an object; one that is not there is no error. Durable after [`Store::sync_folder`].
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes a folder; one that is there is no error.
    fn make_folder(&self, name: &str) -> io::Result<()>;
    /// Removes an empty folder; one that is not there is no error.
    fn remove_folder(&self, name: &str) -> io::Result<()>;
    /// Makes removals in a folder durable.
    fn sync_folder(&self, name: &str) -> io::Result<()>;
    /// Takes a lock, or returns `None` at once if someone holds it.
    fn try_lock(&self, name: &str, mode: LockMode) -> io::Result<Option<Box<dyn Lock>>>;
    /// Returns who holds a lock, in a few words, where that can be known.
    fn holder(&self, _name: &str) -> Option<String> {
        None
    }
    /// Returns where this is, for messages.
    fn place(&self) -> String;
    /// Returns the directory that this is, where it is one on this host.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

/// Ending of the name of an object that is not finished.
pub const UNFINISHED: &str = ".tmp";
