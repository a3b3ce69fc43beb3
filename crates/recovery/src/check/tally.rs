//! What reading came to: counts of each thread, and findings that all of them share.

use super::report::{FileNote, Severity};
use evenkeel_innodb::kind::KINDS;
use evenkeel_innodb::{PageHeader, PageKind};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Findings that are kept in memory and reported one by one; beyond that they are counted.
const TOLD_MAX: usize = 1000;
/// Notices of which no more are kept: they must not take the place of damage.
const NOTICES_MAX: usize = 100;

/// The counts of one thread.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) bytes: u64,
    pub(super) checked: u64,
    pub(super) empty: u64,
    pub(super) damaged: u64,
    pub(super) read_again: u64,
    pub(super) lsn_max: u64,
    pub(super) kinds: [u64; KINDS],
    pub(super) unchecked: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds the counts of another thread.
    pub(super) fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.checked += other.checked;
        self.empty += other.empty;
        self.damaged += other.damaged;
        self.read_again += other.read_again;
        self.lsn_max = self.lsn_max.max(other.lsn_max);
        for (sum, more) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += more;
        }
        for (why, more) in &other.unchecked {
            *self.unchecked.entry(why).or_default() += more;
        }
    }

    /// Returns how many pages could not be checked.
    pub(super) fn pages_unchecked(&self) -> u64 {
        self.unchecked.values().sum()
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Checksum,
    Torn,
    PageNumber,
    SpaceId,
    Header,
    FirstPage(&'static str),
    CutOff,
    FutureLsn,
    Unreadable(String),
    ShortFile,
    StrayBits,
}

impl What {
    /// Its name in JSON.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Checksum => "checksum",
            Self::Torn => "torn",
            Self::PageNumber => "page-number",
            Self::SpaceId => "space-id",
            Self::Header => "header",
            Self::FirstPage(_) => "first-page",
            Self::CutOff => "cut-off",
            Self::FutureLsn => "future-lsn",
            Self::Unreadable(_) => "unreadable",
            Self::ShortFile => "short-file",
            Self::StrayBits => "stray-bits",
        }
    }
}

/// A finding, before it has names.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) severity: Severity,
    /// Which file.
    pub(super) subject: usize,
    /// The page's number in its tablespace.
    pub(super) page: Option<u32>,
    /// Where it begins in the file.
    pub(super) offset: u64,
    pub(super) space: Option<u32>,
    pub(super) what: What,
    pub(super) expected: Option<u64>,
    pub(super) found: Option<u64>,
    pub(super) header: Option<PageHeader>,
    pub(super) kind: Option<PageKind>,
}

/// Findings of all threads.
#[derive(Debug, Default)]
pub(super) struct Findings {
    inner: Mutex<Inner>,
}

/// What is behind the lock.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) kept: Vec<Raw>,
    notices: usize,
    pub(super) more: u64,
    pub(super) files_unchecked: Vec<FileNote>,
    pub(super) files_unreadable: Vec<FileNote>,
    pub(super) files_vanished: u64,
}

impl Findings {
    fn held(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Adds a finding.
    pub(super) fn add(&self, raw: Raw) {
        let mut inner = self.held();
        let is_notice = raw.severity == Severity::Notice;
        if is_notice {
            inner.notices += 1;
        }
        if inner.kept.len() >= TOLD_MAX || is_notice && inner.notices > NOTICES_MAX {
            inner.more += 1;
        } else {
            inner.kept.push(raw);
        }
    }

    /// Notes a file that cannot be checked.
    pub(super) fn unchecked(&self, file: &str, why: impl Into<String>) {
        self.held().files_unchecked.push(note(file, why));
    }

    /// Notes a file that cannot be read.
    pub(super) fn unreadable(&self, file: &str, why: impl Into<String>) {
        let mut inner = self.held();
        // Each of a large file's pieces meets it.
        if !inner.files_unreadable.iter().any(|one| one.file == file) {
            inner.files_unreadable.push(note(file, why));
        }
    }

    /// Counts a file that was dropped.
    pub(super) fn vanished(&self) {
        self.held().files_vanished += 1;
    }

    /// Takes everything, in order of files and pages.
    pub(super) fn take(&self) -> Inner {
        let mut inner = std::mem::take(&mut *self.held());
        inner.kept.sort_by_key(|raw| (raw.subject, raw.offset));
        inner.files_unchecked.sort_by(|a, b| a.file.cmp(&b.file));
        inner.files_unreadable.sort_by(|a, b| a.file.cmp(&b.file));
        inner
    }
}

fn note(file: &str, why: impl Into<String>) -> FileNote {
    FileNote {
        file: file.to_owned(),
        why: why.into(),
    }
}
