//! A plan in its file: rows of users are in it, so nobody else may read it; and nobody else may have written it.

use super::plan::RepairPlan;
use evenkeel_op::{Context, Error, Result, paths};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// Refuses a place where something is, or where nothing can be made.
pub(super) fn refuse_taken(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        // Better known now than after hours.
        Err(error) if error.kind() == ErrorKind::NotFound => empty_beside(path).map(drop),
        Err(error) => Err(error).context(|| format!("failed to look at {}", path.display())),
        Ok(_) => Err(taken(path)),
    }
}

fn taken(path: &Path) -> Error {
    Error::usage(format!("{} exists already", path.display()))
        .hint("name a new file with --output: a plan replaces nothing")
}

/// Writes it, whole and new: nothing that is there is replaced, and no link is followed.
pub(super) fn write(path: &Path, plan: &RepairPlan) -> Result<()> {
    let failed = || format!("failed to write {}", path.display());
    let mut file = empty_beside(path)?;
    let text = serde_json::to_string_pretty(plan).context(failed)?;
    file.write_all(text.as_bytes()).context(failed)?;
    file.write_all(b"\n").context(failed)?;
    file.as_file().sync_all().context(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(taken(path)),
        Err(error) => Err(error.error).context(failed),
    }
}

/// Makes an empty file in the same directory, that only its owner may read and that is removed unless it is kept.
fn empty_beside(path: &Path) -> Result<NamedTempFile> {
    let parent = path.parent().filter(|one| !one.as_os_str().is_empty());
    NamedTempFile::new_in(parent.unwrap_or(Path::new(".")))
        .context(|| format!("failed to write {}", path.display()))
}

/// Reads it.
///
/// Errors: `Usage` for what is no plan, or is not only this user's; `Refused` for one that was changed.
pub(super) fn read(path: &Path) -> Result<RepairPlan> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => Error::usage(format!("{} is a symbolic link", path.display()))
            .hint("name the plan itself"),
        error => paths::unreadable("plan", path, error.into()),
    });
    let mut file = File::from(file?);
    let failed = || format!("failed to read {}", path.display());
    let facts = file.metadata().context(failed)?;
    if !facts.is_file() || facts.uid() != geteuid().as_raw() || facts.mode() & 0o022 != 0 {
        return Err(Error::usage(format!(
            "{} is not a file of this user that nobody else may write",
            path.display()
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).context(failed)?;
    let plan: RepairPlan = serde_json::from_str(&text).map_err(|error| {
        Error::usage(format!("{} is no plan of a repair", path.display())).because(error)
    })?;
    plan.check()?;
    Ok(plan)
}
