//! Refuses a restore whose files cannot fit, before anything is written.

use super::names;
use super::staging::Staging;
use evenkeel_op::{Error, Result, units};
use evenkeel_repository::{FileMeta, Reader};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What goes to one filesystem.
#[derive(Debug, Default, PartialEq, Eq)]
struct Need {
    /// A directory on it that exists.
    at: PathBuf,
    roots: Vec<String>,
    bytes: u64,
}

/// Fails when the files of a generation do not fit where their roots go. A filesystem that does
/// not say how much is free is not held against.
pub(super) fn check(roots: &BTreeMap<String, Staging>, reader: &Reader) -> Result<()> {
    check_files(roots, reader.files().map(|record| Ok(record?.meta)))
}

/// Does the same for files that are not a generation's.
pub(crate) fn check_files(
    roots: &BTreeMap<String, Staging>,
    files: impl Iterator<Item = Result<FileMeta>>,
) -> Result<()> {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for meta in files {
        let meta = meta?;
        let (root, _) = names::split(&meta.name)?;
        if let Some((id, _)) = roots.get_key_value(root) {
            let bytes = bytes.entry(id).or_default();
            *bytes = bytes.saturating_add(meta.allocated);
        }
    }
    let places = roots.iter().filter_map(|(id, staging)| {
        let at = staging.place().ancestors().find(|path| path.exists())?;
        // Subvolumes of a btrfs count each for themselves, though they share what is free.
        let device = fs::metadata(at).ok()?.dev();
        let bytes = bytes.get(id.as_str()).copied().unwrap_or(0);
        Some((device, at.to_owned(), id.clone(), bytes))
    });
    by_filesystem(places)
        .iter()
        .try_for_each(|need| refuse_if_short(need, free_at(&need.at)))
}

fn by_filesystem(places: impl Iterator<Item = (u64, PathBuf, String, u64)>) -> Vec<Need> {
    let mut needs: BTreeMap<u64, Need> = BTreeMap::new();
    for (device, at, id, bytes) in places {
        let need = needs.entry(device).or_default();
        if need.roots.is_empty() {
            need.at = at;
        }
        need.roots.push(id);
        need.bytes = need.bytes.saturating_add(bytes);
    }
    needs.into_values().collect()
}

fn free_at(path: &Path) -> Option<u64> {
    let volume = rustix::fs::statvfs(path).ok()?;
    Some(volume.f_bavail * volume.f_frsize)
}

fn refuse_if_short(need: &Need, free: Option<u64>) -> Result<()> {
    let Some(free) = free.filter(|free| *free < need.bytes) else {
        return Ok(());
    };
    let error = Error::refused(format!(
        "{} needs {}, but {} has only {} free",
        need.roots.join(" and "),
        units::bytes(need.bytes),
        need.at.display(),
        units::bytes(free)
    ));
    let is_target = |id: &String| id == super::DATA || id == crate::facts::VOLUME_ROOT;
    let others = need.roots.iter().filter(|id| !is_target(id));
    let error = others.fold(error, |error, id| {
        error.hint(format!("give {id} another directory: --map-root {id}=DIR"))
    });
    Err(if need.roots.iter().any(is_target) {
        error.hint("free space, or give another --target")
    } else {
        error.hint("or free space there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(bytes: u64, roots: &[&str]) -> Need {
        Need {
            at: PathBuf::from("/somewhere"),
            roots: roots.iter().map(|id| (*id).to_owned()).collect(),
            bytes,
        }
    }

    #[test]
    fn roots_on_one_filesystem_need_its_space_together() {
        let place = |device: u64, at: &str, id: &str, bytes: u64| {
            (device, PathBuf::from(at), id.to_owned(), bytes)
        };
        let needs = by_filesystem(
            [
                place(1, "/somewhere", "data", 100),
                place(2, "/fast", "redo", 10),
                place(1, "/somewhere", "undo", 20),
            ]
            .into_iter(),
        );
        assert_eq!(needs[0], need(120, &["data", "undo"]));
        assert_eq!(needs[1].bytes, 10);
    }

    #[test]
    fn what_is_short_is_named_with_what_to_do() {
        let error = refuse_if_short(&need(120, &["data", "undo"]), Some(119)).unwrap_err();
        assert!(
            error.to_string().starts_with("data and undo needs 120"),
            "{error}"
        );
        assert_eq!(error.hints().len(), 2);
        assert!(refuse_if_short(&need(120, &["data"]), Some(120)).is_ok());
        assert!(refuse_if_short(&need(120, &["data"]), None).is_ok());
    }
}
