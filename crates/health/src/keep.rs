//! What outlasts the process: orders, locks, and how often servers failed. A file in a directory of this user's,
//! replaced as one piece.

use crate::board::Board;
use crate::machine::Remembered;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{self as sys, FileType, FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

const NAME: &str = "health.json";
const NEW: &str = ".health.json.new";
const SCHEMA: &str = "evenkeel/health-state/1";
/// No file of ours is longer.
const BYTES: u64 = 16 << 20;

/// The directory, held by this process.
#[derive(Debug)]
pub struct Keep {
    directory: OwnDirectory,
    /// What was known of servers that are not watched now. One writer at a time.
    others: Mutex<BTreeMap<String, Remembered>>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    /// When it was written, in milliseconds since 1970.
    saved_ms: u64,
    servers: BTreeMap<String, Remembered>,
}

impl Keep {
    /// Makes or opens the directory, and holds it.
    ///
    /// # Errors
    ///
    /// `Busy` if another process holds it; `Refused` if it is another user's, or open to other writers.
    pub fn open(path: &Path) -> Result<Self> {
        // Whatever leads there, what is found there must be this user's own.
        let directory = OwnDirectory::make(&evenkeel_op::paths::resolved(path), 0o700)?;
        sys::flock(&directory, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let shown = path.display();
            Error::new(
                ErrorKind::Busy,
                format!("another 'evenkeel health run' uses {shown}"),
            )
            .because(io::Error::from(error))
            .hint("give each its own --state-directory")
        })?;
        Ok(Self {
            directory,
            others: Mutex::new(BTreeMap::new()),
        })
    }

    /// Returns what an earlier process knew, by the servers' names.
    ///
    /// # Errors
    ///
    /// `Failed` if the file cannot be read: a drained server must not come back unasked.
    pub fn load(&self) -> Result<BTreeMap<String, Remembered>> {
        let shown = self.directory.path().join(NAME);
        let failed = || format!("failed to read {}", shown.display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match sys::openat(&*self.directory, NAME, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(BTreeMap::new()),
            opened => opened.map_err(io::Error::from).context(failed)?,
        };
        let stat = sys::fstat(&file).map_err(io::Error::from).context(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::failed(failed()).because("it is not a file"));
        }
        let mut text = String::new();
        let read = File::from(file).take(BYTES).read_to_string(&mut text);
        read.context(failed)?;
        let document: Document = serde_json::from_str(&text)
            .context(failed)
            .map_err(|error| error.hint("to forget every drain and failure, remove the file"))?;
        match document.schema == SCHEMA {
            true => {
                let past = now_ms().saturating_sub(document.saved_ms);
                let mut servers = document.servers;
                for age in servers.values_mut().flat_map(|one| &mut one.flap_ages_ms) {
                    *age = age.saturating_add(past);
                }
                self.others().clone_from(&servers);
                Ok(servers)
            }
            false => Err(Error::failed(failed())
                .because(format!("its schema is {}", document.schema))
                .hint("to forget every drain and failure, remove the file")),
        }
    }

    fn others(&self) -> MutexGuard<'_, BTreeMap<String, Remembered>> {
        self.others.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes what is known now; of servers that are not watched, what was known before.
    ///
    /// # Errors
    ///
    /// `Failed`: then the file is as it was.
    pub fn save(&self, board: &Board) -> Result<()> {
        let mut all = self.others();
        let each = (0..board.len()).map(|at| (board.name(at).to_owned(), board.remembered(at)));
        all.extend(each);
        let document = Document {
            schema: SCHEMA.to_owned(),
            saved_ms: now_ms(),
            servers: all.clone(),
        };
        let shown = self.directory.path().join(NAME);
        self.replace(&document)
            .context(|| format!("failed to write {}", shown.display()))
    }

    fn replace(&self, document: &Document) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(document).map_err(io::Error::other)?;
        text.push(b'\n');
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = sys::openat(&*self.directory, NEW, flags | OFlags::CLOEXEC, mode)?;
        let mut file = File::from(file);
        file.write_all(&text)?;
        file.sync_all()?;
        sys::renameat(&*self.directory, NEW, &*self.directory, NAME)?;
        File::open(self.directory.anchor())?.sync_all()
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
