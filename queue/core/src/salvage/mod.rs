//! Files of a server that does not run: whether they are whole, and what is whole of damaged ones.
//!
//! Nothing is written into the files that are read. A row is kept when its frame is whole, or when the
//! frame's head and the row's own checksum are; what a whole frame removed stays removed. A removal that
//! is lost cannot be known: that row is there again, and is delivered again.
//!
//! | file | what |
//! |---|---|
//! | `scan` | reads the files, and finds whole rows behind damage |
//! | `missing` | row ids of which nothing is there |
//! | `write` | writes what is whole into new files |

mod missing;
mod scan;
mod write;

use crate::error::{During, Error, Result};
use crate::io::{Disk, Io};
use crate::plain::{self, Directory};
use crate::store::{Anchor, put};
use scan::Scan;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was found in a table's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The directory of its rows.
    pub directory: PathBuf,
    /// Files of rows that are there.
    pub files: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Rows that are whole and were not removed.
    pub rows: u64,
    /// Those of them that stand in frames which are not whole.
    pub rows_out_of_broken_frames: u64,
    /// Bytes at the end that a crash left: the server cuts them off when it starts.
    pub torn_bytes: u64,
    /// What broke otherwise, in the order of the files.
    pub damage: Vec<Damage>,
    /// At most so many rows are missing, as far as ids or frames tell. Some may have been removed.
    pub rows_missing: u64,
    /// Their ids, as far as they are known: (first, how many).
    pub missing: Vec<(u64, u64)>,
    /// Removals may be among what is damaged: rows that were consumed may be there again.
    pub may_repeat: bool,
}

/// A piece of a file that does not hold what was written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// How many bytes cannot be read for what they were; 0 where that is not known.
    pub bytes: u64,
    /// What is wrong.
    pub what: String,
}

impl Checked {
    /// Whether a server would open the table.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Reads the files of the table at `anchor`, whose rows are below `root`. No server may be using them.
///
/// # Errors
///
/// [`Error::Foreign`] where the anchor is none, or the directory of its rows cannot be listed.
pub fn check(anchor: &Path, root: &Path) -> Result<Checked> {
    let (_, scan) = read(anchor, root)?;
    Ok(scan.checked)
}

/// Writes what is whole of a table into new files: the table of the same id, with the same row ids.
/// `into` is its new anchor, `into_root` is where the directory of its rows is made.
///
/// # Errors
///
/// As with [`check`]; and new files that are there already or cannot be written.
pub fn salvage(anchor: &Path, root: &Path, into: &Path, into_root: &Path) -> Result<Checked> {
    let (known, scan) = read(anchor, root)?;
    let io: Arc<dyn Io> = Arc::new(Disk);
    if into.exists() {
        return Err(Error::Foreign {
            file: into.display().to_string(),
            what: "there is a table already: salvage into a new directory".into(),
        });
    }
    io.make_dir(into_root).during("make", into_root)?;
    write::rows(&*io, &scan, known.id, &directory(into_root, known.id))?;
    io.sync_dir(into_root).during("sync", into_root)?;
    put(&*io, into, &known)?;
    Ok(scan.checked)
}

fn read(anchor: &Path, root: &Path) -> Result<(Anchor, Scan)> {
    let bytes = plain::read(anchor).during("read", anchor)?;
    let known = Anchor::decode(&bytes).map_err(|what| Error::Foreign {
        file: anchor.display().to_string(),
        what: what.into(),
    })?;
    let directory = directory(root, known.id);
    let directory = Directory::open(&directory).during("list", &directory)?;
    let scan = Scan::of(directory, known.id)?;
    Ok((known, scan))
}

fn directory(root: &Path, id: u128) -> PathBuf {
    root.join(format!("{id:032x}"))
}
