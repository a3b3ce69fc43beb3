//! Developer tasks: the rules of the house as a test, the pages made from the command line's own
//! declaration, and the proof that tests fail when what they guard is broken.

pub mod pages;
pub mod sabotage;
pub mod tidy;

use std::path::{Path, PathBuf};

/// Returns the top of the checkout that this was built from.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
