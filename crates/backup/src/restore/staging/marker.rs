//! The file that says that a restore made a staging directory: for which data directory, and which one it is.
//!
//! It may lie in a directory that others write into. So it counts only where it is this user's own, and it
//! names the staging directory by its number: whatever else is put in that one's place is not removed.

use evenkeel_op::{Context, Result};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a directory is made for. Each takes the other's leftovers for its own to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Files of a repository. What an interrupted run left is of no use: an account may have worked on it.
    Restore,
    /// Files of another server. What an interrupted run left is taken up.
    Clone,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Restore, Self::Clone];

    /// What the marker holds, before the data directory's path.
    fn magic(self) -> &'static str {
        match self {
            Self::Restore => "evenkeel restore staging 3\n",
            Self::Clone => "evenkeel clone staging 1\n",
        }
    }

    fn text(self, data: &Path) -> Vec<u8> {
        [self.magic().as_bytes(), data.as_os_str().as_bytes(), b"\n"].concat()
    }
}
/// A number and the end of its line have no more characters.
const NUMBER_MAX: usize = 21;

/// Where a marker is, and what it says.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    data: PathBuf,
    purpose: Purpose,
}

/// A marker that is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// It was written to its end, but for the number.
    pub(super) whole: bool,
    /// The number of the directory that was made.
    pub(super) directory: Option<u64>,
    /// What it was made for.
    pub(super) purpose: Purpose,
}

impl Marker {
    /// The marker at `path` of a run for the data directory `data`.
    pub(super) fn new(path: PathBuf, data: &Path, purpose: Purpose) -> Self {
        let data = data.to_owned();
        Self {
            path,
            data,
            purpose,
        }
    }

    /// What this run makes its directory for.
    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what is there, if it is ours and for the same data directory. `at` is the directory in which
    /// it is, when that is open.
    pub(super) fn find(&self, at: Option<&Path>) -> Option<Found> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.place(at), flags, Mode::empty()).ok()?;
        let found = rustix::fs::fstat(&file).ok()?;
        let is_own = found.st_uid == geteuid().as_raw();
        if !is_own || !FileType::from_raw_mode(found.st_mode).is_file() {
            return None;
        }
        let texts = Purpose::ALL.map(|purpose| (purpose, purpose.text(&self.data)));
        let longest = texts.iter().map(|(_, text)| text.len()).max().unwrap_or(0);
        let mut bytes = Vec::new();
        let most = (longest + NUMBER_MAX) as u64;
        File::from(file).take(most).read_to_end(&mut bytes).ok()?;
        texts
            .iter()
            .find_map(|(purpose, text)| read(&bytes, *purpose, text))
    }

    fn place(&self, at: Option<&Path>) -> PathBuf {
        match (at, self.path.file_name()) {
            (Some(at), Some(name)) => at.join(name),
            _ => self.path.clone(),
        }
    }

    /// Writes a new one, without the number. It must not be there: what is, is somebody else's.
    pub(super) fn write(&self, at: Option<&Path>) -> Result<File> {
        let failed = || format!("failed to write {}", self.path.display());
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        let mut file = options.open(self.place(at)).context(failed)?;
        let text = self.purpose.text(&self.data);
        file.write_all(&text).context(failed)?;
        Ok(file)
    }

    /// Notes the number of the directory in a marker that was just written, for good.
    pub(super) fn note(&self, mut file: File, directory: u64) -> Result<()> {
        let failed = || format!("failed to write {}", self.path.display());
        file.write_all(format!("{directory}\n").as_bytes())
            .and_then(|()| file.sync_all())
            .context(failed)
    }
}

/// Reads what a marker of that purpose holds.
fn read(bytes: &[u8], purpose: Purpose, text: &[u8]) -> Option<Found> {
    let found = |whole, directory| Found {
        whole,
        directory,
        purpose,
    };
    if let Some(rest) = bytes.strip_prefix(text) {
        let line = std::str::from_utf8(rest).ok()?.strip_suffix('\n');
        return Some(found(true, line.and_then(|number| number.parse().ok())));
    }
    // One that was cut short: nothing was written before it was whole.
    text.starts_with(bytes).then(|| found(false, None))
}
