//! Object by object: the other repository is this one's copy, with the same identity, numbers and
//! bytes. No key is needed, for nothing is opened.

use super::choose::{Choice, choose};
use super::plan::{Batch, Unneeded, check_same, unneeded};
use super::request::{Copied, CopyReport, CopyWay};
use super::run::{Run, Sides};
use super::{archive, commit, send};
use crate::catalog::Catalog;
use crate::crypt;
use crate::head::Head;
use crate::heal;
use crate::locks;
use crate::repository::Repository;
use evenkeel_op::{Result, Unit};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) fn copy(from: &Repository, to: Repository, run: &Run<'_>) -> Result<CopyReport> {
    let wait = run.how.wait;
    let _reading = locks::reader(&**from.store(), wait)?;
    let source = Arc::new(Catalog::new(
        from.store().clone(),
        from.id(),
        from.keys().clone(),
        from.head()?,
    ));
    let _writing = locks::writer(&**to.store(), wait)?;
    let mut head = Head::read(&**to.store(), to.id())?;
    let sides = Sides { from, source, to };
    check_same(&sides.source.head, &head, &sides.to.place())?;
    let begun = commit::begun(&sides, &head)?;
    // With the keys at hand: this one's open the other, too.
    let healed = heal::heal_sparing(sides.to.store(), from.id(), from.keys(), &mut head, &begun)?;
    healed.check_known(&**sides.to.store())?;
    if from.keys().is_encrypted() {
        crypt::bring(&**from.store(), &**sides.to.store(), from.id())?;
    }
    let newest = head.known().last().map(|one| one.generation);
    let has = |number: u32| head.live(number).is_some();
    let choice = choose(&sides.source, run.how, newest, has)?;
    let mut report = CopyReport::new(CopyWay::Objects);
    report.notes = healed.notes;
    bring(&sides, &mut head, &choice, &begun, run, &mut report)?;
    run.progress.phase("copying binary logs", None, Unit::Bytes);
    report.archive_objects = archive::copy(&sides, run)?;
    run.progress.end();
    report.present = choice.present;
    report.left_out = choice.left_out;
    report.objects = run.objects.load(Ordering::Relaxed);
    report.bytes_copied = run.sent.load(Ordering::Relaxed);
    Ok(report)
}

/// Brings one generation after the other, oldest first: whenever this ends, those that are named
/// are whole.
fn bring(
    sides: &Sides<'_>,
    head: &mut Head,
    choice: &Choice,
    begun: &BTreeSet<u32>,
    run: &Run<'_>,
    report: &mut CopyReport,
) -> Result<()> {
    let mut known: Option<Arc<Unneeded>> = None;
    for &generation in &choice.wanted {
        let batch = Batch::of(sides, head, generation, &mut || {
            if known.is_none() {
                known = Some(Arc::new(unneeded(sides.from, &choice.wanted, run.cancel)?));
            }
            Ok(known.clone().unwrap_or_default())
        })?;
        let total = batch.parts.iter().flat_map(|part| &part.objects);
        let total = total.map(|one| one.info.size).sum();
        let name = format!("copying generation {generation}");
        run.progress.phase(&name, Some(total), Unit::Bytes);
        commit::prepare(sides, &batch, begun)?;
        fail::fail_point!("copy::prepared");
        report.bytes_kept += send::objects(sides, &batch, begun, run)?;
        commit::commit(sides, head, &batch)?;
        run.progress.end();
        report.copied.push(Copied {
            generation,
            becomes: generation,
        });
    }
    Ok(())
}
