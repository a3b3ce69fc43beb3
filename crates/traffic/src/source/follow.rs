//! A log that a server is writing: read as it grows, also after it was rotated.

use super::InputKind;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Cancel, Error, Result};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long to wait before looking for more.
const LOOK: Duration = Duration::from_millis(100);
/// So many bytes are compared to see that a file is still the one that was read.
const BEFORE: usize = 64;

/// What runs while there is nothing more to read; it says whether to go on.
pub type Idle = Box<dyn FnMut() -> bool + Send>;

/// A log that grows. It ends when `cancel` is set, when the time is up, or when `idle` says so.
pub struct Following {
    path: PathBuf,
    file: File,
    kind: Option<InputKind>,
    /// The last bytes that were read.
    before: Vec<u8>,
    cuts: Arc<AtomicU64>,
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
        if super::input::is_compressed(&first[..length]) {
            let text = format!("{} is compressed: no server appends to it", path.display());
            return Err(Error::usage(text)
                .hint("leave --follow out, or follow the log that the server writes"));
        }
        let kind = InputKind::of_entries(&first[..length]);
        // Without an entry, what kind of log it is shows with the first.
        if kind.is_some() {
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            kind,
            before: Vec::new(),
            cuts: Arc::default(),
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
        if is_same || !new.is_file() || new.len() == 0 {
            return Ok(None);
        }
        // Who may write to the directory may put a link to a file in it that only we can read.
        let Ok(named) = self.path.symlink_metadata() else {
            return Ok(None);
        };
        let friends = [0, old.uid(), geteuid().as_raw()];
        if named.is_symlink() && !friends.contains(&named.uid()) {
            return Err(io::Error::other(
                "what is in the log's place is a link that another user made",
            ));
        }
        // It was replaced just now: the next look tells.
        if !named.is_symlink() && (named.dev(), named.ino()) != (new.dev(), new.ino()) {
            return Ok(None);
        }
        // Who may write the log may put a link in its place.
        if new.uid() != old.uid() {
            return Err(io::Error::other(
                "the file in the log's place belongs to another user",
            ));
        }
        Ok(Some(file))
    }

    /// Returns how often the file was cut to nothing, as is done after a copy of it: what was written just before may
    /// not have been read.
    #[must_use]
    pub fn cuts(&self) -> Arc<AtomicU64> {
        self.cuts.clone()
    }

    /// Returns whether what was read last is no longer there.
    fn is_cut(&mut self) -> io::Result<bool> {
        let at = self.file.stream_position()?;
        if self.file.metadata()?.len() < at {
            return Ok(true);
        }
        let mut found = [0; BEFORE];
        let found = &mut found[..self.before.len()];
        let from = at.saturating_sub(found.len() as u64);
        Ok(self.file.read_at(found, from)? != self.before.len() || *found != self.before[..])
    }

    /// Reads, and remembers the end of it.
    fn read_on(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.before
            .extend_from_slice(&buffer[length.saturating_sub(BEFORE)..length]);
        let old = self.before.len().saturating_sub(BEFORE);
        self.before.drain(..old);
        Ok(length)
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
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(0);
            }
            if self.is_cut()? {
                self.file.seek(SeekFrom::Start(0))?;
                let is_line_open = self.before.last().is_some_and(|byte| *byte != b'\n');
                self.before.clear();
                self.cuts.fetch_add(1, Ordering::Relaxed);
                if !is_line_open {
                    continue;
                }
                // What was read of a line ends here.
                buffer[0] = b'\n';
                return Ok(1);
            }
            let length = self.read_on(buffer)?;
            if length > 0 {
                return Ok(length);
            }
            if let Some(successor) = self.successor()? {
                // Whatever the server wrote to the old file, it wrote before it began the new one.
                let length = self.read_on(buffer)?;
                if length == 0 {
                    self.file = successor;
                    self.before.clear();
                    continue;
                }
                return Ok(length);
            }
            if self.is_over() || !(self.idle)() {
                return Ok(0);
            }
            std::thread::sleep(LOOK);
        }
    }
}
