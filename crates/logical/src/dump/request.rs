//! What to dump, how, and where to.

use super::compression::Compression;
use super::encode::Format;
use super::filter::Filter;
use super::location::DumpLocation;
use crate::objects::Definer;
use evenkeel_server::lock::{Limits, LockChoice};
use evenkeel_server::throttle::Limits as Throttling;

/// Where to.
#[derive(Debug, Clone)]
pub struct Directory {
    /// Made when it is not there, and refused when something is in it.
    pub place: DumpLocation,
    /// What to do about one that a dump left which did not end.
    pub leftover: Leftover,
}

/// What to do about a dump that did not end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leftover {
    /// Take it for a mistake.
    #[default]
    Refuse,
    /// Clear it, and start over.
    Clear,
    /// Keep what a new view shows too. Where there is none, begin.
    GoOn,
}

/// What to dump, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// How many connections read at once; at least 1.
    pub threads: usize,
    /// Which tables.
    pub filter: Filter,
    /// What rows look like.
    pub format: Format,
    /// How files are packed.
    pub compression: Compression,
    /// About how large a chunk is before it is packed, in bytes.
    pub chunk_bytes: u64,
    /// What makes the connections see one point in time; `None` takes no lock.
    pub lock: Option<LockChoice>,
    /// How long to wait for the lock.
    pub limits: Limits,
    /// What becomes of definers.
    pub definer: Definer,
    /// When readers are to rest.
    pub throttle: Throttling,
}
