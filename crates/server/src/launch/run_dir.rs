//! The short-lived directory of a private server: `evenkeel-PID-N`, and in it one that its account may have.

use evenkeel_op::living::{Living, sweep};
use evenkeel_op::{Context, Result};
use rustix::fs::Mode;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What names begin with.
const NAME: &str = "evenkeel-";
/// The directory that is handed over.
const INNER: &str = "r";
/// The server's error log in that.
const LOG: &str = "log";
/// Others pass through the outer one, which is always this user's, and can neither list nor lock it.
const PASSABLE: u32 = 0o711;

/// Removed with all it holds when dropped; when the run was killed, by the next one.
#[derive(Debug)]
pub(crate) struct RunDir {
    inner: PathBuf,
    _outer: Living,
}

impl RunDir {
    pub(super) fn create(parent: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(parent, is_ours, |_, _| true);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{NAME}{}-{number}", std::process::id()));
            // What is there already was laid there by somebody else.
            let Some(outer) = Living::make(&path)? else {
                continue;
            };
            outer.set_mode(PASSABLE)?;
            rustix::fs::mkdir(outer.anchor().join(INNER), Mode::RWXU)
                .context(|| format!("failed to write in {}", path.display()))?;
            let inner = path.join(INNER);
            return Ok(Self {
                inner,
                _outer: outer,
            });
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.inner
    }

    /// Returns where its server writes its error log.
    pub(super) fn log(&self) -> PathBuf {
        self.inner.join(LOG)
    }
}

/// Finds the log of a server that has its private directory in `parent`, where that is the only one.
#[must_use]
pub fn log_below(parent: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(parent).ok()?.flatten();
    entries.find_map(|entry| {
        let log = entry.path().join(INNER).join(LOG);
        (is_ours(&entry.file_name()) && log.exists()).then_some(log)
    })
}

/// Whether a name is one that is given here.
fn is_ours(name: &OsStr) -> bool {
    let numbers = name
        .to_str()
        .and_then(|name| name.strip_prefix(NAME)?.split_once('-'));
    numbers.is_some_and(|(pid, number)| pid.parse::<u32>().is_ok() && number.parse::<u32>().is_ok())
}
