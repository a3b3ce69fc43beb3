//! How the redo log lies on disk: known by its exact shape, or refused by name. A log of which a file is
//! missing or left over makes an image that does not recover, or that recovers to something else.
//!
//! | server | shape |
//! |---|---|
//! | MySQL up to 8.0.29, MariaDB up to 10.4 | `ib_logfile0` to `ib_logfileN`, none missing |
//! | MySQL from 8.0.30 | `#innodb_redo/#ib_redoN`, spare ones `#ib_redoN_tmp`, nothing else |
//! | MariaDB from 10.5 | `ib_logfile0` alone |
//!
//! Each may have `ib_logfile101` beside it: a log that is being made. MariaDB 13 with
//! `innodb_log_archive=ON` has files `ib_LSN.log`, which is not covered.

use super::redo_names;
use crate::abilities::{Flavour, RedoLayout, Version};
use evenkeel_op::{Context, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the files of a log of old are called, before their number.
pub(super) const FIXED: &str = "ib_logfile";
/// What stands before and behind the place of a file of an archived log.
pub(super) const ARCHIVED: (&str, &str) = ("ib_", ".log");
/// A log that is being made has this number.
const BEING_MADE: u32 = 101;

/// Where the redo log is, and how it should lie there.
#[derive(Debug, Clone)]
pub(super) struct RedoShape {
    dir: PathBuf,
    /// Not known where nothing says whose the files are.
    layout: Option<RedoLayout>,
    is_archived: bool,
}

impl RedoShape {
    /// Reads a server's variables; `dir` is where they put the log.
    pub(super) fn of(dir: PathBuf, variables: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| variables.get(name).map(String::as_str);
        let version = text("version").and_then(|text| text.parse::<Version>().ok());
        let comment = text("version_comment").unwrap_or_default();
        let flavour = Flavour::of(text("version").unwrap_or_default(), comment);
        Self {
            dir,
            layout: version.map(|version| RedoLayout::of(flavour, version)),
            is_archived: text("innodb_log_archive")
                .is_some_and(|value| ["1", "ON", "TRUE"].contains(&&*value.to_ascii_uppercase())),
        }
    }

    /// Looks at the files.
    ///
    /// Errors: `Refused`, with what to do, for every shape but those above.
    pub(super) fn check(&self) -> Result<()> {
        let dir = self.dir.display();
        // A server that looks for them by number does not start where a schema is called so.
        let kind = match self.layout {
            Some(RedoLayout::Directory) => Listing::Files,
            _ => Listing::All,
        };
        let top = names(&self.dir, kind)?;
        let archived = top.iter().find(|name| is_archived(name));
        if self.is_archived || archived.is_some() {
            let shows = archived.map_or("innodb_log_archive=ON", String::as_str);
            return Err(Error::refused(format!(
                "the redo log in {dir} is being archived ({shows}), and evenkeel cannot back that up"
            ))
            .hint("turn it off (SET GLOBAL innodb_log_archive = OFF), and move old ib_*.log files away")
            .hint("or dump the databases: evenkeel dump"));
        }
        let numbers: BTreeSet<u32> = top.iter().filter_map(|name| number(name)).collect();
        let inside = self.dir.join(redo_names::DIRECTORY);
        let moving = names(&inside, Listing::All)?;
        if let Some(other) = moving.iter().find(|name| !is_known_inside(name)) {
            return Err(unknown(&inside.join(other)));
        }
        let fixed = self.dir.join("ib_logfile0");
        match self.layout {
            Some(RedoLayout::Directory) if !numbers.is_empty() => Err(unknown(&fixed)),
            None if !numbers.is_empty() && !moving.is_empty() => Err(unknown(&fixed)),
            Some(RedoLayout::Directory) | None => Ok(()),
            Some(_) if !moving.is_empty() => Err(unknown(&inside)),
            Some(RedoLayout::TwoFilesClassic) => {
                let missing = (0..)
                    .zip(&numbers)
                    .find(|(expected, there)| expected != *there);
                match missing {
                    None => Ok(()),
                    Some((number, _)) => Err(Error::refused(format!(
                        "the redo log in {dir} lacks ib_logfile{number}"
                    ))
                    .hint("start the server and shut it down cleanly, or dump the databases")),
                }
            }
            Some(RedoLayout::SingleFile | RedoLayout::SingleFileOld) => {
                match numbers.iter().find(|number| **number > 0) {
                    None => Ok(()),
                    Some(number) => Err(unknown(&self.dir.join(format!("ib_logfile{number}")))),
                }
            }
        }
    }
}

fn unknown(path: &Path) -> Error {
    let error = Error::refused(format!(
        "{} does not belong to a redo log of this server version",
        path.display()
    ));
    match path.is_dir() && !path.ends_with(redo_names::DIRECTORY) {
        true => error.hint(
            "a schema of this name prevents the server from starting again: rename it, or dump \
             and drop it",
        ),
        false => error.hint(
            "if an older server or a user left it there, move it away; otherwise \
             dump the databases",
        ),
    }
}

/// Whether it is a file of MariaDB's archived redo log: `ib_0000000000003000.log`.
pub(super) fn is_archived(name: &str) -> bool {
    let lsn = name
        .strip_prefix(ARCHIVED.0)
        .and_then(|rest| rest.strip_suffix(ARCHIVED.1));
    lsn.is_some_and(|lsn| !lsn.is_empty() && lsn.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns which file of a log this is: 0 for `ib_logfile0`.
fn number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(FIXED)?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits && number != BEING_MADE).then_some(number)
}

fn is_known_inside(name: &str) -> bool {
    redo_names::is_redo(name) || name == "lost+found" || name.starts_with(".nfs")
}

/// What is listed: a schema may be called like a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Files,
    All,
}

/// Lists a directory; nothing where there is none.
fn names(dir: &Path, kind: Listing) -> Result<Vec<String>> {
    let failed = || format!("failed to list {}", dir.display());
    let listed = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.context(failed)?,
    };
    let mut names = Vec::new();
    for entry in listed {
        let entry = entry.context(failed)?;
        let is_dir = entry
            .file_type()
            .is_ok_and(|kind| kind.is_dir() || kind.is_symlink() && entry.path().is_dir());
        if kind == Listing::All || !is_dir {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::super::discover_stopped;
    use evenkeel_op::ErrorKind;
    use std::fs;

    const MARIADB: &str = "10.11.19-MariaDB";

    /// Lays the files out and looks for a server's; returns what it was refused for.
    fn refused(version: &str, files: &[&str], more: &[(&str, &str)]) -> Option<String> {
        let data = tempfile::tempdir().unwrap();
        for name in files {
            let path = data.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "redo").unwrap();
        }
        let version = [("version", version)];
        let settings = version.iter().filter(|(_, version)| !version.is_empty());
        let settings = settings.chain(more);
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        match discover_stopped(data.path(), &settings.collect()) {
            Ok(_) => None,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
                assert!(!error.hints().is_empty(), "{error}");
                Some(error.to_string())
            }
        }
    }

    #[test]
    fn every_shape_that_servers_have_is_known() {
        for (version, files) in [
            (MARIADB, &["ib_logfile0"][..]),
            (MARIADB, &["ib_logfile0", "ib_logfile101"]),
            ("10.6.1-MariaDB", &["ib_logfile0"]),
            ("10.4.1-MariaDB", &["ib_logfile0", "ib_logfile1"]),
            ("5.7.22", &["ib_logfile0", "ib_logfile1", "ib_logfile2"]),
            ("8.0.29", &["ib_logfile0", "ib_logfile1", "ib_logfile101"]),
            (
                "8.0.30",
                &["#innodb_redo/#ib_redo7", "#innodb_redo/#ib_redo8_tmp"],
            ),
            (
                "9.7.4",
                &["#innodb_redo/#ib_redo7", "#innodb_redo/.nfs0007"],
            ),
            (
                MARIADB,
                &["ib_logfile0", "ib_logfile_imports.frm", "ib_errors.log"],
            ),
            ("", &["ib_logfile0", "ib_logfile1"]),
            ("", &["#innodb_redo/#ib_redo7"]),
            ("", &[]),
        ] {
            assert_eq!(refused(version, files, &[]), None, "{version} {files:?}");
        }
    }

    #[test]
    fn every_other_shape_is_refused_by_name() {
        for (version, files, named) in [
            (
                MARIADB,
                &["ib_logfile0", "ib_0000000000003000.log"][..],
                "ib_0000000000003000.log",
            ),
            ("", &["ib_00000000000a3000.log"], "ib_00000000000a3000.log"),
            (MARIADB, &["ib_logfile0", "ib_logfile1"], "ib_logfile1"),
            (
                MARIADB,
                &["ib_logfile0", "#innodb_redo/#ib_redo1"],
                "#innodb_redo",
            ),
            ("5.7.22", &["ib_logfile0", "ib_logfile2"], "ib_logfile1"),
            ("8.0.29", &["ib_logfile1"], "ib_logfile0"),
            (
                "8.0.29",
                &["ib_logfile0", "#innodb_redo/#ib_redo1"],
                "#innodb_redo",
            ),
            (
                "8.0.36",
                &["#innodb_redo/#ib_redo1", "ib_logfile0"],
                "ib_logfile0",
            ),
            (
                "8.0.36",
                &["#innodb_redo/#ib_redo1", "#innodb_redo/notes"],
                "notes",
            ),
            ("8.0.36", &["#innodb_redo/#ib_redo1_old"], "#ib_redo1_old"),
            (
                "",
                &["#innodb_redo/#ib_redo1", "ib_logfile0"],
                "ib_logfile0",
            ),
        ] {
            let said = refused(version, files, &[]);
            let said = said.unwrap_or_else(|| panic!("{version} {files:?}"));
            assert!(said.contains(named), "{version} {files:?}: {said}");
        }
    }

    #[test]
    fn the_setting_alone_is_enough() {
        for value in ["ON", "1", "on"] {
            let said = refused("13.0.1-MariaDB", &[], &[("innodb_log_archive", value)]);
            assert!(said.unwrap().contains("innodb_log_archive"), "{value}");
        }
        assert_eq!(
            refused(
                "13.0.1-MariaDB",
                &["ib_logfile0"],
                &[("innodb_log_archive", "OFF")]
            ),
            None
        );
    }

    #[test]
    fn a_directory_of_its_own_is_looked_at() {
        let redo = tempfile::tempdir().unwrap();
        fs::write(redo.path().join("ib_0000000000003000.log"), "redo").unwrap();
        let place = redo.path().to_str().unwrap();
        let said = refused(MARIADB, &[], &[("innodb_log_group_home_dir", place)]);
        assert!(said.unwrap().contains(place));
    }
}
