//! Lays out the files of a scratch: as a restore would make them, but for their content.

use super::contents::Opened;
use super::listing::{TOP, What};
use super::request::ScratchRequest;
use crate::facts::{DATA_ROOT, Facts};
use crate::restore::places::Places;
use crate::restore::{dress, entries, names};
use evenkeel_mount::Scratch;
use evenkeel_op::{Context, Result, Run, Unit};
use evenkeel_repository::FileRecord;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Makes every directory and file of a generation, each file of its length and empty. Those that
/// hold paths are written, with the paths of the roots' `places`.
pub(super) fn lay_out(
    scratch: &mut Scratch,
    opened: &Opened,
    facts: &Facts,
    places: &BTreeMap<String, PathBuf>,
    request: &ScratchRequest,
    run: Run<'_>,
) -> Result<()> {
    let files = scratch.files();
    let lead = lead(opened, facts, places)?;
    let count = opened.reader.count();
    run.progress
        .phase("laying out files", Some(count), Unit::Files);
    for (number, listed) in opened.listing.all().filter(|(number, _)| *number != TOP) {
        run.cancel.check()?;
        let path = files.join(&listed.path);
        match &listed.what {
            What::Directory(Some(_)) => entries::make_dir(&path)?,
            // Of no generation: what leads to directories should be entered by all, whatever the umask
            // is.
            What::Directory(None) => {
                entries::make_dir(&path)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context(|| {
                    format!("failed to create {} readable for everyone", path.display())
                })?;
            }
            What::File(record) => {
                let file = File::create_new(&path)
                    .context(|| format!("failed to create {}", path.display()))?;
                file.set_len(record.meta.size)
                    .context(|| format!("failed to size {}", path.display()))?;
                if entries::names_places(&record.meta.name, facts)? {
                    write_whole(&file, &path, opened, record)?;
                    lead.repoint(&path)?;
                } else {
                    scratch.adopt(&path, u64::from(number), record.meta.size)?;
                }
                dress::dress(file.as_fd(), &path, &record.meta, request.owner)?;
            }
        }
        run.progress.advance(1);
    }
    let roots = places.iter();
    let roots = roots.map(|(id, place)| (id.as_str(), place.as_path()));
    entries::link_schemas(&files.join(DATA_ROOT), roots, false)?;
    for (_, listed) in opened.listing.all() {
        if let What::Directory(Some(record)) = &listed.what {
            dress::dress_dir(&files.join(&listed.path), &record.meta, request.owner)?;
        }
    }
    run.progress.end();
    Ok(())
}

/// Says where the paths in files lead now.
fn lead(opened: &Opened, facts: &Facts, places: &BTreeMap<String, PathBuf>) -> Result<Places> {
    let mut lead = Places::new(moved(&facts.roots, places));
    for (_, listed) in opened.listing.all() {
        if let What::File(record) = &listed.what {
            let (id, _) = names::split(&record.meta.name)?;
            if let Some(root) = places.get(id) {
                lead.know(&record.meta.name, root)?;
            }
        }
    }
    Ok(lead)
}

fn write_whole(file: &File, path: &Path, opened: &Opened, record: &FileRecord) -> Result<()> {
    let mut bytes = vec![0; record.meta.size as usize];
    opened.reader.open_file(record)?.read_at(0, &mut bytes)?;
    file.write_all_at(&bytes, 0)
        .context(|| format!("failed to write {}", path.display()))
}

/// Pairs the places where roots were with those where they are.
fn moved(
    from: &BTreeMap<String, impl AsRef<OsStr>>,
    to: &BTreeMap<String, PathBuf>,
) -> Vec<(String, PathBuf, PathBuf)> {
    let pairs = from
        .iter()
        .filter_map(|(id, old)| Some((id.clone(), PathBuf::from(old), to.get(id)?.clone())));
    pairs.collect()
}

/// Returns whose the data directory is.
pub(super) fn owner_of(opened: &Opened) -> Option<(u32, u32)> {
    let data = opened.listing.find(TOP, OsStr::new(DATA_ROOT))?;
    let attributes = opened.listing.get(data)?.attributes();
    Some((attributes.uid, attributes.gid))
}

/// Gives paths in the files of a scratch that becomes a directory of its own their last places.
pub(super) fn move_places(
    files: &Path,
    facts: &Facts,
    from: &BTreeMap<String, PathBuf>,
    to: &BTreeMap<String, PathBuf>,
) -> Result<()> {
    let pairs = moved(from, to);
    let lead = Places::new(pairs.clone()).leaving_strays();
    for id in from.keys() {
        let root = files.join(id);
        let mut waiting = vec![root.clone()];
        while let Some(dir) = waiting.pop() {
            let failed = || format!("failed to read {}", dir.display());
            for entry in fs::read_dir(&dir).context(failed)? {
                let entry = entry.context(failed)?;
                let (path, kind) = (entry.path(), entry.file_type().context(failed)?);
                let name = path.strip_prefix(files).unwrap_or(&path).to_string_lossy();
                if kind.is_dir() {
                    waiting.push(path.clone());
                } else if kind.is_file() && entries::names_places(&escaped(&name), facts)? {
                    lead.repoint(&path)?;
                } else if kind.is_symlink() {
                    move_link(&path, &pairs)?;
                }
            }
        }
    }
    Ok(())
}

/// Names with backslashes are escaped in generations.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\")
}

fn move_link(link: &Path, moved: &[(String, PathBuf, PathBuf)]) -> Result<()> {
    let failed = || format!("failed to move the link {}", link.display());
    let target = fs::read_link(link).context(failed)?;
    let found = moved.iter().find(|(_, old, _)| target == *old);
    if let Some((_, _, new)) = found {
        fs::remove_file(link).context(failed)?;
        std::os::unix::fs::symlink(new, link).context(failed)?;
    }
    Ok(())
}
