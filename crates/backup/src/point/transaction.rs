//! What is known of a transaction in the archive.

use crate::archive::LogPosition;
use serde::Serialize;

/// A transaction in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Transaction {
    /// Where it begins.
    pub at: LogPosition,
    /// Position after it, in the same file.
    pub end: u64,
    /// When it was committed, where its log tells that; else when its last statement began, as its session said.
    pub time: Option<jiff::Timestamp>,
    /// Its GTID, if it has one.
    pub gtid: Option<String>,
}
