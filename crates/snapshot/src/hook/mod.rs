//! The user's own snapshot command.
//!
//! It runs through `sh -c` with `EVENKEEL_DATADIR` set, and its last line of output is the path at
//! which the frozen data directory can be read. The release command, if there is one, gets that
//! path as `EVENKEEL_SNAPSHOT` and `kept` or `abandoned` as `EVENKEEL_OUTCOME`. Where a raw volume is
//! to be frozen, both paths are a volume's instead.

mod command;

use crate::{Atomicity, Changed, HookCommand, Layout, Provider, SourceFile};
use evenkeel_op::{Context, Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Lets the user's command make the snapshot.
pub(crate) struct HookProvider {
    command: HookCommand,
    datadir: PathBuf,
    /// Path below the data directory, by generation name.
    files: HashMap<String, PathBuf>,
    /// What can be read.
    snapshot: Option<PathBuf>,
    /// What the command says that it made.
    unreleased: Option<PathBuf>,
}

impl HookProvider {
    /// Prepares to run `command` for the data directory of `layout`; `Refused` when the server has
    /// files elsewhere, which the command would not know of.
    pub(crate) fn open(layout: &Layout, command: &HookCommand) -> Result<Self> {
        let failed = |path: &Path| format!("failed to find {}", path.display());
        let volume = match layout.volumes.as_slice() {
            [] => None,
            [volume] => Some(volume),
            _ => {
                return Err(Error::refused("a snapshot command freezes one volume")
                    .hint("back up the volumes one by one, each into its own repository"));
            }
        };
        let datadir = volume
            .unwrap_or(&layout.datadir)
            .canonicalize()
            .context(|| failed(&layout.datadir))?;
        for directory in layout.dirs.iter().filter(|_| volume.is_none()) {
            let directory = directory.canonicalize().context(|| failed(directory))?;
            if !directory.starts_with(&datadir) {
                return Err(outside(&directory));
            }
        }
        Ok(Self {
            command: command.clone(),
            datadir,
            files: HashMap::new(),
            snapshot: None,
            unreleased: None,
        })
    }

    /// Returns where a file is below the data directory.
    fn relative(&self, path: &Path) -> Result<PathBuf> {
        let found = path
            .canonicalize()
            .context(|| format!("failed to find {}", path.display()))?;
        found
            .strip_prefix(&self.datadir)
            .map(Path::to_owned)
            .map_err(|_| outside(path))
    }

    fn release(&mut self, outcome: &str) -> Result<()> {
        self.snapshot = None;
        let (Some(snapshot), Some(release)) = (self.unreleased.take(), &self.command.release)
        else {
            return Ok(());
        };
        let environment = [
            ("EVENKEEL_DATADIR", self.datadir.as_os_str()),
            ("EVENKEEL_SNAPSHOT", snapshot.as_os_str()),
            ("EVENKEEL_OUTCOME", outcome.as_ref()),
        ];
        command::run(release, &environment, self.command.timeout)
            .map(|_| ())
            .context(|| "the snapshot could not be released")
    }
}

/// Returns a path below the snapshot: of a single volume, the snapshot itself.
fn below(snapshot: &Path, inside: &Path) -> PathBuf {
    if inside.as_os_str().is_empty() {
        snapshot.to_owned()
    } else {
        snapshot.join(inside)
    }
}

fn outside(path: &Path) -> Error {
    Error::refused(format!("{} is outside the data directory", path.display()))
        .hint("a snapshot command covers only the data directory")
}

fn last_line(output: &str) -> &str {
    let mut lines = output.lines().map(str::trim).rev();
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the path that a snapshot command printed, after looking at whether it can be true.
fn printed_path(output: &str, datadir: &Path) -> Result<PathBuf> {
    let path = PathBuf::from(last_line(output));
    if !path.is_absolute() {
        return Err(
            Error::failed("the snapshot command did not print an absolute path")
                .hint("its last line of output must be the path of the frozen data directory"),
        );
    }
    let failed = || format!("failed to find the snapshot at {}", path.display());
    // Not as a file that went meanwhile: the command would be run again and again.
    let frozen = path
        .metadata()
        .map_err(|error| format!("{error}"))
        .context(failed)?;
    let live = datadir.metadata().context(failed)?;
    if frozen.is_dir() != live.is_dir() {
        let not = if live.is_dir() { "not " } else { "" };
        return Err(Error::failed(format!(
            "the snapshot {} is {not}a directory",
            path.display(),
        )));
    }
    let same_device = frozen.rdev() != 0 && frozen.rdev() == live.rdev();
    if same_device || (frozen.dev(), frozen.ino()) == (live.dev(), live.ino()) {
        return Err(
            Error::failed("the snapshot command printed the live data directory")
                .hint("its last line of output must be the path of the frozen data directory"),
        );
    }
    Ok(path)
}

/// Brings to disk what was written to the filesystem of `path`.
fn flush(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
        .context(|| format!("failed to sync {}", path.display()))
}

impl Provider for HookProvider {
    fn name(&self) -> &'static str {
        "hook"
    }

    fn atomicity(&self) -> Atomicity {
        // What the command makes is unknown: a volume's snapshot has nothing of the page cache.
        Atomicity::Synced
    }

    fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        for file in files {
            let path = match (&self.snapshot, file.path.parent(), file.path.file_name()) {
                // It may be gone since.
                (Some(_), Some(folder), Some(leaf)) => self.relative(folder)?.join(leaf),
                _ => self.relative(&file.path)?,
            };
            self.files.insert(file.name.clone(), path);
        }
        Ok(())
    }

    fn instant(&mut self) -> Result<()> {
        // A snapshot below the filesystem has only what reached the disk.
        flush(&self.datadir)?;
        let environment = [("EVENKEEL_DATADIR", self.datadir.as_os_str())];
        let output = command::run(&self.command.create, &environment, self.command.timeout)
            .context(|| "the snapshot command failed")?;
        // The command ended well: what it made is released, whatever it said of it.
        self.unreleased = Some(last_line(&output).into());
        let printed = printed_path(&output, &self.datadir)?;
        // From there on no links are followed: what the server's user put there leads elsewhere.
        let found = printed.canonicalize();
        let found = found.context(|| format!("failed to find {}", printed.display()))?;
        self.unreleased = Some(found.clone());
        self.snapshot = Some(found);
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        let Some(snapshot) = &self.snapshot else {
            return Err(Error::failed("the snapshot command was not run"));
        };
        for path in self.files.values() {
            let path = below(snapshot, path);
            if path.is_dir() || !path.exists() {
                return Err(Error::failed(format!(
                    "the snapshot lacks {}",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    fn frozen_dir(&self, live: &Path) -> Result<PathBuf> {
        let snapshot = self.snapshot.as_deref();
        let snapshot = snapshot.ok_or_else(|| Error::failed("there is no snapshot yet"))?;
        Ok(snapshot.join(self.relative(live)?))
    }

    fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        let inside = self
            .files
            .get(&file.name)
            .map_or(Path::new(&file.name), PathBuf::as_path);
        // Before `instant` there is nothing to read anywhere.
        let snapshot = self.snapshot.as_deref();
        below(snapshot.unwrap_or(Path::new("/nonexistent")), inside)
    }

    fn patch(&mut self, _: &SourceFile, _: u64, _: &[u8]) -> Result<()> {
        Err(Error::failed(
            "a snapshot made by a command cannot be patched",
        ))
    }

    fn changed(&self, _: &SourceFile) -> Result<Changed> {
        Ok(Changed::Unknown)
    }

    fn commit(mut self: Box<Self>, _: &str) -> Result<()> {
        self.release("kept")
    }

    fn abandon(mut self: Box<Self>) -> Result<()> {
        self.release("abandoned")
    }
}

impl Drop for HookProvider {
    fn drop(&mut self) {
        // Only when neither commit nor abandon was reached; nobody is left to tell of a failure.
        let _ = self.release("abandoned");
    }
}
