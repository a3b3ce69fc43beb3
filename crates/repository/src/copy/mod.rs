//! Copies generations to another place: object by object where the other repository is a copy of this
//! one, block by block where it is a repository of its own. Argued in `docs/src/design/copy.md`.

mod archive;
mod blocks;
mod choose;
mod commit;
mod objects;
mod plan;
mod send;

use crate::crypt::{self, Access};
use crate::repository::Repository;
use crate::store::Location;
use evenkeel_op::rate::RateLimit;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
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
    fn new(way: CopyWay) -> Self {
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

/// What every part of a copy has at hand.
struct Run<'r> {
    how: &'r CopyTo,
    rate: RateLimit,
    sent: AtomicU64,
    objects: AtomicU64,
    progress: &'r dyn Progress,
    cancel: &'r Cancel,
}

impl Run<'_> {
    /// Waits for the turn of so many bytes, and counts them.
    fn pace(&self, bytes: u64) -> Result<()> {
        self.rate.pace(bytes, || self.cancel.is_cancelled());
        self.progress.advance(bytes);
        self.cancel.check()
    }

    fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Repository {
    /// Copies generations to the repository at `to`, which is made if it is not there: as a copy of
    /// this one, or encrypted for whom `to` says, or in clear if that was asked for. What is there
    /// already is not sent again. Each generation is absent or whole over there, whenever the copy
    /// ends; what an interrupted one sent, object by object, is used by the next.
    pub fn copy_to(
        &self,
        to: &Location,
        how: &CopyTo,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<CopyReport> {
        let run = Run {
            how,
            rate: RateLimit::new(how.rate_bytes_per_s),
            sent: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            progress,
            cancel,
        };
        let there = match Self::open_on(to.store()) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == ErrorKind::NoRepository => None,
            Err(error) => return Err(error),
        };
        let changes_keys = !to.encrypt().is_empty() || (how.decrypt && self.keys().is_encrypted());
        match there {
            Some(there) if there.id() == self.id() => {
                if !to.encrypt().is_empty() {
                    crypt::check_wish(to.encrypt(), to.credentials(), &there)?;
                }
                objects::copy(self, there, &run)
            }
            None if !changes_keys => {
                objects::copy(self, Self::create_like(to.store(), self)?, &run)
            }
            _ => {
                let there = self.other(to, how)?;
                blocks::copy(self, &there, &run)
            }
        }
    }

    /// Opens or makes a repository of its own for this one's generations.
    fn other(&self, to: &Location, how: &CopyTo) -> Result<Self> {
        match self.access() {
            Access::Plain | Access::Reader => {}
            Access::Writer => return Err(crypt::no_reader()),
            Access::Locked => return Err(crypt::no_key()),
        }
        // What opens this one is not asked of one that is to be in clear.
        let place = match how.decrypt {
            true => Location::on(to.store()),
            false => to.clone(),
        };
        let there = Self::open_or_create(&place)?;
        if there.access() == Access::Plain && self.access() != Access::Plain && !how.decrypt {
            return Err(Error::new(
                ErrorKind::WrongKey,
                format!(
                    "{} is not encrypted: data that is encrypted here would be unencrypted there",
                    there.place()
                ),
            )
            .hint("if you want that, add --decrypt"));
        }
        Ok(there)
    }
}
