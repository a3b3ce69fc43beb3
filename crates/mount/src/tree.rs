//! What is shown read-only.

use std::ffi::{OsStr, OsString};
use std::io;

/// A number of a directory, file or link; the same for as long as the tree is shown.
pub type NodeId = u64;

/// The top directory.
pub const ROOT: NodeId = 1;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: NodeKind,
    /// Length in bytes.
    pub size: u64,
    /// Bytes that it takes up.
    pub allocated: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Modification time, seconds and nanoseconds since 1970.
    pub mtime: (i64, u32),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// Whose.
    pub node: NodeId,
    /// What that is.
    pub kind: NodeKind,
}

/// A tree of files that never changes. Asked by many threads at once.
pub trait Tree: Send + Sync + 'static {
    /// Returns what is known of a node.
    fn attributes(&self, node: NodeId) -> io::Result<Attributes>;
    /// Finds a name in a directory; `None` when it is not there.
    fn find(&self, directory: NodeId, name: &OsStr) -> io::Result<Option<NodeId>>;
    /// Lists a directory, always in the same order.
    fn list(&self, directory: NodeId) -> io::Result<Vec<Entry>>;
    /// Returns where a link leads.
    fn target(&self, link: NodeId) -> io::Result<OsString>;
    /// Fills the buffer with a file's bytes from `offset`; returns how many there were, fewer only
    /// at the end of the file.
    fn read_at(&self, file: NodeId, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}
