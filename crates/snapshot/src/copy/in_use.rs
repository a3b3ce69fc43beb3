//! Whether some process has a data directory's files open for writing.

use crate::{Layout, ioctl};
use evenkeel_op::{Context, Result};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Files that every server locks as long as it runs: InnoDB's and Aria's.
const LOCKED: [&str; 2] = ["ibdata1", "aria_log_control"];

/// A process that uses a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its process number; 0 when it cannot be seen from here (another container).
    pub pid: i32,
    /// A file that it locks or has open for writing.
    pub file: PathBuf,
}

impl fmt::Display for User {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => write!(out, "a process of another container"),
            pid => {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                write!(out, "process {pid} ({})", name.trim())
            }
        }
    }
}

/// Returns a process that uses the files of `layout`: one that locks the files that servers lock
/// (seen across containers), else one that has a file open for writing (seen as far as `/proc` may
/// be read).
pub fn user_of(layout: &Layout) -> Result<Option<User>> {
    for name in LOCKED {
        let file = layout.datadir.join(name);
        let Ok(open) = File::open(&file) else {
            continue;
        };
        let holder = ioctl::lock_holder(&open)
            .context(|| format!("failed to examine the lock of {}", file.display()))?;
        if let Some(pid) = holder {
            return Ok(Some(User { pid, file }));
        }
    }
    let mut directories = Vec::new();
    for directory in layout.dirs.iter().chain([&layout.datadir]) {
        if let Ok(directory) = directory.canonicalize() {
            directories.push(directory);
        }
    }
    writer_in(&directories)
}

/// Returns a process, other than this one, that has a file below one of `directories` open for
/// writing.
fn writer_in(directories: &[PathBuf]) -> Result<Option<User>> {
    let below = |open: &Path| {
        fs::read_link(open).is_ok_and(|file| directories.iter().any(|dir| file.starts_with(dir)))
    };
    user_where(below, false)
}

/// Returns a process, other than this one, that has a file open for writing (or, with `readers`, at
/// all) of which `wanted` says yes, given its entry in `/proc/PID/fd`.
pub(crate) fn user_where(wanted: impl Fn(&Path) -> bool, readers: bool) -> Result<Option<User>> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let processes = fs::read_dir("/proc").context(|| "failed to list processes")?;
    // Processes come and go, and some may not be looked at: both are passed over.
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if pid == own || is_unborn(&process.path(), own) {
            continue;
        }
        let Ok(files) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        for open in files.flatten() {
            let Ok(file) = fs::read_link(open.path()) else {
                continue;
            };
            if wanted(&open.path())
                && (readers || for_writing(&process.path(), &open.file_name().to_string_lossy()))
            {
                return Ok(Some(User { pid, file }));
            }
        }
    }
    Ok(None)
}

/// Returns whether a process is a copy of this one that a thread has forked and that has not become
/// another program yet: what it has open is what this process has open.
fn is_unborn(process: &Path, own: i32) -> bool {
    let parent = fs::read_to_string(process.join("stat"))
        .ok()
        .and_then(|stat| {
            // Behind the name in parentheses: state, then parent.
            stat.rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse::<i32>()
                .ok()
        });
    parent == Some(own)
        && fs::read_link(process.join("exe")).ok() == fs::read_link("/proc/self/exe").ok()
}

/// Returns whether an open file of a process may be written to; yes if that is not known.
fn for_writing(process: &Path, number: &str) -> bool {
    let Ok(facts) = fs::read_to_string(process.join("fdinfo").join(number)) else {
        return true;
    };
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok())
        .is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}
