//! A checkout that may be broken.

use super::Entry;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A checkout of `HEAD` beside the one somebody works in. Dropped, it is removed.
pub(super) struct Tree {
    root: PathBuf,
    path: PathBuf,
}

impl Tree {
    /// Makes one at `path`. What a killed run left there goes first.
    pub(super) fn make(root: &Path, path: &Path) -> Result<Self> {
        let tree = Self {
            root: root.to_owned(),
            path: path.to_owned(),
        };
        tree.remove();
        let made = tree
            .git(&["worktree", "add", "--quiet", "--detach"])
            .arg(path)
            .arg("HEAD")
            .status()
            .context("failed to run git worktree")?;
        ensure!(made.success(), "git worktree failed: {made}");
        tree.set_apart()?;
        Ok(tree)
    }

    /// Gives the tree's packages another version. Cargo tells those of two checkouts apart by name
    /// and version only: in one target directory it would take what was built of the broken tree for
    /// the whole one's.
    fn set_apart(&self) -> Result<()> {
        let manifest = self.path.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).context("the checkout has no Cargo.toml")?;
        let version = concat!("\nversion = \"", env!("CARGO_PKG_VERSION"));
        ensure!(
            text.matches(version).count() == 1,
            "Cargo.toml does not say the version once"
        );
        fs::write(
            &manifest,
            text.replace(version, &format!("{version}-sabotage")),
        )?;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` while the tree is broken, and restores it.
    pub(super) fn broken<T>(&self, entry: &Entry, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let path = self.path.join(&entry.file);
        let failed = || format!("{}: failed to change {}", entry.name, entry.file);
        let whole = fs::read_to_string(&path).with_context(failed)?;
        let broken = entry
            .apply(&whole)
            .with_context(|| format!("{}: what is to be broken", entry.name))?;
        fs::write(&path, broken).with_context(failed)?;
        let done = work();
        // With a new modification time: cargo is to see that it changed again.
        fs::write(&path, whole).with_context(failed)?;
        done
    }

    fn git(&self, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.args(args).current_dir(&self.root);
        git
    }

    fn remove(&self) {
        // Whether there was one is all the same.
        let _ = self
            .git(&["worktree", "remove", "--force"])
            .arg(&self.path)
            .stderr(Stdio::null())
            .status();
        let _ = fs::remove_dir_all(&self.path);
        let _ = self.git(&["worktree", "prune"]).status();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.remove();
    }
}
