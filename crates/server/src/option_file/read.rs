//! Walks option files and the files they include.

use super::line::{self, Fault, Line};
use super::{OptionFileResult, OptionLine};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How deep files may include each other.
const DEPTH_MAX: u32 = 10;

/// Longest path that the MySQL programs follow, in bytes.
const PATH_MAX: usize = 508;

/// Why a file was given up.
struct GivenUp {
    line: u32,
    why: String,
}

/// Collects the options of some groups.
pub(super) struct Reader {
    wanted: Vec<Vec<u8>>,
    home: Option<PathBuf>,
    found: OptionFileResult,
}

impl Reader {
    /// Makes a reader for these groups. `home` is what `~/` means in `!include`.
    pub(super) fn new(wanted: Vec<Vec<u8>>, home: Option<PathBuf>) -> Self {
        Self {
            wanted,
            home,
            found: OptionFileResult::default(),
        }
    }

    /// Returns what was collected.
    pub(super) fn finish(self) -> OptionFileResult {
        self.found
    }

    /// Reads a file that no other file includes.
    pub(super) fn top_level(&mut self, path: &Path, required: bool) -> Result<()> {
        match self.file(path, 0) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if required => Err(unreadable("option file", path, error)),
            // A usual file that is not there, or not for us to read.
            Ok(Err(_)) => Ok(()),
            Err(given_up) => Err(fault(path, &given_up)),
        }
    }

    /// Reads a text as the file `path`.
    pub(super) fn text(&mut self, path: &Path, text: &[u8]) -> Result<()> {
        self.lines(path, text, 0).map_err(|g| fault(path, &g))
    }

    /// Reads one file. The inner error is one of opening it, the outer one of what it says.
    fn file(&mut self, path: &Path, depth: u32) -> Result<std::io::Result<()>, GivenUp> {
        if path.as_os_str().len() > PATH_MAX {
            let shown = path.display();
            self.warn(format!("{shown} is ignored: its path is too long"));
            return Ok(Ok(()));
        }
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return Ok(Err(error)),
        };
        if metadata.is_file() && metadata.permissions().mode() & 0o002 != 0 {
            // Otherwise anybody could change what a privileged program does.
            let shown = path.display();
            self.warn(format!("{shown} is ignored: it is world-writable"));
            return Ok(Ok(()));
        }
        if metadata.is_dir() {
            return Ok(Ok(()));
        }
        match fs::read(path) {
            Ok(text) => self.lines(path, &text, depth).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn lines(&mut self, path: &Path, text: &[u8], depth: u32) -> Result<(), GivenUp> {
        // The group's name once there is one, and whether it is asked for.
        let mut group: Option<(String, bool)> = None;
        for (number, piece) in (1..).zip(line::pieces(text)) {
            let give_up = |why: &str| GivenUp {
                line: number,
                why: why.to_owned(),
            };
            if depth >= DEPTH_MAX && line::is_directive(piece) {
                self.warn(format!(
                    "{}, line {number}: ignored, includes are nested too deeply",
                    path.display()
                ));
                continue;
            }
            match line::parse(piece) {
                Ok(Line::Nothing) => {}
                Ok(Line::Group(name)) => {
                    let wanted = self.wanted.iter().any(|w| w.eq_ignore_ascii_case(&name));
                    group = Some((text_of(&name), wanted));
                }
                Ok(Line::Option(name, value)) => match &group {
                    None => return Err(give_up("an option before the first [group]")),
                    Some((_, false)) => {}
                    Some((group, true)) => self.found.options.push(OptionLine {
                        group: group.clone(),
                        name: text_of(&name),
                        value: value.as_deref().map(text_of),
                        file: path.to_owned(),
                        line: number,
                    }),
                },
                Ok(Line::Include(other)) => {
                    let other = self.expanded(&other);
                    self.included(&other, depth + 1);
                }
                Ok(Line::IncludeDir(dir)) => {
                    let dir = PathBuf::from(OsStr::from_bytes(&dir));
                    let files = files_in(&dir)
                        .map_err(|error| give_up(&format!("{}: {error}", dir.display())))?;
                    for file in files {
                        self.included(&file, depth + 1);
                    }
                }
                Err(Fault::Group) => return Err(give_up("a group without ']'")),
                Err(Fault::NoPath(word)) => {
                    return Err(give_up(&format!("!{word} without a path")));
                }
            }
        }
        Ok(())
    }

    /// Reads an included file: what is wrong with it is its own business.
    fn included(&mut self, path: &Path, depth: u32) {
        if let Err(given_up) = self.file(path, depth) {
            self.warn(format!(
                "{}, line {}: {}; the rest of this file is ignored",
                path.display(),
                given_up.line,
                given_up.why
            ));
        }
    }

    fn expanded(&self, path: &[u8]) -> PathBuf {
        match (path.strip_prefix(b"~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
            _ => PathBuf::from(OsStr::from_bytes(path)),
        }
    }

    fn warn(&mut self, text: String) {
        self.found.warnings.push(text);
    }
}

fn fault(path: &Path, given_up: &GivenUp) -> Error {
    Error::usage(format!(
        "{}, line {}: {}",
        path.display(),
        given_up.line,
        given_up.why
    ))
    .hint("fix the file: the MySQL programs stop at this line too")
}

/// Returns the option files of a directory in the order of their bytes.
fn files_in(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().into_vec();
        if name.ends_with(b".cnf") {
            names.push(name);
        }
    }
    names.sort_unstable();
    let path = |name: Vec<u8>| dir.join(std::ffi::OsString::from_vec(name));
    Ok(names.into_iter().map(path).collect())
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
