//! What a verify found.

use super::sample::{Sample, SampleReport};
use crate::fault;
use crate::map::BlockAddress;
use crate::mutex::held;
use evenkeel_op::{Error, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of files that a finding lists at most.
const FILES_MAX: usize = 5;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The object's name in the repository.
    pub object: String,
    /// What is wrong with it.
    pub what: String,
    /// The generations that cannot be restored in full because of it, ascending. Empty when
    /// nothing needs what is damaged.
    pub generations: Vec<u32>,
    /// Some of the files it affects.
    pub files: Vec<String>,
}

/// What a verify found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct VerifyReport {
    /// The generations that were looked at.
    pub generations: Vec<u32>,
    /// What is damaged; empty when all is well.
    pub findings: Vec<Finding>,
    /// What interrupted runs left, which the next backup or prune removes, and what would repair a finding.
    /// No damage.
    pub notes: Vec<String>,
    /// What could not be checked for lack of keys; empty when everything was.
    pub unchecked: Vec<String>,
    /// How much of the content was read, when not all of it had to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    /// Entries of all generations looked at.
    pub files: u64,
    /// Blocks read and found intact.
    pub blocks: u64,
    /// Bytes of objects read, as stored.
    pub bytes_read: u64,
    /// Segments of archived binary logs whose names and order were looked at.
    pub log_segments: u64,
    /// Those of them that were read.
    pub log_segments_read: u64,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

#[derive(Debug, Default)]
struct Detail {
    generations: BTreeSet<u32>,
    files: BTreeSet<String>,
}

/// Findings as they come in, from many threads.
#[derive(Default)]
pub(crate) struct Findings {
    /// Object and what is wrong, then whom it affects.
    details: Mutex<BTreeMap<(String, String), Detail>>,
    /// Blocks that cannot be read, and the finding that says why.
    places: Mutex<HashMap<BlockAddress, (String, String)>>,
    notes: Mutex<Vec<String>>,
    pub(super) files: AtomicU64,
    pub(super) blocks: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) log_segments: AtomicU64,
    pub(crate) log_segments_read: AtomicU64,
    /// Bytes of content: looked at, and there are.
    pub(super) content_checked: AtomicU64,
    pub(super) content_total: AtomicU64,
}

impl Findings {
    pub(crate) fn add(&self, object: &str, what: impl Into<String>, generation: Option<u32>) {
        let mut details = held(&self.details);
        let detail = details.entry((object.to_owned(), what.into())).or_default();
        detail.generations.extend(generation);
    }

    pub(super) fn add_error(&self, error: &Error, generation: Option<u32>) {
        let (object, what) = fault::describe(error);
        self.add(&object, what, generation);
    }

    /// Adds what is wrong with a part of a map or with a block of a file.
    pub(super) fn add_for(&self, error: &Error, generation: Option<u32>, file: &str) {
        let mut details = held(&self.details);
        let detail = details.entry(fault::describe(error)).or_default();
        detail.generations.extend(generation);
        if detail.files.len() < FILES_MAX {
            detail.files.insert(file.to_owned());
        }
    }

    pub(super) fn add_block(&self, error: &Error, place: BlockAddress, file: &str) {
        self.add_for(error, None, file);
        held(&self.places).insert(place, fault::describe(error));
    }

    /// Says that a generation needs a block; returns whether that block is damaged.
    pub(super) fn needs(&self, generation: u32, place: &BlockAddress) -> bool {
        let Some(key) = held(&self.places).get(place).cloned() else {
            return false;
        };
        let mut details = held(&self.details);
        details
            .entry(key)
            .or_default()
            .generations
            .insert(generation);
        true
    }

    pub(crate) fn note(&self, note: String) {
        held(&self.notes).push(note);
    }

    pub(super) fn is_empty(&self) -> bool {
        held(&self.details).is_empty()
    }

    /// Adds the error of a check that found damage; passes on one that could not look.
    pub(crate) fn take<T>(&self, result: Result<T>, generation: Option<u32>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if fault::is_stop(&error) => Err(error),
            Err(error) => {
                self.add_error(&error, generation);
                Ok(None)
            }
        }
    }

    pub(super) fn sampled(&self, sample: Sample) -> SampleReport {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        sample.report(of(&self.content_checked), of(&self.content_total))
    }

    pub(super) fn into_report(self, generations: Vec<u32>) -> VerifyReport {
        let details = std::mem::take(&mut *held(&self.details));
        let findings = details.into_iter().map(|((object, what), detail)| Finding {
            object,
            what,
            generations: detail.generations.into_iter().collect(),
            files: detail.files.into_iter().collect(),
        });
        VerifyReport {
            generations,
            findings: findings.collect(),
            notes: std::mem::take(&mut *held(&self.notes)),
            unchecked: Vec::new(),
            sample: None,
            files: self.files.load(Ordering::Relaxed),
            blocks: self.blocks.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            log_segments: self.log_segments.load(Ordering::Relaxed),
            log_segments_read: self.log_segments_read.load(Ordering::Relaxed),
        }
    }
}
