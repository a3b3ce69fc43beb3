//! Developer tasks: the rules of the house as a test, the proof that tests fail when what they guard
//! is broken, the machine for tests that need a kernel of their own, the long loops in full, which
//! tests a change touches, where their time goes, and what goes out with a release.
//!
//! Nothing of the product is a dependency here: a task is built in seconds.

pub mod affected;
mod git;
pub mod machine;
mod record;
pub mod release;
pub mod sabotage;
pub mod soak;
mod stop;
pub mod tidy;
pub mod times;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a check exits with when it found something, as `evenkeel verify` does.
pub const FOUND: u8 = 4;

/// Returns the top of the checkout that cargo runs this in. Two clones may share what was built: the one
/// that it was built from may be gone.
#[must_use]
pub fn root() -> PathBuf {
    let built = || env!("CARGO_MANIFEST_DIR").into();
    let here: PathBuf = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(built, Into::into);
    here.parent().unwrap_or(&here).to_path_buf()
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
    Ok(workspace::Workspace::read(root)?.target_directory)
}
