//! Binary and relay logs: distinguished from other files by the names that the server's variables
//! give.

use super::class::FileClass;
use std::path::{Path, PathBuf};

/// Where binary and relay logs are, and what they are called.
#[derive(Debug, Clone, Default)]
pub(super) struct Logs {
    /// `log_bin_basename`: directory and stem.
    pub(super) binlog: Option<(PathBuf, String)>,
    /// `log_bin_index`: directory and name.
    pub(super) binlog_index: Option<(PathBuf, String)>,
    /// `relay_log_basename`: directory and stem.
    pub(super) relay: Option<(PathBuf, String)>,
    /// `relay_log_index`: directory and name.
    pub(super) relay_index: Option<(PathBuf, String)>,
}

impl Logs {
    /// Tells the class of a binary or relay log's file; `None` for any other.
    pub(super) fn class(&self, name: &str, dir: &Path) -> Option<FileClass> {
        let is = |place: &Option<(PathBuf, String)>| {
            place
                .as_ref()
                .is_some_and(|(at, own)| at == dir && own == name)
        };
        let rest_of = |place: &Option<(PathBuf, String)>| {
            let (at, stem) = place.as_ref()?;
            (at == dir)
                .then(|| name.strip_prefix(stem.as_str()))
                .flatten()
                .map(str::to_owned)
        };
        if is(&self.binlog_index) {
            return Some(FileClass::BinlogIndex);
        }
        if is(&self.relay_index) {
            return Some(FileClass::RelayLog);
        }
        if rest_of(&self.relay).is_some_and(|rest| is_log_suffix(&rest, true)) {
            return Some(FileClass::RelayLog);
        }
        rest_of(&self.binlog)
            .filter(|rest| is_log_suffix(rest, false))
            .map(|_| FileClass::Binlog)
    }
}

/// Whether `.000012`, `.state`, `.000012.idx`, and for relay logs of named sources `-east.000001`.
fn is_log_suffix(rest: &str, named_source: bool) -> bool {
    let Some((source, after)) = rest.split_once('.') else {
        return false;
    };
    let number = after.strip_suffix(".idx").unwrap_or(after);
    let numbered = number.len() >= 6 && number.bytes().all(|b| b.is_ascii_digit());
    (source.is_empty() || (named_source && source.starts_with('-')))
        && (numbered || after == "state" || (named_source && matches!(after, "index" | "info")))
}
