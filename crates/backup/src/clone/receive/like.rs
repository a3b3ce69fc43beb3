//! An old data directory, whose blocks are used where they are equal.
//!
//! Its files are first made part of the target, by a clone of their blocks where the file system can, else by a
//! copy, and then hashed there, where nobody but this user writes. So it does not matter whether the old files
//! change meanwhile: what is in the target is what was hashed.

use evenkeel_op::own_directory::{OwnDirectory, open_without_links, without_links_of_others};
use evenkeel_op::paths::absent;
use evenkeel_op::{Context, Error, Result, paths};
use evenkeel_server::files::refuse_running;
use rustix::fs::{OFlags, SeekFrom};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Bytes that are copied in one go.
const CHUNK: u64 = 1 << 20;

/// Such a directory.
#[derive(Debug)]
pub(super) struct Like {
    open: OwnDirectory,
    owner: u32,
}

impl Like {
    /// Opens it. Whoever uses it must not go on writing, so that it is worth something.
    pub(super) fn open(path: &Path, target: &Path) -> Result<Self> {
        // A link of ours or root's on the way is followed; none below it is, and none of others'.
        let path = without_links_of_others(&paths::absolute(path))?;
        refuse_running(&path)?;
        if paths::resolved(target).starts_with(&path) {
            let (target, path) = (target.display(), path.display());
            return Err(
                Error::usage(format!("the target {target} is within {path}"))
                    .hint("name a directory elsewhere on that file system"),
            );
        }
        let Some((open, stat)) = OwnDirectory::find(&path)? else {
            return Err(absent("directory", &path).hint("leave out --like, and everything is sent"));
        };
        Ok(Self {
            open,
            owner: stat.st_uid,
        })
    }

    /// Whether there is such a file; one that a link leads to, or of another owner than the directory, is none.
    pub(super) fn has(&self, relative: &Path) -> bool {
        self.file(relative).is_some()
    }

    fn file(&self, relative: &Path) -> Option<File> {
        // A pipe would let us wait for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let file = open_without_links(&self.open.anchor().join(relative), flags).ok()?;
        let file = File::from(file);
        let found = file.metadata().ok()?;
        (found.is_file() && found.uid() == self.owner).then_some(file)
    }

    /// Gives a new file the content of the old one, as far as it goes and no longer than `size`.
    pub(super) fn give(&self, relative: &Path, to: &File, size: u64) -> Result<()> {
        // One that is gone by now is sent.
        let Some(from) = self.file(relative) else {
            return Ok(());
        };
        if rustix::fs::ioctl_ficlone(to, &from).is_ok() {
            return Ok(());
        }
        copy(&from, to, size).context(|| format!("failed to copy {}", relative.display()))
    }
}

/// Copies what is no hole.
fn copy(from: &File, to: &File, size: u64) -> Result<()> {
    let size = size.min(from.metadata().context(|| "failed to look at it")?.len());
    let mut buffer = vec![0; CHUNK as usize];
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error).context(|| "failed to find the next data"),
        };
        let end = rustix::fs::seek(from, SeekFrom::Hole(start)).unwrap_or(size);
        let end = end.min(size).min(start.saturating_add(CHUNK));
        if start >= end {
            return Ok(());
        }
        let part = &mut buffer[..(end - start) as usize];
        let read = from.read_at(part, start).context(|| "failed to read")?;
        if read == 0 {
            return Ok(());
        }
        to.write_all_at(&part[..read], start)
            .context(|| "failed to write")?;
        at = start + read as u64;
    }
    Ok(())
}
