//! A repository's objects at the other end of a link: a program on the other host reads and writes
//! them as if they were at hand.

mod calls;
mod client;
mod guard;
mod head;
mod kept;
mod object;
mod server;

pub(crate) use calls::Calls;
pub use client::LinkStore;
pub use guard::Access;
pub(crate) use server::StoreServer;

use evenkeel_op::{Error, ErrorKind};
use kept::PIECE;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;

/// What is asked. Objects and locks are named by numbers that the asking side gives them.
#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    /// Begin an object. Not replied to: what fails is said by `Finish`.
    Create {
        object: u64,
        name: String,
        replace: bool,
    },
    /// Append the body. Not replied to: what fails is said by `Finish`.
    Write { object: u64 },
    /// Compress the body, a frame of a pack, and append it. The reply's number is the frame's length
    /// and, in the upper half, its checksum.
    Frame {
        object: u64,
        level: i32,
        seed: u32,
        number: u32,
        lengths: Vec<u32>,
    },
    /// Make it durable and visible.
    Finish { object: u64 },
    /// Forget an object, finished or not. Not replied to.
    Drop { object: u64 },
    /// Open an object; the reply's number is its size, its body what [`ends`] names: a small object is
    /// read with one question.
    Open { object: u64, name: String },
    /// Read; the reply's body is what was read.
    Read {
        object: u64,
        offset: u64,
        length: u32,
    },
    /// List a folder; the reply's body is JSON.
    List { folder: String },
    /// Remove an object.
    Remove { name: String },
    /// Make a folder.
    MakeFolder { name: String },
    /// Remove an empty folder.
    RemoveFolder { name: String },
    /// Make removals durable.
    SyncFolder { name: String },
    /// Take a lock; the reply's number is 1 when it was taken.
    Lock {
        object: u64,
        name: String,
        exclusive: bool,
    },
    /// Give a lock back. Not replied to.
    Unlock { object: u64 },
}

impl Ask {
    /// What it is about: asks about one object stay in order, and so do those about locks, because
    /// who gives one back takes the next without waiting.
    fn object(&self) -> Option<u64> {
        match self {
            Self::Lock { .. } | Self::Unlock { .. } => Some(0),
            Self::Create { object, .. }
            | Self::Write { object }
            | Self::Frame { object, .. }
            | Self::Finish { object }
            | Self::Drop { object }
            | Self::Open { object, .. }
            | Self::Read { object, .. } => Some(*object),
            _ => None,
        }
    }

    fn wants_reply(&self) -> bool {
        !matches!(
            self,
            Self::Create { .. } | Self::Write { .. } | Self::Drop { .. } | Self::Unlock { .. }
        )
    }
}

/// The parts of an object of this length that are read when it is opened: where its header is, and
/// where those that have one keep their index.
fn ends(size: u64) -> [Range<u64>; 2] {
    let front = 0..size.min(PIECE);
    let last = size.saturating_sub(1) / PIECE;
    let back = last.saturating_sub(1) * PIECE;
    [front.clone(), back.max(front.end)..size]
}

/// An ask with the number of the call.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    call: u64,
    ask: Ask,
}

/// The reply to a call.
#[derive(Debug, Serialize, Deserialize)]
struct Replied {
    call: u64,
    result: Result<u64, Fault>,
}

/// An I/O error as it crosses the link.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fault {
    kind: String,
    text: String,
    /// What the store says itself, if it does.
    carried: Option<Carried>,
}

/// An error of ours inside of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Carried {
    kind: String,
    hints: Vec<String>,
}

/// The kinds that a repository tells apart, and those that people do.
const KINDS: [(io::ErrorKind, &str); 7] = [
    (io::ErrorKind::NotFound, "not-found"),
    (io::ErrorKind::AlreadyExists, "exists"),
    (io::ErrorKind::PermissionDenied, "denied"),
    (io::ErrorKind::StorageFull, "full"),
    (io::ErrorKind::UnexpectedEof, "short"),
    (io::ErrorKind::ReadOnlyFilesystem, "read-only"),
    (io::ErrorKind::DirectoryNotEmpty, "not-empty"),
];

impl Fault {
    fn of(error: &io::Error) -> Self {
        let kind = KINDS.iter().find(|(kind, _)| *kind == error.kind());
        let ours = Error::carried_by(error);
        Self {
            kind: kind.map_or("other", |(_, name)| name).to_owned(),
            text: ours.map_or_else(|| error.to_string(), Error::chain),
            carried: ours.map(|ours| Carried {
                kind: ours.kind().name().to_owned(),
                hints: ours.hints().into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    fn error(self) -> io::Error {
        let kind = KINDS.iter().find(|(_, name)| *name == self.kind);
        let kind = kind.map_or(io::ErrorKind::Other, |(kind, _)| *kind);
        let Some(carried) = self.carried else {
            return io::Error::new(kind, self.text);
        };
        let ours = ErrorKind::named(&carried.kind).unwrap_or(ErrorKind::Failed);
        let error = Error::new(ours, self.text);
        let hints = carried.hints.into_iter();
        io::Error::new(kind, hints.fold(error, Error::hint))
    }
}

#[cfg(test)]
mod tests;
