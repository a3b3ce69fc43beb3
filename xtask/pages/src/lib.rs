//! Pages made from the command line's own declaration: reference, man pages, completions.

mod reference;

use anyhow::{Context, Result, ensure};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

const REFERENCE: &str = "docs/src/reference.md";

/// Returns the top of the checkout that cargo runs this in. Two clones may share what was built: the one
/// that it was built from may be gone.
#[must_use]
pub fn root() -> PathBuf {
    let built = || env!("CARGO_MANIFEST_DIR").into();
    let here: PathBuf = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(built, Into::into);
    here.ancestors().nth(2).unwrap_or(&here).to_path_buf()
}

/// Writes the command reference of the book.
pub fn write_reference(root: &Path) -> Result<()> {
    let page = reference::page(&evenkeel_cli::command());
    std::fs::write(root.join(REFERENCE), page)
        .with_context(|| format!("failed to write {REFERENCE}"))
}

/// Checks that the command reference of the book is what the commands say of themselves.
pub fn check_reference(root: &Path) -> Result<()> {
    let written = std::fs::read_to_string(root.join(REFERENCE))
        .with_context(|| format!("failed to read {REFERENCE}"))?;
    let now = reference::page(&evenkeel_cli::command());
    let differs = written
        .lines()
        .zip(now.lines())
        .position(|(then, now)| then != now);
    ensure!(
        written == now,
        "{REFERENCE}:{} differs from --help-all; run `cargo pages reference --write` and read the diff",
        differs.map_or(1, |line| line + 1)
    );
    Ok(())
}

/// Writes `evenkeel.1` and one page per command.
pub fn write_man(out: &Path) -> Result<()> {
    std::fs::create_dir_all(out)?;
    clap_mangen::generate_to(evenkeel_cli::command(), out).context("failed to write man pages")
}

/// Writes completions for every shell clap knows.
pub fn write_completions(out: &Path) -> Result<()> {
    std::fs::create_dir_all(out)?;
    for shell in [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::Elvish,
        Shell::PowerShell,
    ] {
        clap_complete::generate_to(shell, &mut evenkeel_cli::command(), "evenkeel", out)
            .with_context(|| format!("failed to write completions for {shell}"))?;
    }
    Ok(())
}
