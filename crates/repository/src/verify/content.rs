//! Does every block of every generation read back as restoring would read it?

use super::Verify;
use super::report::Findings;
use super::sample::Sample;
use crate::catalog::Catalog;
use crate::fault;
use crate::list::FileMeta;
use crate::map::{Entry, RecordRef};
use crate::marks::Marks;
use crate::read::{FrameCache, read_entries};
use crate::walk::{Visit, Walker};
use crossbeam_channel::{Receiver, Sender};
use evenkeel_op::{Cancel, Error, Progress, Result, Unit};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Blocks of one leaf to be read.
struct Job {
    meta: Arc<FileMeta>,
    entries: Vec<(u64, Entry)>,
}

/// Walks the maps and sends every block that was not sent before to be read.
struct Reading<'c> {
    catalog: &'c Catalog,
    findings: &'c Findings,
    generation: u32,
    marks: Marks,
    sample: Option<Sample>,
    jobs: Option<Sender<Job>>,
}

impl Visit for Reading<'_> {
    fn record(&mut self, _at: RecordRef) -> Result<()> {
        Ok(())
    }

    fn entries(&mut self, meta: &FileMeta, entries: Vec<(u64, Entry)>) -> Result<()> {
        let mut wanted = Vec::new();
        for (number, entry) in entries {
            let Entry::Data { place, .. } = entry else {
                continue;
            };
            let length = meta.block_length(number);
            match self.marks.mark(self.catalog, place, length) {
                Ok(true) => {
                    if self.jobs.is_some() {
                        let total = &self.findings.content_total;
                        total.fetch_add(length as u64, Ordering::Relaxed);
                    }
                    if self.sample.is_none_or(|sample| sample.has(&place)) {
                        wanted.push((number, entry));
                    }
                }
                Ok(false) => {}
                Err(error) if fault::is_stop(&error) => return Err(error),
                Err(error) => self.findings.add_block(&error, place, &meta.name),
            }
        }
        if let (Some(jobs), false) = (&self.jobs, wanted.is_empty()) {
            let job = Job {
                meta: Arc::new(meta.clone()),
                entries: wanted,
            };
            jobs.send(job)
                .map_err(|_| Error::failed("the threads that read blocks have ended"))?;
        }
        Ok(())
    }

    fn broken(&mut self, file: &str, error: Error) -> Result<()> {
        if fault::is_stop(&error) {
            return Err(error);
        }
        self.findings.add_for(&error, Some(self.generation), file);
        Ok(())
    }
}

/// Reads all blocks of the generations; returns which blocks were looked at.
pub(super) fn check(
    catalog: &Arc<Catalog>,
    findings: &Findings,
    generations: &[u32],
    how: &Verify,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Marks> {
    let cache = FrameCache::new(how.cache_bytes);
    let workers = if how.read_data { how.workers.max(1) } else { 0 };
    progress.phase("reading blocks", None, Unit::Bytes);
    let (sender, receiver) = crossbeam_channel::bounded(workers * 4);
    let marks = std::thread::scope(|scope| {
        for _ in 0..workers {
            let (receiver, cache) = (receiver.clone(), &cache);
            scope.spawn(move || read_jobs(catalog, cache, findings, &receiver, progress, cancel));
        }
        drop(receiver);
        let mut reading = Reading {
            catalog,
            findings,
            generation: 0,
            marks: Marks::default(),
            sample: how.sample,
            jobs: how.read_data.then_some(sender),
        };
        let mut walker = Walker::new(catalog.clone(), cancel.clone());
        for &generation in generations {
            reading.generation = generation;
            let walked = walker.generation(generation, &mut reading);
            let count = findings.take(walked, Some(generation))?;
            findings
                .files
                .fetch_add(count.unwrap_or(0), Ordering::Relaxed);
        }
        // Dropping the sender lets the threads end; the scope waits for them.
        Ok(reading.marks)
    });
    progress.end();
    cancel.check()?;
    marks
}

fn read_jobs(
    catalog: &Catalog,
    cache: &FrameCache,
    findings: &Findings,
    jobs: &Receiver<Job>,
    progress: &dyn Progress,
    cancel: &Cancel,
) {
    for job in jobs {
        if cancel.is_cancelled() {
            continue;
        }
        let (mut bytes, mut looked_at) = (0, 0);
        let entries = job.entries.iter().map(|(number, entry)| (*number, entry));
        read_entries(catalog, cache, &job.meta, entries, |number, entry, read| {
            looked_at += job.meta.block_length(number) as u64;
            match (read, entry) {
                (Ok(()), _) => {
                    findings.blocks.fetch_add(1, Ordering::Relaxed);
                    bytes += job.meta.block_length(number) as u64;
                }
                (Err(error), Entry::Data { place, .. }) => {
                    findings.add_block(&error, *place, &job.meta.name);
                }
                (Err(error), _) => findings.add_for(&error, None, &job.meta.name),
            }
        });
        findings.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        findings
            .content_checked
            .fetch_add(looked_at, Ordering::Relaxed);
        progress.advance(bytes);
    }
}

/// Finds out which generations need a block that cannot be read, or a map that is broken.
struct Attributing<'c> {
    findings: &'c Findings,
    generation: u32,
}

impl Visit for Attributing<'_> {
    fn record(&mut self, _at: RecordRef) -> Result<()> {
        Ok(())
    }

    fn entries(&mut self, _meta: &FileMeta, entries: Vec<(u64, Entry)>) -> Result<()> {
        for (_, entry) in entries {
            if let Entry::Data { place, .. } = entry {
                self.findings.needs(self.generation, &place);
            }
        }
        Ok(())
    }

    fn broken(&mut self, file: &str, error: Error) -> Result<()> {
        if fault::is_stop(&error) {
            return Err(error);
        }
        self.findings.add_for(&error, Some(self.generation), file);
        Ok(())
    }
}

/// After damage was found: walks every live generation on its own.
pub(super) fn attribute(
    catalog: &Arc<Catalog>,
    findings: &Findings,
    cancel: &Cancel,
) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    for live in &catalog.head.live {
        let generation = live.generation;
        let mut walker = Walker::new(catalog.clone(), cancel.clone());
        let mut visit = Attributing {
            findings,
            generation,
        };
        let walked = walker.generation(generation, &mut visit);
        findings.take(walked, Some(generation))?;
    }
    Ok(())
}
