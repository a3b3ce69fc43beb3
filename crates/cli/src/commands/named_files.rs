//! Files of statements as they were named: none of them twice, and of captures what is missing.

use super::traffic_file::TrafficFile;
use crate::settings::is_url;
use crate::show::Ui;
use evenkeel_op::{Error, Result};
use evenkeel_traffic::kept::FilePart;
use rustix::fs::{FileType, fstat, stat};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// What a name leads to, by whatever other names it can be reached.
#[derive(PartialEq, Eq, Hash)]
enum Named {
    Inode(u64, u64),
    Url(String),
    Input,
}

impl Named {
    /// `None` where nothing is there, or something that is read once: reading it says so.
    fn of(path: &Path) -> Option<Self> {
        if is_url(path) {
            let url = path.to_string_lossy();
            return Some(Self::Url(url.trim_end_matches('/').to_owned()));
        }
        let is_input = path == Path::new("-");
        let found = match is_input {
            true => fstat(std::io::stdin()),
            false => stat(path),
        };
        match found {
            Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile | FileType::Directory => {
                    Some(Self::Inode(found.st_dev, found.st_ino))
                }
                _ => is_input.then_some(Self::Input),
            },
            Err(_) => None,
        }
    }
}

/// Refuses files that are named twice: their statements would count twice. Another name of the same file does not make
/// it another one, nor does that of a directory in which it is.
///
/// Errors: `Usage` where one is.
pub(super) fn refuse_twice(paths: &[PathBuf]) -> Result<()> {
    let mut seen: HashMap<Named, &Path> = HashMap::new();
    for path in paths {
        let Some(named) = Named::of(path) else {
            continue;
        };
        if let Some(before) = seen.insert(named, path) {
            let [before, again] = [before.display(), path.display()];
            return Err(match before.to_string() == again.to_string() {
                true => Error::usage(format!("{again} is named twice")),
                false => Error::usage(format!("{before} and {again} are the same file")),
            }
            .hint("name each file once: its statements would count twice"));
        }
    }
    for path in paths.iter().filter(|path| !is_url(path)) {
        let above = path.canonicalize().ok();
        let above = above.as_deref().and_then(Path::parent).and_then(Named::of);
        if let Some(directory) = above.and_then(|above| seen.get(&above)) {
            return Err(Error::usage(format!(
                "{} is in {}, which is named as well",
                path.display(),
                directory.display()
            ))
            .hint("name either: its statements would count twice"));
        }
    }
    Ok(())
}

/// Refuses copies of a capture's file, and says where of a capture only some files were named.
///
/// Errors: `Usage` where one is there twice.
pub(super) fn check_parts(files: &[&TrafficFile], ui: &Ui) -> Result<()> {
    let mut captures: BTreeMap<&str, (BTreeSet<u64>, bool)> = BTreeMap::new();
    for FilePart {
        capture,
        number,
        is_last,
    } in files.iter().filter_map(|file| file.part())
    {
        let (numbers, has_end) = captures.entry(capture).or_default();
        *has_end |= is_last;
        if !numbers.insert(*number) {
            return Err(Error::usage(format!(
                "file {number} of the capture {capture} is named twice"
            ))
            .hint("name each file once: its statements would count twice"));
        }
    }
    for (capture, (numbers, has_end)) in captures {
        let last = numbers.last().copied().unwrap_or(0);
        let before = match last.saturating_sub(numbers.len() as u64) {
            0 => None,
            1 => Some("1 before it was not named".to_owned()),
            many => Some(format!("{many} before it were not named")),
        };
        let end = (!has_end).then(|| {
            "what the capture missed is not known: its last file says so, if it was not killed"
                .to_owned()
        });
        let missing: Vec<String> = before.into_iter().chain(end).collect();
        if !missing.is_empty() {
            let named: Vec<String> = numbers.iter().map(u64::to_string).collect();
            ui.warn(&format!(
                "of the files of the capture {capture}, only these were named: {}; {}",
                named.join(", "),
                missing.join("; ")
            ));
        }
    }
    Ok(())
}
