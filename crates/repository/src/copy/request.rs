//! What a copy is asked for, and what it answers.

use serde::Serialize;
use std::time::Duration;

/// Which generations to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// Those newer than any that the other repository has of this one.
    New,
    /// The newest so many.
    Latest(u32),
    /// These, by number.
    These(Vec<u32>),
}

/// How to copy.
#[derive(Debug, Clone)]
pub struct CopyTo {
    /// Which generations.
    pub chosen: Chosen,
    /// Only those of this source.
    pub source: Option<String>,
    /// Whether what is encrypted may be written in clear.
    pub decrypt: bool,
    /// Threads that copy.
    pub workers: usize,
    /// Bytes read a second at most, 0 for any number.
    pub rate_bytes_per_s: u64,
    /// How long to wait for others to end, on either side.
    pub wait: Duration,
}

impl Default for CopyTo {
    fn default() -> Self {
        Self {
            chosen: Chosen::New,
            source: None,
            decrypt: false,
            workers: 2,
            rate_bytes_per_s: 0,
            wait: Duration::ZERO,
        }
    }
}

/// By which way generations were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyWay {
    /// Object by object: the other repository is a copy of this one.
    Objects,
    /// Block by block: it is a repository of its own.
    Blocks,
}

/// A generation that was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Its number.
    pub generation: u32,
    /// Its number in the other repository.
    pub becomes: u32,
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyReport {
    /// By which way.
    pub way: CopyWay,
    /// The generations that are there now and were not before, oldest first.
    pub copied: Vec<Copied>,
    /// Those asked for that were there already.
    pub present: Vec<u32>,
    /// Those that are older than what is there, and were not asked for by number.
    pub left_out: Vec<u32>,
    /// Objects that were sent; by the way of blocks, none are.
    pub objects: u64,
    /// Bytes that were sent: of objects, or stored by the other repository.
    pub bytes_copied: u64,
    /// Bytes of objects that an earlier, interrupted copy had sent whole.
    pub bytes_kept: u64,
    /// Objects of archived binary logs that were sent.
    pub archive_objects: u64,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl CopyReport {
    pub(super) fn new(way: CopyWay) -> Self {
        Self {
            way,
            copied: Vec::new(),
            present: Vec::new(),
            left_out: Vec::new(),
            objects: 0,
            bytes_copied: 0,
            bytes_kept: 0,
            archive_objects: 0,
            notes: Vec::new(),
        }
    }
}
