//! Are the archived logs all there, each where it belongs, and as they were written?

use super::Segment;
use super::handle::Logs;
use super::index::{self, Folder};
use crate::crypt::Access;
use crate::heal::{is_unfinished, list};
use crate::names::{ARCHIVE_LOCK, BINLOGS};
use crate::verify::Findings;
use evenkeel_op::{Cancel, Progress, Result, Unit, units};
use std::sync::atomic::Ordering;

/// Checks names, and that nothing is missing between what is there; with `read_all`, every byte as
/// far as the keys at hand open it.
pub(crate) fn check(
    logs: &Logs,
    findings: &Findings,
    read_all: bool,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<()> {
    strangers(logs, findings)?;
    for (source, timeline) in logs.folders(None)? {
        cancel.check()?;
        let mut folder = Folder::read(logs, &source, &timeline)?;
        let opens = logs.keys.access() > Access::Locked;
        let gaps = |folder: &Folder| match opens {
            true => folder.gaps(logs),
            false => Default::default(),
        };
        let (mut missing, mut errors) = gaps(&folder);
        // An archiver may have continued since the list was begun.
        if missing.iter().any(|gap| gap.why.is_none()) {
            folder = Folder::read(logs, &source, &timeline)?;
            (missing, errors) = gaps(&folder);
        }
        names(&folder, findings);
        for error in errors.into_iter().chain(folder.damage) {
            findings.take::<()>(Err(error), None)?;
        }
        for gap in missing {
            let path = index::folder(&source, &timeline);
            match gap.why {
                Some(why) => findings.note(format!("{path}: {why}")),
                None => findings.add(
                    &format!("{path}/{}", gap.before.file),
                    format!("it is missing between {} and {}", gap.after, gap.before),
                    None,
                ),
            }
        }
        let count = folder.segments.len() as u64;
        findings.log_segments.fetch_add(count, Ordering::Relaxed);
        if read_all {
            content(logs, findings, &folder.segments, progress, cancel)?;
        }
    }
    Ok(())
}

/// Looks for what is neither a source nor a timeline.
fn strangers(logs: &Logs, findings: &Findings) -> Result<()> {
    let report = |name: String, is_folder: bool, may_be_folder: bool| {
        if is_unfinished(&name) && !is_folder {
            findings.note(format!("{name} was left by an interrupted run"));
        } else if is_folder != may_be_folder {
            findings.add(&name, "it does not belong here", None);
        }
    };
    for source in list(&*logs.store, BINLOGS)? {
        let path = format!("{BINLOGS}/{}", source.name);
        report(path.clone(), source.is_folder, true);
        if !source.is_folder {
            continue;
        }
        for inside in list(&*logs.store, &path)? {
            if inside.name != ARCHIVE_LOCK {
                report(format!("{path}/{}", inside.name), inside.is_folder, true);
            }
        }
    }
    Ok(())
}

/// Looks at what a timeline's folder holds besides its segments.
fn names(folder: &Folder, findings: &Findings) {
    let path = index::folder(&folder.source, &folder.timeline);
    for other in &folder.others {
        let name = format!("{path}/{}", other.name);
        match is_unfinished(&other.name) && !other.is_folder {
            true => findings.note(format!(
                "{name} is being written, or was left by an interrupted run"
            )),
            false => findings.add(&name, "it does not belong here", None),
        }
    }
    if !folder.leftovers.is_empty() {
        findings.note(format!(
            "{path} still holds forgotten logs ({}); the next prune removes them",
            units::count(folder.leftovers.len(), "segment")
        ));
    }
}

/// Reads segments as a restore does; what no key opens, as far as checksums go.
fn content(
    logs: &Logs,
    findings: &Findings,
    segments: &[Segment],
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<()> {
    let total = segments.iter().map(|one| one.stored).sum();
    progress.phase("checking binary logs", Some(total), Unit::Bytes);
    for segment in segments {
        cancel.check()?;
        let read = match logs.keys.access() {
            Access::Plain | Access::Reader => logs.read(segment).map(|_| ()),
            _ => logs
                .open(segment)
                .and_then(|(opened, _)| opened.stored())
                .map(|_| ()),
        };
        findings.take(read, None)?;
        findings.log_segments_read.fetch_add(1, Ordering::Relaxed);
        findings
            .bytes_read
            .fetch_add(segment.stored, Ordering::Relaxed);
        progress.advance(segment.stored);
    }
    progress.end();
    Ok(())
}
