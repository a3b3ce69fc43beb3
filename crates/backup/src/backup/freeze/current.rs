//! Keeps the list of files true to the moment of the snapshot: binary logs come and go at any time,
//! tables where nothing stops DDL.

use crate::backup::source_file::source;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};
use evenkeel_snapshot::{Made, Opened};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// Whether the binary logs or Aria's are others than those that are listed. Looks at little more than the
/// index of the former, so it may be asked while commits are paused.
pub(in crate::backup) fn logs_changed(files: &ServerFiles) -> Result<bool> {
    if files.next_aria_log().is_some_and(|next| next.exists()) {
        return Ok(true);
    }
    let logs = || {
        files
            .files
            .iter()
            .filter(|file| file.class == FileClass::Binlog)
    };
    for index in files
        .files
        .iter()
        .filter(|file| file.class == FileClass::BinlogIndex)
    {
        let listed: BTreeSet<OsString> = names_in_index(&index.path)?;
        let known = logs().filter_map(|file| file.path.file_name());
        let known: BTreeSet<OsString> = known.map(OsString::from).collect();
        if !listed.is_subset(&known) {
            return Ok(true);
        }
    }
    Ok(logs().any(|file| !file.path.exists()))
}

/// Whether two looks found the same files of tables.
pub(in crate::backup) fn same_tables(one: &ServerFiles, other: &ServerFiles) -> bool {
    let tables = |files: &ServerFiles| -> Vec<String> {
        files
            .files
            .iter()
            .filter(|file| is_of_table(file))
            .map(|file| file.name.clone())
            .collect()
    };
    // A table that was dropped and made again has another file of the same name, and is whole
    // before and after; one that appears or goes may be in the snapshot by half.
    tables(one) == tables(other)
}

/// Whether an error is about a file that is not there. It may be there again by now: servers replace the
/// list of their binary logs in two steps.
pub(in crate::backup) fn is_about_a_missing_file(error: &Error) -> bool {
    let missing = |cause: &(dyn StdError + 'static)| {
        let is_io = cause.downcast_ref::<io::Error>();
        is_io.is_some_and(|io| io.kind() == io::ErrorKind::NotFound)
            || cause.downcast_ref::<Errno>() == Some(&Errno::NOENT)
    };
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        if missing(cause) {
            return true;
        }
        next = cause.source();
    }
    false
}

/// Whether any listed file is gone by now.
pub(in crate::backup) fn vanished(files: &ServerFiles) -> bool {
    files.files.iter().any(|file| !file.path.exists())
}

/// Whether an image has the tables that are listed, no more and no fewer. Looks before and after
/// the snapshot can agree on a table that was gone at its point in time, because a temporary table
/// of the same name was made again; or on the absence of one that was there.
pub(in crate::backup) fn image_has_tables(
    files: &ServerFiles,
    opened: &Opened,
    made: &Made,
) -> Result<bool> {
    let tables = files.files.iter().filter(|file| is_of_table(file));
    let listed: BTreeSet<&Path> = tables.clone().map(|file| file.path.as_path()).collect();
    for file in tables {
        let frozen = opened.frozen_path(made, &source(file));
        if frozen
            .symlink_metadata()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(false);
        }
    }
    // Elsewhere than in the data directory there may be tablespaces of another server.
    let dirs = files.dirs.iter().map(|(_, path)| path);
    let inside = dirs.filter(|path| path.starts_with(&files.datadir));
    for dir in inside.chain([&files.datadir]) {
        let image = opened.frozen_dir(made, dir)?;
        let failed = || format!("failed to list {}", image.display());
        let entries = match fs::read_dir(&image) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).context(failed),
        };
        for entry in entries {
            let original = dir.join(entry.context(failed)?.file_name());
            let is_tablespace = original.extension().is_some_and(|kind| kind == "ibd");
            if is_tablespace && !listed.contains(original.as_path()) && !original.is_symlink() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn is_of_table(file: &FoundFile) -> bool {
    matches!(
        file.class,
        FileClass::InnodbData | FileClass::Definition | FileClass::EngineTable
    )
}

fn names_in_index(index: &Path) -> Result<BTreeSet<OsString>> {
    let text = fs::read(index).context(|| format!("failed to read {}", index.display()))?;
    let text = String::from_utf8_lossy(&text);
    let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(names
        .filter_map(|line| Path::new(line).file_name().map(OsString::from))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::files::discover_stopped;
    use std::collections::BTreeMap;

    #[test]
    fn a_new_file_of_arias_log_is_seen() {
        let data = tempfile::tempdir().unwrap();
        let log = |number: u32| data.path().join(format!("aria_log.{number:08}"));
        for number in [9, 10] {
            fs::write(log(number), "").unwrap();
        }
        let files = discover_stopped(data.path(), &BTreeMap::new()).unwrap();
        assert!(!logs_changed(&files).unwrap());
        fs::write(log(11), "").unwrap();
        assert!(logs_changed(&files).unwrap());
        let files = files.rescan().unwrap();
        assert!(!logs_changed(&files).unwrap());
    }
}
