//! A directory of captures, or one of its files, as a source of statements.

use super::facts::{CaptureEnd, FileFacts, FilePart};
use super::file::KeptFile;
use super::{ENCRYPTED_ENDING, ENDING, MARK};
use crate::{Coverage, Source, SourceKind, Statement};
use evenkeel_op::{Cancel, Context, Error, Result};
use evenkeel_repository::store::{Store, StoredObject};
use evenkeel_repository::{Credentials, decrypted, is_begun_by_age};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Where the number of a connection ends, and that of the capture begins in which it was.
const CONNECTION_BITS: u32 = 48;

/// What a directory lacks of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// So many files, of a capture of this name.
    Files(String, u64),
    /// Its end: the capture was killed.
    End(String),
    /// All of it: not one file is complete.
    All,
}

/// Where files are.
enum Files {
    /// In a directory, by these names.
    Directory(Arc<dyn Store>, Vec<String>),
    /// One, of this name.
    One(String, File),
}

/// Captures, as they are kept.
pub struct KeptCapture {
    files: Files,
    credentials: Credentials,
    is_redacted: bool,
    source: SourceKind,
    /// Captures that something else saw are refused.
    wants_one_source: bool,
    part: Option<FilePart>,
    /// How all captures ended.
    end: CaptureEnd,
    missing: Vec<Missing>,
    filtered: u64,
}

impl KeptCapture {
    /// Opens a directory with captures.
    ///
    /// # Errors
    ///
    /// `Usage` where there is none; `WrongKey` where it is encrypted and `credentials` do not open it; `Failed` where it
    /// cannot be read.
    pub fn directory(store: Arc<dyn Store>, credentials: Credentials) -> Result<Self> {
        let shown = store.place();
        let found = match store.list("") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            found => found.context(|| format!("failed to read {shown}"))?,
        };
        let mut names: Vec<String> = found.into_iter().map(|one| one.name).collect();
        if !names.iter().any(|name| name == MARK) {
            return Err(Error::usage(format!("{shown} holds no capture"))
                .hint("give it a directory that 'evenkeel capture --directory' wrote"));
        }
        names.retain(|name| name.ends_with(ENDING) || name.ends_with(ENCRYPTED_ENDING));
        // Their names begin with when a capture began, and end with the file's number.
        names.sort();
        Self::new(Files::Directory(store, names), credentials)
    }

    /// Opens one file of a capture. `name` stands in messages.
    ///
    /// # Errors
    ///
    /// As [`KeptCapture::directory`].
    pub fn file(file: File, name: &str, credentials: Credentials) -> Result<Self> {
        Self::new(Files::One(name.to_owned(), file), credentials)
    }

    fn new(files: Files, credentials: Credentials) -> Result<Self> {
        let mut kept = Self {
            files,
            credentials,
            is_redacted: false,
            source: SourceKind::default(),
            wants_one_source: false,
            part: None,
            end: CaptureEnd::default(),
            missing: Vec::new(),
            filtered: 0,
        };
        // What cannot be opened is said before an hour of reading, and so is whether values are there.
        if kept.count() > 0 {
            let facts = kept.open(0)?.facts;
            (kept.is_redacted, kept.source) = (facts.is_redacted, facts.source);
            if let Files::One(..) = kept.files {
                kept.part = Some(FilePart {
                    capture: facts.capture,
                    number: facts.number,
                    is_last: facts.end.is_some(),
                });
            }
        }
        Ok(kept)
    }

    /// Whether values were replaced when the capture was written.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        self.is_redacted
    }

    /// Returns what the statements were seen by: those of the first capture.
    #[must_use]
    pub fn source(&self) -> SourceKind {
        self.source
    }

    /// Makes a capture that something else saw an error: what is known of its statements is not the same.
    pub fn want_one_source(&mut self) {
        self.wants_one_source = true;
    }

    /// Returns which file of its capture it is, if it is one file.
    #[must_use]
    pub fn part(&self) -> Option<&FilePart> {
        self.part.as_ref()
    }

    /// Returns how the captures ended that were read.
    #[must_use]
    pub fn ended(&self) -> &CaptureEnd {
        &self.end
    }

    /// Returns how many statements the filters of the captures left out.
    #[must_use]
    pub fn filtered(&self) -> u64 {
        self.filtered
    }

    /// Returns what is missing of the captures that were read.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    fn count(&self) -> usize {
        match &self.files {
            Files::Directory(_, names) => names.len(),
            Files::One(..) => 1,
        }
    }

    /// Opens one of the files.
    fn open(&self, number: usize) -> Result<KeptFile> {
        let (shown, object) = match &self.files {
            Files::Directory(store, names) => {
                let name = &names[number];
                let shown = format!("{}/{name}", store.place().trim_end_matches('/'));
                (shown, store.open(name))
            }
            Files::One(name, file) => (name.clone(), OneFile::of(file)),
        };
        let failed = || format!("failed to read {shown}");
        let mut object = object.context(failed)?;
        let mut first = vec![0; object.size().min(64) as usize];
        object.read_exact_at(0, &mut first).context(failed)?;
        if is_begun_by_age(&first) {
            object = decrypted(object, &self.credentials, &shown)?;
        }
        let object: Arc<dyn StoredObject> = Arc::from(object);
        KeptFile::open(&shown, object)
    }

    /// Takes note of what was read of each capture.
    fn conclude(&mut self, captures: BTreeMap<String, Seen>, coverage: &mut Coverage) {
        let is_directory = matches!(self.files, Files::Directory(..));
        for (name, seen) in captures {
            let last = seen.last;
            if is_directory && last > seen.files {
                self.missing
                    .push(Missing::Files(name.clone(), last - seen.files));
            }
            match seen.end {
                Some(end) => {
                    if is_directory && last == seen.files {
                        let all = end.coverage.statements;
                        self.filtered += all.saturating_sub(seen.statements);
                    }
                    add(coverage, &end.coverage);
                    self.end.is_cut |= end.is_cut;
                    self.end.refused = self.end.refused.saturating_add(end.refused);
                    self.end.damage = self.end.damage.take().or(end.damage);
                }
                None if is_directory => self.missing.push(Missing::End(name)),
                None => {}
            }
        }
        if is_directory && self.count() == 0 {
            self.missing.push(Missing::All);
        }
        self.end.coverage = *coverage;
    }
}

/// A file that is no object of a store.
struct OneFile {
    file: File,
    size: u64,
}

impl OneFile {
    fn of(file: &File) -> io::Result<Box<dyn StoredObject>> {
        let file = file.try_clone()?;
        let size = file.metadata()?.len();
        Ok(Box::new(Self { file, size }))
    }
}

impl StoredObject for OneFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

/// What was read of a capture.
#[derive(Debug, Default)]
struct Seen {
    number: u64,
    numbers: BTreeSet<u64>,
    files: u64,
    last: u64,
    statements: u64,
    end: Option<CaptureEnd>,
}

fn mixed(first: SourceKind, other: SourceKind) -> Error {
    let (first, other) = (first.name(), other.name());
    Error::usage(format!(
        "the directory holds captures of {first} and of {other}"
    ))
    .hint("capture each into a directory of its own: what is known of their statements is not the same")
}

/// Adds what another capture missed; statements are counted as they are read.
fn add(coverage: &mut Coverage, other: &Coverage) {
    coverage.unseen = coverage.unseen.saturating_add(other.unseen);
    coverage.packets = coverage.packets.saturating_add(other.packets);
    coverage.packets_dropped = coverage
        .packets_dropped
        .saturating_add(other.packets_dropped);
    coverage.bytes_missing = coverage.bytes_missing.saturating_add(other.bytes_missing);
    coverage.connections_encrypted = coverage
        .connections_encrypted
        .saturating_add(other.connections_encrypted);
    coverage.undecodable = coverage.undecodable.saturating_add(other.undecodable);
    coverage.commands_lost = coverage.commands_lost.saturating_add(other.commands_lost);
    coverage.events_lost = coverage.events_lost.saturating_add(other.events_lost);
}

impl Source for KeptCapture {
    fn read(
        &mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        let mut captures: BTreeMap<String, Seen> = BTreeMap::new();
        let mut coverage = Coverage::default();
        for number in 0..self.count() {
            if cancel.is_cancelled() {
                break;
            }
            let file = self.open(number)?;
            let FileFacts {
                capture,
                number: number_of_file,
                is_redacted,
                source,
                end,
            } = file.facts.clone();
            if self.wants_one_source && source != self.source {
                return Err(mixed(self.source, source));
            }
            self.is_redacted |= is_redacted;
            let count = captures.len() as u64;
            let name = capture.clone();
            let seen = captures.entry(capture).or_insert_with(|| Seen {
                number: count,
                ..Seen::default()
            });
            if !seen.numbers.insert(number_of_file) {
                return Err(Error::usage(format!(
                    "file {number_of_file} of the capture {name} is there twice"
                ))
                .hint("remove the copy"));
            }
            seen.files += 1;
            seen.last = seen.last.max(number_of_file);
            seen.end = seen.end.take().or(end);
            // Another capture's connections are others, though their numbers begin again.
            let high = seen.number << CONNECTION_BITS;
            let statements = &mut seen.statements;
            let mut with_connection = |one: &Statement<'_>| {
                coverage.statements += 1;
                *statements += 1;
                each(&Statement {
                    connection: one.connection | high,
                    ..one.clone()
                })
            };
            file.read(&mut with_connection, &|| cancel.is_cancelled())?;
        }
        if !cancel.is_cancelled() {
            self.conclude(captures, &mut coverage);
        }
        Ok(coverage)
    }
}
