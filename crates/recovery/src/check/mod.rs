//! Checks InnoDB pages: of a running server, of a stopped one, of any files, of a generation.
//!
//! ```text
//! survey (which files, which log) ─► scan (every page, many threads) ─► copies (is there a good one?)
//!   ─► name (which table and index, what repairs it) ─► heal (plan; with a proof, write)
//! ```

mod again;
mod bound;
mod copies;
mod heal;
mod judge;
mod name;
mod named;
mod pages;
mod prove;
mod reading;
mod report;
mod request;
mod scan;
mod shape;
mod source;
mod survey;
mod tally;
mod walk;

pub use report::{CheckReport, FileNote, Finding, GoodCopy, HealReport, HealedPage, Severity};
pub use request::{CheckRequest, Target};

use evenkeel_innodb::PageKind;
use evenkeel_op::rate::RateLimit;
use evenkeel_op::{Cancel, Error, Progress, Result};
use std::time::Instant;
use survey::CheckContext;
use tally::{Findings, Inner, Raw, Tally};

/// Checks every page of the target, and heals what can be healed if that was asked for.
///
/// Damage is no error: the report tells it. Errors: `Usage` when there is nothing with pages in it,
/// `Refused` for a data directory on which a server runs, `Busy` when one was started before pages
/// could be healed, those of the server and of the repository.
pub fn check(
    request: &CheckRequest,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<CheckReport> {
    let begun = Instant::now();
    refuse(request)?;
    let context = survey::survey(&request.target)?;
    let findings = Findings::default();
    let how = scan::How {
        workers: request.workers,
        rate: RateLimit::new(request.rate_bytes_per_s),
        progress,
        cancel,
    };
    let tally = scan::scan(&context, &how, &findings)?;
    let mut found = findings.take();
    let mut raws = std::mem::take(&mut found.kept);
    let repository = request.copies.as_ref();
    let repository = repository.map(|place| (place, request.copies_generation));
    let copies = copies::find(&mut raws, &context, repository)?;
    let mut report = report(&context, &tally, found);
    report.findings = name::name(&raws, &copies, &context, &mut report.notes);
    count(&mut report, &raws, &tally);
    if request.copies.is_some() && !context.is_live() {
        let keep_in = request.keep_damaged.as_deref();
        let plan = heal::plan(&raws, &report.findings, &copies, &context, keep_in)?;
        report.heal = Some(match request.execute {
            true => plan.perform(&context)?,
            false => plan.into_report(),
        });
    }
    report.sound = is_sound(&report);
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// Refuses what makes no sense together, before anything is read.
fn refuse(request: &CheckRequest) -> Result<()> {
    match request.target {
        Target::Stopped { .. } => Ok(()),
        Target::Live(_) if request.execute => Err(Error::refused(
            "evenkeel cannot write pages of a running server: the server would not notice, or \
             would overwrite them",
        )
        .hint("stop the server, and name its data directory with --datadir")),
        Target::Live(_) => Ok(()),
        Target::Paths(_) | Target::Generation(..) if request.copies.is_some() => Err(Error::usage(
            "evenkeel finds good copies by the server's own file names",
        )
        .hint("name the stopped server's data directory with --datadir")),
        Target::Paths(_) | Target::Generation(..) => Ok(()),
    }
}

fn report(context: &CheckContext, tally: &Tally, found: Inner) -> CheckReport {
    let kinds = PageKind::ALL.into_iter().zip(tally.kinds);
    CheckReport {
        target: context.target,
        place: context.place.clone(),
        generation: context.reader.as_ref().map(|reader| reader.generation()),
        files: context.subjects.len() as u64 - found.files_vanished,
        bytes: tally.bytes,
        pages: tally.checked + tally.empty + tally.pages_unchecked() + tally.damaged,
        pages_checked: tally.checked + tally.damaged,
        pages_empty: tally.empty,
        pages_unchecked: tally.pages_unchecked(),
        pages_read_again: tally.read_again,
        page_kinds: kinds
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| (kind.name(), count))
            .collect(),
        unchecked: tally.unchecked.clone(),
        files_unchecked: found.files_unchecked,
        files_unreadable: found.files_unreadable,
        files_vanished: found.files_vanished,
        lsn_end: context.bound.end(),
        lsn_max: tally.lsn_max,
        findings_more: found.more,
        notes: context.notes.clone(),
        ..CheckReport::default()
    }
}

/// Tells damaged pages from torn ones that crash recovery repairs.
fn count(report: &mut CheckReport, raws: &[Raw], tally: &Tally) {
    let torn = raws.iter().filter(|raw| raw.severity == Severity::Torn);
    report.pages_torn = torn.count() as u64;
    report.pages_damaged = tally.damaged - report.pages_torn;
}

fn is_sound(report: &CheckReport) -> bool {
    let damage = report.findings.iter();
    let damage = damage
        .filter(|finding| finding.severity == Severity::Damage)
        .count();
    let healed = report.heal.iter().flat_map(|heal| &heal.pages);
    let healed = healed.filter(|page| page.outcome == "healed").count();
    let untold = report.pages_damaged.saturating_sub(damage as u64);
    damage == healed && untold == 0
}
