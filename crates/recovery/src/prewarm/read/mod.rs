//! Performs the steps of a plan, within memory and time.

use super::job::{Job, Sink};
use super::order::Disks;
use super::plan::Step;
use super::ramp::Ramp;
use super::report::{Unread, WarmedStep};
use super::ring::Ring;
use super::{Limits, Reader, Run, memory, threads};
use evenkeel_op::{Context, Error, Result, Unit};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// How many files that could not be read are reported by name.
const NAMED_MAX: usize = 20;

/// What ended the reading before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Memory,
    Time,
}

/// Reading under way, over all steps.
pub(super) struct Reading<'a> {
    run: Run<'a>,
    until: Option<Instant>,
    memory_left: u64,
    ramp: Ramp,
    ring: Option<Ring>,
    disks: Disks,
    pub(super) steps: Vec<WarmedStep>,
    pub(super) outcome: Outcome,
}

/// What came of it so far.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The first of those that could not be read.
    pub(super) unread: Vec<Unread>,
    /// All of those that could not be read.
    failed: BTreeSet<Arc<PathBuf>>,
    /// Those that went while they were read.
    gone: BTreeSet<Arc<PathBuf>>,
    pub(super) limit: Option<Limit>,
    pub(super) sorted_by_extent: bool,
    /// The most reads that were under way.
    pub(super) depth: usize,
}

impl Outcome {
    pub(super) fn unread_files(&self) -> usize {
        self.failed.len()
    }

    pub(super) fn gone_files(&self) -> usize {
        self.gone.len()
    }

    fn failed(&mut self, path: &Arc<PathBuf>, error: &io::Error) {
        // A table that was dropped is none that the server reads.
        if error.kind() == io::ErrorKind::NotFound {
            self.gone.insert(Arc::clone(path));
        } else if self.failed.insert(Arc::clone(path)) && self.unread.len() < NAMED_MAX {
            self.unread.push(Unread {
                path: path.to_path_buf(),
                why: error.to_string(),
            });
        }
    }
}

impl<'a> Reading<'a> {
    pub(super) fn within(limits: &Limits, begun: Instant, run: Run<'a>) -> Result<Self> {
        let ring = match limits.reader {
            Reader::Threads => None,
            Reader::Auto => Ring::new().ok(),
            Reader::IoUring => Some(Ring::new().map_err(|error| {
                Error::refused("io_uring cannot be used here")
                    .because(error)
                    .hint("remove --reader: then threads are used")
            })?),
        };
        Ok(Self {
            run,
            until: limits.deadline.map(|deadline| begun + deadline),
            memory_left: memory::budget(limits.memory_bytes),
            ramp: Ramp::new(limits.depth, begun),
            ring,
            disks: Disks::of_this_host(),
            steps: Vec::new(),
            outcome: Outcome::default(),
        })
    }

    /// Returns how reads are kept under way.
    pub(super) fn reader(&self) -> &'static str {
        match self.ring {
            Some(_) => "io_uring",
            None => "threads",
        }
    }

    /// Performs one step; once a limit was met, what is left of the budget decides.
    pub(super) fn step(&mut self, step: Step) -> Result<()> {
        let wanted: u64 = step.jobs.iter().map(|job| job.length).sum();
        let mut jobs = step.jobs;
        jobs.truncate(self.affordable(&jobs));
        self.outcome.sorted_by_extent |= self.disks.sort(&mut jobs);
        let total = jobs.iter().map(|job| job.length).sum();
        let progress = self.run.progress;
        progress.phase(&format!("reading: {}", step.name), Some(total), Unit::Bytes);
        let mut tally = Tally {
            jobs: &jobs,
            run: self.run,
            until: self.until,
            outcome: &mut self.outcome,
            left: jobs.len(),
            bytes: 0,
        };
        let read = match &mut self.ring {
            Some(ring) => ring.read(&jobs, &mut self.ramp, &mut tally),
            None => threads::read(&jobs, &mut self.ramp, &mut tally),
        };
        let (bytes, left) = (tally.bytes, tally.left);
        progress.end();
        read.context(|| "failed to keep reads under way")?;
        self.memory_left = self.memory_left.saturating_sub(bytes);
        if left > 0 {
            self.outcome.limit = Some(Limit::Time);
        }
        self.steps.push(WarmedStep {
            name: step.name,
            files: step.files,
            bytes_wanted: wanted,
            bytes_read: bytes,
        });
        self.run.cancel.check()
    }

    /// Returns how many jobs the memory is enough for.
    fn affordable(&mut self, jobs: &[Job]) -> usize {
        let mut left = self.memory_left;
        let count = jobs.iter().take_while(|job| {
            let fits = job.length <= left;
            left = left.saturating_sub(job.length);
            fits
        });
        let count = count.count();
        if count < jobs.len() {
            self.outcome.limit.get_or_insert(Limit::Memory);
        }
        count
    }
}

/// Counts one step.
struct Tally<'a> {
    jobs: &'a [Job],
    run: Run<'a>,
    until: Option<Instant>,
    outcome: &'a mut Outcome,
    left: usize,
    bytes: u64,
}

impl Sink for Tally<'_> {
    fn done(&mut self, job: usize, outcome: io::Result<u64>, depth: usize) {
        self.left -= 1;
        self.outcome.depth = self.outcome.depth.max(depth.min(self.jobs.len()));
        let job = &self.jobs[job];
        match outcome {
            Ok(bytes) => self.bytes += bytes,
            Err(error) => self.outcome.failed(&job.path, &error),
        }
        // What is not there to be read is done, too.
        self.run.progress.advance(job.length);
    }

    fn is_over(&self) -> bool {
        self.run.cancel.is_cancelled() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

#[cfg(test)]
mod tests;
