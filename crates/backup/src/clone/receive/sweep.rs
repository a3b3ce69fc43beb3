//! Removes from a directory that is taken up what is not to be in it: tables that were dropped meanwhile, and
//! whatever is not what it should be.

use evenkeel_op::disk::remove_any;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Leaves only `files` and `dirs`, by their paths below `top`.
pub(super) fn sweep(top: &Path, files: &BTreeSet<PathBuf>, dirs: &BTreeSet<PathBuf>) -> Result<()> {
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        let dir = top.join(&below);
        let failed = || format!("failed to read {}", shown(&dir).display());
        for entry in fs::read_dir(&dir).context(failed)? {
            let entry = entry.context(failed)?;
            let relative = below.join(entry.file_name());
            let kind = entry.file_type().context(failed)?;
            if kind.is_dir() && dirs.contains(&relative) {
                left.push(relative);
            } else if !(kind.is_file() && files.contains(&relative)) {
                remove_any(&entry.path())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_stays() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        for dir in ["shop", "gone", "t"] {
            fs::create_dir(top.join(dir)).unwrap();
        }
        for file in ["shop/a", "shop/b", "gone/c", "ibdata1", "precious"] {
            fs::write(top.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("precious", top.join("link")).unwrap();
        let set = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        sweep(
            top,
            &set(&["shop/a", "ibdata1", "link", "t"]),
            &set(&["shop"]),
        )
        .unwrap();
        let left = |dir: &Path| {
            let entries = fs::read_dir(dir).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.collect::<BTreeSet<_>>()
        };
        assert_eq!(left(top), ["ibdata1", "shop"].map(str::to_owned).into());
        assert_eq!(left(&top.join("shop")), ["a".to_owned()].into());
    }
}
