//! What functions and files are called.

use evenkeel_plugins::Function;
use evenkeel_plugins::names::{build, is_build};

/// The functions, and what they return.
pub(super) const FUNCTIONS: [Function; 8] = [
    ("queue_wait", "INTEGER"),
    ("queue_wait_n", "INTEGER"),
    ("queue_end", "INTEGER"),
    ("queue_abort", "INTEGER"),
    ("queue_rowid", "INTEGER"),
    ("queue_set_srcid", "INTEGER"),
    ("queue_compact", "INTEGER"),
    ("queue_stats", "STRING"),
];

/// How the names of our files begin.
const STEM: &str = "evenkeel_queue";

/// Returns what a library is called in a plugin directory.
pub(super) fn library(bytes: &[u8]) -> String {
    format!("{STEM}_{}.so", build(bytes))
}

/// Returns whether a file of this name was put there by us.
pub(super) fn is_our_file(name: &str) -> bool {
    let hash = name
        .strip_prefix(STEM)
        .and_then(|rest| rest.strip_prefix('_'))
        .and_then(|rest| rest.strip_suffix(".so"));
    hash.is_some_and(is_build)
}

/// Returns whether a file of this name may be a library of the engine.
#[must_use]
pub fn is_our_library(name: &str) -> bool {
    name.starts_with(STEM) && name.ends_with(".so")
}

/// Returns what the library for a server is called where it was built: `server` is as
/// [`Found::server`](super::Found::server). Whoever gave it another name has not changed what it is for: see
/// [`built_for`](super::built_for).
#[must_use]
pub fn library_for(server: &str) -> String {
    format!("{STEM}-{server}.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_files_are_ours() {
        let name = library(b"code");
        assert!(is_our_file(&name) && is_our_library(&name), "{name}");
        let built = library_for("mariadb-10.11.19");
        assert!(!is_our_file(&built) && is_our_library(&built));
        for other in ["ha_queue.so", "evenkeel_queue_1.so", "libqueue_engine.so"] {
            assert!(!is_our_file(other), "{other}");
        }
        assert!(!is_our_library("libqueue_engine.so"));
    }
}
