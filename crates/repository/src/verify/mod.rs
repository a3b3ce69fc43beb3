//! Looks at every byte of a repository, content by the code that restores it.

mod content;
mod inventory;
mod objects;
mod report;
mod sample;

pub(crate) use report::Findings;
pub use report::{Finding, VerifyReport};
pub use sample::{Sample, SampleReport};

use crate::catalog::Catalog;
use crate::crypt::Access;
use crate::head::{Head, rebuild_hint};
use crate::locks;
use crate::logs;
use crate::marks::Marks;
use crate::repository::{Repository, no_generation};
use evenkeel_op::{Cancel, ErrorKind, Progress, Result};
use std::sync::Arc;
use std::time::Duration;

/// What to verify, and how.
#[derive(Debug, Clone)]
pub struct Verify {
    /// One generation; all of them, and everything else there is, when `None`.
    pub generation: Option<u32>,
    /// Whether to read the blocks, too, or only what describes them.
    pub read_data: bool,
    /// How much of the blocks is read; all of it when `None`.
    pub sample: Option<Sample>,
    /// Threads that decompress and hash.
    pub workers: usize,
    /// Memory for decompressed frames, in bytes.
    pub cache_bytes: usize,
    /// How long to wait for a forget or prune to end.
    pub wait: Duration,
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            generation: None,
            read_data: true,
            sample: None,
            workers: 2,
            cache_bytes: 64 << 20,
            wait: Duration::ZERO,
        }
    }
}

impl Repository {
    /// Verifies the repository. Damage is in the report; an error means that it could not be
    /// looked at.
    pub fn verify(
        &self,
        how: &Verify,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<VerifyReport> {
        let store = self.store();
        let _lock = locks::reader(&**store, how.wait)?;
        let findings = Findings::default();
        let head = match Head::read(&**store, self.id()) {
            Ok(head) => head,
            Err(error) if error.kind() == ErrorKind::Differs => {
                findings.add_error(&error, None);
                findings.note(rebuild_hint(&**store));
                return Ok(findings.into_report(Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let live = head.live.iter().map(|live| live.generation);
        let generations: Vec<u32> = match how.generation {
            None => live.collect(),
            Some(one) if head.live(one).is_some() => vec![one],
            Some(one) => return Err(no_generation(&**store, one)),
        };
        let catalog = Arc::new(Catalog::new(
            store.clone(),
            self.id(),
            self.keys().clone(),
            head,
        ));
        inventory::take(&catalog, &findings)?;
        let read_logs = how.generation.is_none() && how.read_data;
        logs::check(&self.logs(), &findings, read_logs, progress, cancel)?;
        objects::check(&catalog, &findings, how, progress, cancel)?;
        let access = self.access();
        let mut how = how.clone();
        let reads = how.read_data;
        how.read_data &= access >= Access::Reader;
        if let Some(sample) = how.sample {
            how.sample = Some(sample.of_all(&catalog, how.generation)?);
        }
        let marks = match access {
            Access::Locked => Marks::default(),
            _ => content::check(&catalog, &findings, &generations, &how, progress, cancel)?,
        };
        // Without the key, a checksum of what is sealed is all there is to check.
        let marks = if how.read_data {
            marks
        } else {
            Marks::default()
        };
        if reads && (how.generation.is_none() || !how.read_data) {
            objects::check_rest(&catalog, &findings, &marks, how.sample, progress, cancel)?;
        }
        if access > Access::Locked {
            content::attribute(&catalog, &findings, cancel)?;
        }
        let sampled = how.sample.map(|sample| findings.sampled(sample));
        let mut report = findings.into_report(generations);
        report.sample = sampled;
        report.unchecked = unchecked(access, reads);
        Ok(report)
    }
}

/// Says what could not be checked for lack of keys.
fn unchecked(access: Access, reads: bool) -> Vec<String> {
    let mut all = Vec::new();
    if access == Access::Locked {
        all.push("names, maps and manifests: no key of the repository was given".to_owned());
    }
    if reads && access < Access::Reader {
        all.push(
            "the content of blocks: checking it takes a reader's key; their stored form has the \
             right checksums"
                .to_owned(),
        );
    }
    all
}
