//! What can go wrong. A handler turns the kind into one of its server's codes.

use std::path::Path;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and what to do next. It is cloned to all whose writes went into one group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The disk is full. Nothing was written.
    #[error("the disk is full: nothing was written. Consume rows or free space, and try again")]
    Full,
    /// A call to the file system failed; nothing was written.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        cause: String,
    },
    /// A file does not hold what was once written to it.
    #[error(
        "{file}, offset {offset}: {what}. With the server stopped, `evenkeel queue salvage` keeps the rest"
    )]
    Corrupt {
        /// The file.
        file: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// It is not known what is on disk since a write failed. Reading goes on.
    #[error("the table takes no writes since this failed: {0}. Close and open it to recover")]
    Poisoned(String),
    /// The table is gone.
    #[error("the table was dropped")]
    Dropped,
    /// A row or a statement is larger than a frame may be.
    #[error("{bytes} bytes are more than the {most} that fit. Insert fewer or smaller rows")]
    TooLarge {
        /// What it would take.
        bytes: u64,
        /// What may be.
        most: u64,
    },
    /// The row is not this session's.
    #[error("row {0} is not owned by this session. Wait for a row first")]
    NotOwner(u64),
    /// A copy lacks a row.
    #[error("row {0} is not in the copy: nothing was changed. Try again when nothing inserts")]
    NotCopied(u64),
    /// Rows of a copy come in another order.
    #[error(
        "rows of a queue keep their order, and ALTER TABLE cannot change it: leave out ORDER BY"
    )]
    OutOfOrder(u64),
    /// A source's slot is not 0 to 63.
    #[error("there is no slot {0} for a source: they are 0 to 63")]
    NoSlot(u64),
    /// What was asked for is no file of ours, or of a version that is not known here.
    #[error("{file}: {what}")]
    Foreign {
        /// The file.
        file: String,
        /// Why not.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, cause: &std::io::Error) -> Self {
        // A quota that is used up is the same to the caller as a disk that is.
        let full = [
            std::io::ErrorKind::StorageFull,
            std::io::ErrorKind::QuotaExceeded,
        ];
        if full.contains(&cause.kind()) {
            return Self::Full;
        }
        Self::Io {
            what: what.into(),
            cause: cause.to_string(),
        }
    }

    pub(crate) fn corrupt(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            file: file.display().to_string(),
            offset,
            what: what.into(),
        }
    }
}

/// Says what was tried when a call failed.
pub(crate) trait During<T> {
    fn during(self, what: &str, path: &Path) -> Result<T>;
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, what: &str, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::io(format!("failed to {what} {}", path.display()), &cause))
    }
}
