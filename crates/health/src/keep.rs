//! What outlasts the process: orders, locks, and how often servers failed. A file in a directory of this user's,
//! replaced as one piece.

use crate::board::Board;
use crate::machine::{HealthOrder, Remembered};
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

/// What a server's state is kept under: what the user called it, whatever was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateKey {
    key: String,
    /// What it may have been kept under by earlier versions.
    before: Vec<String>,
}

impl StateKey {
    /// Makes the key of a server that the user gave a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            key: name.to_owned(),
            before: Vec::new(),
        }
    }

    /// Makes the key of a server at a socket, which is an absolute path; `typed` is what the user wrote.
    #[must_use]
    pub fn socket(path: &Path, typed: &Path) -> Self {
        Self {
            key: path.display().to_string(),
            before: vec![typed.display().to_string()],
        }
    }

    /// Makes the key of a server at a port.
    #[must_use]
    pub fn tcp(host: &str, port: u16) -> Self {
        Self {
            key: format!("{host}:{port}"),
            before: vec![host.to_owned()],
        }
    }

    /// Makes the key of the server at whichever of these usual sockets there is: nothing was said about it.
    #[must_use]
    pub fn usual_socket(usual: &[&str]) -> Self {
        Self {
            key: "localhost".to_owned(),
            before: usual.iter().map(|path| (*path).to_owned()).collect(),
        }
    }
}

/// The directory, held by this process.
#[derive(Debug)]
pub struct Keep {
    directory: OwnDirectory,
    known: Mutex<Kept>,
}

/// What is in the file. One writer at a time.
#[derive(Debug, Default)]
struct Kept {
    /// Also of servers that are not watched now.
    servers: BTreeMap<String, Remembered>,
    /// What the servers' states are kept under, by their names; the name itself, if it is not here.
    keys: BTreeMap<String, String>,
}

/// The state of a server that is not watched now, and that a person has to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotWatched {
    /// What it is kept under.
    pub key: String,
    /// What a person wanted of it.
    pub order: Option<HealthOrder>,
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
            known: Mutex::default(),
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
                self.kept().servers.clone_from(&servers);
                Ok(servers)
            }
            false => Err(Error::failed(failed())
                .because(format!("its schema is {}", document.schema))
                .hint("to forget every drain and failure, remove the file")),
        }
    }

    /// Returns what an earlier process knew of a server, after [`Keep::load`]. From now on, the server of this name is
    /// kept under this key. What an earlier version kept under other keys is taken together.
    #[must_use]
    pub fn resume(&self, name: &str, key: &StateKey) -> Remembered {
        let mut kept = self.kept();
        kept.keys.insert(name.to_owned(), key.key.clone());
        if let Some(known) = kept.servers.get(&key.key) {
            return known.clone();
        }
        let before = key.before.iter();
        let olds: Vec<Remembered> = before.filter_map(|old| kept.servers.remove(old)).collect();
        let together = Remembered::together(olds);
        kept.servers.insert(key.key.clone(), together.clone());
        together
    }

    /// Returns the servers that are not watched, and that a person took out of use, or has to put into use again.
    #[must_use]
    pub fn not_watched(&self) -> Vec<NotWatched> {
        let kept = self.kept();
        let is_watched = |key: &String| kept.keys.values().any(|it| it == key);
        let left = kept
            .servers
            .iter()
            .filter(|(key, known)| !is_watched(key) && (known.order.is_some() || known.is_locked));
        left.map(|(key, known)| NotWatched {
            key: key.clone(),
            order: known.order.clone(),
        })
        .collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.known.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes what is known now; of servers that are not watched, what was known before.
    ///
    /// # Errors
    ///
    /// `Failed`: then the file is as it was.
    pub fn save(&self, board: &Board) -> Result<()> {
        let mut kept = self.kept();
        for server in 0..board.len() {
            let name = board.name(server);
            let key = kept.keys.get(name).cloned();
            let key = key.unwrap_or_else(|| name.to_owned());
            kept.servers.insert(key, board.remembered(server));
        }
        let document = Document {
            schema: SCHEMA.to_owned(),
            saved_ms: now_ms(),
            servers: kept.servers.clone(),
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
