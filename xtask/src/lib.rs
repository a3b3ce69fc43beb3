//! Developer tasks: the rules of the house as a test, the pages made from the command line's own
//! declaration, the proof that tests fail when what they guard is broken, and the machine for tests that
//! need a kernel of their own.

pub mod machine;
pub mod pages;
pub mod sabotage;
pub mod tidy;

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the top of the checkout that this was built from.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Plans a run of cargo as if it were typed: without what cargo told us of our own package. That
/// counts as a change to some dependencies, and everything above them would be built again.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns where cargo puts what it builds.
fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    let told = cargo()
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("failed to run cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    let path = metadata["target_directory"].as_str();
    Ok(path.context("cargo names no target directory")?.into())
}
