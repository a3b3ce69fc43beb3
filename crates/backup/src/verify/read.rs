//! Reads every byte as restore would.

use crate::facts::Facts;
use evenkeel_op::{Result, Run};
use evenkeel_repository::{Finding, Location, Repository, Sample, Verify, VerifyReport};

/// What to verify.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// The repository.
    pub repository: Location,
    /// Which of its generations.
    pub generations: Generations,
    /// How much of their content; all of it when `None`.
    pub sample: Option<Sample>,
    /// Threads that decompress and hash.
    pub workers: usize,
}

/// Generations to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generations {
    /// The newest one.
    Newest,
    /// The one of this number.
    One(u32),
    /// All, and whatever else lies in the repository.
    All,
}

impl ReadRequest {
    /// Makes a request with the usual settings.
    #[must_use]
    pub fn new(repository: impl Into<Location>, generations: Generations) -> Self {
        Self {
            repository: repository.into(),
            generations,
            sample: None,
            workers: crate::default_workers(),
        }
    }
}

/// Verifies. Damage is in the report; an error means that the repository could not be looked at.
pub fn read(request: &ReadRequest, run: Run<'_>) -> Result<VerifyReport> {
    let repository = Repository::open(&request.repository)?;
    let generation = match request.generations {
        Generations::All => None,
        Generations::One(number) => Some(number),
        Generations::Newest => Some(crate::restore::newest(&repository)?),
    };
    let how = Verify {
        generation,
        sample: request.sample,
        workers: request.workers,
        ..Verify::default()
    };
    let mut report = repository.verify(&how, run.progress, run.cancel)?;
    for &number in &report.generations {
        // A manifest that cannot be read is among the findings.
        let facts = repository.manifest(number).and_then(|one| Facts::of(&one));
        let corrupt = facts.ok().and_then(|facts| facts.corrupt_pages(number));
        report.notes.extend(corrupt);
    }
    Ok(report)
}

/// Returns a finding as a sentence.
#[must_use]
pub fn sentence(finding: &Finding) -> String {
    let mut text = format!("{}: {}", finding.object, finding.what);
    if !finding.generations.is_empty() {
        let list: Vec<String> = finding.generations.iter().map(u32::to_string).collect();
        text.push_str(&format!("; affects generation {}", list.join(", ")));
    }
    if !finding.files.is_empty() {
        text.push_str(&format!(" ({})", finding.files.join(", ")));
    }
    text
}
