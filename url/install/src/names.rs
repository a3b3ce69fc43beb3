//! What files and functions are called.

use evenkeel_plugins::Function;
use evenkeel_plugins::names::{build, is_build};
use evenkeel_urlcodec::CodeTable;

/// The functions, and what they return.
pub(crate) const FUNCTIONS: [Function; 5] = [
    ("url_compress", "STRING"),
    ("url_decompress", "STRING"),
    ("url_prefix_low", "STRING"),
    ("url_prefix_high", "STRING"),
    ("url_table_id", "STRING"),
];

/// How the names of our files begin.
const STEM: &str = "evenkeel_url";

/// Returns what a library is called that works with a table.
pub(crate) fn library(bytes: &[u8], table: &CodeTable) -> String {
    format!("{STEM}_{}_{}.so", build(bytes), table.id())
}

/// Returns what the file of a table is called.
pub(crate) fn table_file(id: &str) -> String {
    format!("{STEM}_{id}.urltable")
}

/// Returns the id of the table in a library's name; `None` for one that was copied by hand.
#[must_use]
pub fn table_in_name(library: &str) -> Option<&str> {
    let stem = library.strip_prefix(STEM)?.strip_prefix('_')?;
    let (code, id) = stem.strip_suffix(".so")?.split_once('_')?;
    (is_build(code) && is_build(id)).then_some(id)
}

/// Returns whether a file of this name was put there by us.
pub(crate) fn is_our_file(name: &str) -> bool {
    let table = || {
        let id = name.strip_prefix(STEM)?.strip_prefix('_')?;
        id.strip_suffix(".urltable")
    };
    table_in_name(name).is_some() || table().is_some_and(is_build)
}

/// Returns whether functions of this library are those that are spoken of here.
pub(crate) fn is_our_library(name: &str) -> bool {
    let stem = name.strip_prefix("lib").unwrap_or(name);
    stem.starts_with(STEM) && stem.ends_with(".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_files_are_ours() {
        let table = CodeTable::shipped().unwrap();
        let library = library(b"code", &table);
        assert_eq!(table_in_name(&library), Some(&*table.id()));
        assert!(is_our_file(&library) && is_our_library(&library));
        assert!(is_our_file(&table_file(&table.id())));
        for other in [
            "evenkeel_url.so",
            "evenkeel.urltable",
            "evenkeel_url_1_2.so",
            "evenkeel_url_shop.urltable",
            "auth_socket.so",
        ] {
            assert!(!is_our_file(other), "{other}");
        }
        assert!(is_our_library("evenkeel_url.so") && !is_our_library("url.so"));
    }
}
