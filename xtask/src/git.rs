//! What git says of the checkout. Nothing here changes it.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::Command;

/// How many digits of a commit tell it apart where people read.
const SHORT: usize = 12;

/// Where records are, which change while what they tell of does not.
pub(crate) const RECORDS: &str = "xtask/records";

/// Returns the commit of `HEAD`. With `+changes` behind it when the work tree is another, and a number
/// that tells one set of changes from another: what passed with one has not passed with the next.
pub(crate) fn commit(root: &Path) -> Result<String> {
    let head = head(root)?;
    let diff = ask(
        root,
        &["diff", "HEAD", "--", ".", ":(exclude)xtask/records"],
    )?;
    let mut others = untracked(root)?;
    others.retain(|path| !path.starts_with(RECORDS));
    if diff.is_empty() && others.is_empty() {
        return Ok(head);
    }
    let mut changes = DefaultHasher::new();
    changes.write(&diff);
    for path in others {
        changes.write(path.as_bytes());
        // One that goes just now counts by its name.
        changes.write(&std::fs::read(root.join(&path)).unwrap_or_default());
    }
    Ok(format!("{head}+changes.{:08x}", changes.finish() >> 32))
}

/// Returns the commit of `HEAD`, whatever the work tree is.
pub(crate) fn head(root: &Path) -> Result<String> {
    let reported = ask(root, &["rev-parse", "HEAD"])?;
    Ok(String::from_utf8(reported)?.trim().to_owned())
}

/// Returns the tags of `HEAD`.
pub(crate) fn tags(root: &Path) -> Result<Vec<String>> {
    let reported = ask(root, &["tag", "--points-at", "HEAD"])?;
    Ok(String::from_utf8(reported)?
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Returns the commits whose records count: `now`, and with `since` that commit and those after it.
pub(crate) fn since(root: &Path, now: &str, since: Option<&str>) -> Result<BTreeSet<String>> {
    let mut commits = BTreeSet::from([now.to_owned()]);
    if let Some(since) = since {
        let first = ask(root, &["rev-parse", "--verify", "--end-of-options", since])?;
        let range = format!("{}..HEAD", String::from_utf8_lossy(&first).trim());
        let after = ask(root, &["rev-list", &range])?;
        for reported in [first, after] {
            commits.extend(String::from_utf8(reported)?.lines().map(str::to_owned));
        }
    }
    Ok(commits)
}

/// Returns a commit as people read it.
pub(crate) fn short(commit: &str) -> String {
    let (hash, changes) = commit.split_at(commit.find('+').unwrap_or(commit.len()));
    let changed = if changes.is_empty() { "" } else { "+changes" };
    hash.chars().take(SHORT).chain(changed.chars()).collect()
}

/// Returns the files that differ from `base`, and those that git does not know yet.
pub(crate) fn changed(root: &Path, base: &str) -> Result<BTreeSet<String>> {
    // Of a renamed file both names count: something may have needed the old one.
    let reported = ask(
        root,
        &["diff", "--name-only", "--no-renames", "-z", base, "--"],
    )?;
    let mut files = names(reported)?;
    files.extend(untracked(root)?);
    Ok(files)
}

fn untracked(root: &Path) -> Result<BTreeSet<String>> {
    names(ask(
        root,
        &["ls-files", "-z", "--others", "--exclude-standard"],
    )?)
}

fn names(reported: Vec<u8>) -> Result<BTreeSet<String>> {
    let text = String::from_utf8(reported).context("a file name is not UTF-8")?;
    let names = text.split('\0').filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

fn ask(root: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let reported = Command::new("git")
        .args(args)
        .current_dir(root)
        .output()
        .context("failed to run git")?;
    let why = String::from_utf8_lossy(&reported.stderr);
    ensure!(reported.status.success(), "git {} failed: {why}", args[0]);
    Ok(reported.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(root: &Path, args: &[&str]) {
        let me = ["-c", "user.name=n", "-c", "user.email=n@localhost"];
        ask(root, &[&me, args].concat()).unwrap();
    }

    #[test]
    fn what_changed_is_known_and_each_change_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        git(root, &["init", "--quiet"]);
        write("kept", "1");
        write("old", "a file that is renamed");
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "-m", "first"]);
        let clean = commit(root).unwrap();
        assert_eq!(clean, head(root).unwrap());
        assert!(changed(root, "HEAD").unwrap().is_empty());

        git(root, &["mv", "old", "new"]);
        write("fresh", "1");
        let first = commit(root).unwrap();
        assert!(first.starts_with(&format!("{clean}+changes.")), "{first}");
        assert_eq!(short(&first), format!("{}+changes", &clean[..SHORT]));
        let files: Vec<String> = changed(root, "HEAD").unwrap().into_iter().collect();
        assert_eq!(files, ["fresh", "new", "old"]);
        write("fresh", "2");
        assert_ne!(commit(root).unwrap(), first);
        assert!(changed(root, "nowhere").is_err());
    }
}
