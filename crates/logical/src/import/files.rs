//! The files that are read: the one that was asked for, and those that it has run.

use super::source::{Input, unpacked};
use evenkeel_op::{Cancel, Error, Result};
use memchr::memmem;
use rustix::fs::{Mode, OFlags, fstat, open};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How deep files may name one another.
const DEPTH: usize = 16;
/// How much is looked through at a time, in bytes.
const LOOK: usize = 1 << 20;
/// What a file says that takes back what it did.
const TAKES_BACK: [&[u8]; 2] = [b"rollback", b"savepoint"];

/// A file that is being read.
#[derive(Debug)]
struct Open {
    /// `None` for what comes through a pipe.
    path: Option<PathBuf>,
    /// Its device and number there.
    identity: Option<(u64, u64)>,
    /// Whether it says that it takes something back; `None` before somebody asked.
    takes_back: Option<bool>,
}

/// The files that are being read, each named by the one before.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: Vec<Open>,
}

impl Files {
    /// Notes that a file is begun.
    pub(super) fn begin(&mut self, input: &Input) {
        let identity = input.path.as_ref().and_then(|path| {
            let facts = rustix::fs::stat(path).ok()?;
            Some((facts.st_dev, facts.st_ino))
        });
        self.open.push(Open {
            path: input.path.clone(),
            identity,
            takes_back: None,
        });
    }

    /// Notes that the last one begun has ended.
    pub(super) fn end(&mut self) {
        self.open.pop();
    }

    /// Returns how many files are being read.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Opens a file that the one at hand names. A relative path begins at the directory of that one.
    ///
    /// Errors: `Failed` for what cannot be opened or is no file, for one that is being read, and for too
    /// many within one another.
    pub(super) fn open(&self, named: &[u8]) -> Result<Input> {
        if self.open.len() >= DEPTH {
            return Err(Error::failed(format!(
                "files that run other files can be nested {DEPTH} deep, not deeper"
            )));
        }
        let above = self.open.last().and_then(|file| file.path.as_deref());
        let directory = above.and_then(Path::parent).unwrap_or(Path::new(""));
        let path = directory.join(OsStr::from_bytes(named));
        let shown = path.display().to_string();
        let failed = |error: std::io::Error| {
            Error::failed(format!(
                "failed to open the file {shown} that is named here"
            ))
            .because(error)
            .hint("a relative path begins at the directory of the file that names it")
        };
        let file = open_at_once(&path).map_err(failed)?;
        let facts = fstat(&file).map_err(|error| failed(error.into()))?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::failed(format!("{shown} is not a regular file")));
        }
        let identity = Some((facts.st_dev, facts.st_ino));
        if self.open.iter().any(|one| one.identity == identity) {
            return Err(Error::failed(format!(
                "{shown} runs itself, so the import would never end"
            )));
        }
        Ok(Input {
            name: shown,
            bytes: u64::try_from(facts.st_size).ok(),
            path: Some(path),
            from: Box::new(file),
        })
    }

    /// Returns whether the file at hand, or one that has it run, may take back what was done. What comes
    /// through a pipe may: it can be read only once.
    ///
    /// Errors: `Failed` where the file cannot be read; requests to stop.
    pub(super) fn may_take_back(&mut self, cancel: &Cancel) -> Result<bool> {
        for file in &mut self.open {
            let found = match (file.takes_back, &file.path) {
                (Some(known), _) => known,
                (None, Some(path)) => says_any(path, cancel)?,
                (None, None) => true,
            };
            file.takes_back = Some(found);
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Opens a file. A pipe without a writer would be waited for, forever.
fn open_at_once(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

/// Returns whether a file has one of the words anywhere, also within rows.
fn says_any(path: &Path, cancel: &Cancel) -> Result<bool> {
    let failed = |error: std::io::Error| {
        Error::failed(format!("failed to read {}", path.display())).because(error)
    };
    let file = open_at_once(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(true);
    }
    let Ok(mut from) = unpacked(Box::new(file)) else {
        return Ok(true);
    };
    let longest = TAKES_BACK.iter().map(|word| word.len()).max().unwrap_or(0);
    let mut text = Vec::new();
    loop {
        cancel.check()?;
        // A word may lie across two pieces.
        let kept = text.len().min(longest);
        text.drain(..text.len() - kept);
        let read = (&mut from).take(LOOK as u64).read_to_end(&mut text);
        text[kept..].make_ascii_lowercase();
        if TAKES_BACK
            .iter()
            .any(|word| memmem::find(&text, word).is_some())
        {
            return Ok(true);
        }
        // Whoever runs the file says what is wrong with it.
        if matches!(read, Ok(0) | Err(_)) {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(path: Option<&Path>) -> Input {
        Input {
            name: "x".to_owned(),
            bytes: None,
            path: path.map(Path::to_owned),
            from: Box::new(std::io::empty()),
        }
    }

    #[test]
    fn what_takes_back_is_found_wherever_it_lies() {
        let scratch = evenkeel_testkit::Scratch::new();
        let path = scratch.join("x.sql");
        let asks = || {
            let mut files = Files::default();
            files.begin(&input(Some(&path)));
            files.may_take_back(&Cancel::new()).unwrap()
        };
        for before in [0, LOOK - 4, LOOK, 2 * LOOK - 1] {
            let text = [vec![b'x'; before], b" rollBack ".to_vec()].concat();
            std::fs::write(&path, &text).unwrap();
            assert!(asks(), "{before}");
            std::fs::write(&path, zstd::encode_all(&text[..], 1).unwrap()).unwrap();
            assert!(asks(), "{before}");
        }
        std::fs::write(&path, vec![b'x'; 3 * LOOK]).unwrap();
        assert!(!asks());
        let mut pipe = Files::default();
        pipe.begin(&input(None));
        assert!(pipe.may_take_back(&Cancel::new()).unwrap());
    }

    #[test]
    fn only_files_are_opened_and_none_within_itself() {
        let scratch = evenkeel_testkit::Scratch::new();
        let (top, below) = (scratch.join("top.sql"), scratch.join("below.sql"));
        std::fs::write(&top, "x").unwrap();
        std::fs::write(&below, "x").unwrap();
        let pipe = scratch.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        let mut files = Files::default();
        files.begin(&input(Some(&top)));
        let found = files.open(b"below.sql").unwrap();
        assert_eq!(found.path.as_deref(), Some(&*below));
        for (named, said) in [
            ("top.sql", "itself"),
            ("pipe", "not a regular file"),
            (".", "not a regular file"),
            ("nowhere.sql", "failed to open"),
            ("/dev/null", "not a regular file"),
        ] {
            let error = files.open(named.as_bytes()).unwrap_err().chain();
            assert!(error.contains(said), "{named}: {error}");
        }
        for _ in 0..DEPTH {
            files.begin(&found);
        }
        assert!(files.open(b"top.sql").unwrap_err().chain().contains("deep"));
    }
}
