//! Which files there are, and what they may be called.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A file that belongs to the project.
#[derive(Debug)]
pub struct Tracked {
    /// The path below the top of the checkout, with `/`.
    pub path: String,
    /// The content, unless it is not text.
    pub text: Option<String>,
}

/// Returns all files git tracks or would track; files that are gone from the work tree are left out.
pub(crate) fn tracked(root: &Path) -> Result<Vec<Tracked>> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .context("failed to run git ls-files")?;
    ensure!(
        listed.status.success(),
        "git ls-files failed: {}",
        listed.status
    );
    let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in names.split('\0').filter(|name| !name.is_empty()) {
        if let Ok(bytes) = std::fs::read(root.join(path)) {
            files.push(Tracked {
                path: path.to_owned(),
                text: String::from_utf8(bytes).ok(),
            });
        }
    }
    Ok(files)
}

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = [
    "common", "util", "utils", "helper", "helpers", "manager", "misc",
];

/// Checks that no Rust file and no folder above one has an empty name.
pub(super) fn check_name(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".rs")?;
    let bad = stem.split('/').find(|part| EMPTY_NAMES.contains(part))?;
    Some(format!(
        "{path}:1: '{bad}' names nothing: call it by what it does"
    ))
}

/// Checks that a module with modules below it is the `mod.rs` of their folder.
pub(super) fn check_style(files: &[Tracked]) -> Vec<String> {
    let folders: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| file.path.match_indices('/').map(|(at, _)| &file.path[..at]))
        .collect();
    let stems = files
        .iter()
        .filter_map(|file| file.path.strip_suffix(".rs"));
    stems
        .filter(|stem| stem.contains("/src/") && folders.contains(stem))
        .map(|stem| format!("{stem}.rs:1: a folder's module stands in it: call it {stem}/mod.rs"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_module_stands_in_it() {
        let of = |path: &str| Tracked {
            path: path.to_owned(),
            text: None,
        };
        let [beside, inside] = ["crates/op/src/a.rs", "crates/op/src/b/mod.rs"].map(of);
        let [below, plain] = ["crates/op/src/a/c.rs", "crates/op/src/ab.rs"].map(of);
        let found = check_style(&[beside, inside, below, plain]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/op/src/a.rs:1: "), "{found:?}");
    }

    #[test]
    fn empty_names_are_seen_in_files_and_folders() {
        assert!(check_name("crates/op/src/util.rs").is_some());
        assert!(check_name("crates/op/tests/common/mod.rs").is_some());
        assert!(check_name("crates/op/src/units.rs").is_none());
        assert!(check_name("docs/common/page.md").is_none());
    }
}
