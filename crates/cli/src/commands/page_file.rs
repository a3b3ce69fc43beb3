//! A page that a command writes: it appears whole, and never in place of what the command reads.

use evenkeel_op::{Context, Error, Result};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A page before it is in its place. Only its owner may read it: it shows what clients sent.
pub(super) struct PageFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl PageFile {
    /// Makes room for a page. `read` are the files that the command reads.
    ///
    /// Errors: `Usage` where it cannot be written, is one of those, or is not a regular file.
    pub(super) fn begin<'a>(path: &Path, read: impl Iterator<Item = &'a PathBuf>) -> Result<Self> {
        let refused = |why: &str| Err(Error::usage(format!("{} {why}", path.display())));
        if path == Path::new("-") {
            return Err(Error::usage("--html writes a file").hint("name one: --html page.html"));
        }
        if let Ok(there) = std::fs::metadata(path) {
            let same = |one: &PathBuf| {
                let one = match one == Path::new("-") {
                    true => Path::new("/dev/stdin"),
                    false => one,
                };
                std::fs::metadata(one)
                    .is_ok_and(|one| (one.dev(), one.ino()) == (there.dev(), there.ino()))
            };
            if { read }.any(same) {
                return refused("is read, so the page cannot be written there");
            }
            if !there.is_file() {
                return refused("is not a file that can be replaced");
            }
        }
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let file = NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).map_err(|error| {
            Error::usage(format!("failed to create {}", path.display()))
                .because(error)
                .hint("name a file in a directory that exists and may be written")
        })?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Writes it, and puts it where it belongs.
    pub(super) fn write(mut self, html: &str) -> Result<()> {
        let failed = || format!("failed to write {}", self.path.display());
        self.file.write_all(html.as_bytes()).context(failed)?;
        self.file
            .persist(&self.path)
            .map_err(|error| error.error)
            .context(failed)?;
        Ok(())
    }
}
