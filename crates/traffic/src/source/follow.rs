//! A log that a server is writing: read as it grows, also after it was rotated.

use super::InputKind;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Cancel, Error, Result};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait before looking for more.
const LOOK: Duration = Duration::from_millis(100);

/// What runs while there is nothing more to read; it says whether to go on.
pub type Idle = Box<dyn FnMut() -> bool + Send>;

/// A log that grows. It ends when `cancel` is set, when the time is up, or when `idle` says so.
pub struct Following {
    path: PathBuf,
    file: File,
    kind: Option<InputKind>,
    until: Option<Instant>,
    cancel: Cancel,
    idle: Idle,
}

impl Following {
    /// Begins at the end of what is there, and reads for `span`.
    ///
    /// # Errors
    ///
    /// `Usage` when nothing is there, or what is no file; `Failed` when it cannot be read.
    pub fn open(path: &Path, span: Option<Duration>, cancel: &Cancel, idle: Idle) -> Result<Self> {
        let failed = |error| unreadable("log file", path, error);
        let mut file = open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if facts.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if !facts.is_file() {
            let text = format!("{} is no file that a server appends to", path.display());
            return Err(Error::usage(text).hint("leave --follow out: a pipe is read until it ends"));
        }
        let mut first = vec![0; super::input::LOOK];
        let length = file.read_at(&mut first, 0).map_err(failed)?;
        let kind = InputKind::of_entries(&first[..length]);
        // Without an entry, what kind of log it is shows with the first.
        if kind.is_some() {
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            kind,
            until: span.map(|span| Instant::now() + span),
            cancel: cancel.clone(),
            idle,
        })
    }

    /// Returns what kind of log it is, from the entries that were there.
    #[must_use]
    pub fn kind(&self) -> Option<InputKind> {
        self.kind
    }

    /// Returns the file that has taken this one's place, once the server writes to it: until then it may still write to
    /// the old one.
    fn successor(&self) -> io::Result<Option<File>> {
        let file = match open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (new, old) = (file.metadata()?, self.file.metadata()?);
        let is_same = (new.dev(), new.ino()) == (old.dev(), old.ino());
        Ok((!is_same && new.is_file() && new.len() > 0).then_some(file))
    }

    /// Begins again where the file was cut to nothing, as copies of it are made.
    fn rewind_if_cut(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < self.file.stream_position()? {
            self.file.seek(SeekFrom::Start(0))?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Opens a file, and never waits for who writes to a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.file.read(buffer)?;
            if length > 0 {
                return Ok(length);
            }
            if let Some(successor) = self.successor()? {
                // Whatever the server wrote to the old file, it wrote before it began the new one.
                let length = self.file.read(buffer)?;
                if length == 0 {
                    self.file = successor;
                    continue;
                }
                return Ok(length);
            }
            self.rewind_if_cut()?;
            if self.is_over() || !(self.idle)() {
                return Ok(0);
            }
            std::thread::sleep(LOOK);
        }
    }
}
