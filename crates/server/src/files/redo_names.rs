//! What redo log files are called that come and go by themselves.

/// What such a directory is called, wherever it is.
pub(super) const DIRECTORY: &str = "#innodb_redo";
/// What the names of its files begin with: a number follows.
pub(super) const STEM: &str = "#ib_redo";
/// What the names of those end with that are kept ready.
pub(super) const SPARE: &str = "_tmp";

/// Whether a file of this name holds redo, or will.
pub(super) fn is_redo(name: &str) -> bool {
    let number = name.strip_prefix(STEM);
    let number = number.map(|rest| rest.strip_suffix(SPARE).unwrap_or(rest));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether it is one that is kept ready: it was emptied or never used.
pub(super) fn is_spare(name: &str) -> bool {
    is_redo(name) && name.ends_with(SPARE)
}
