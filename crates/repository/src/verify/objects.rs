//! Is every object, byte by byte, the one that its manifest names?

use super::Verify;
use super::report::Findings;
use super::sample::Sample;
use crate::catalog::{Catalog, Opened};
use crate::fault::damaged;
use crate::format::header::ObjectKind;
use crate::ids::Digest;
use crate::map::BlockAddress;
use crate::marks::Marks;
use evenkeel_op::{Cancel, Progress, Result, Unit};
use std::sync::atomic::Ordering;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// Checks headers, tables, maps and lists: all of every object except frames.
pub(super) fn check(
    catalog: &Catalog,
    findings: &Findings,
    how: &Verify,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<()> {
    progress.phase("checking objects", None, Unit::Items);
    for generation in catalog.head.known() {
        let generation = generation.generation;
        let is_live = catalog.head.live(generation).is_some();
        let affects = is_live.then_some(generation);
        // One that cannot be read is in the findings of the inventory already.
        let Ok(known) = catalog.generation(generation) else {
            continue;
        };
        for (kind, number) in known.objects.keys() {
            cancel.check()?;
            progress.advance(1);
            // When one generation is asked for, the lists of others do not matter.
            let is_asked = how.generation.is_none_or(|asked| asked == generation);
            if !is_asked && *kind == ObjectKind::Files {
                continue;
            }
            let opened = catalog.object(generation, *kind, *number);
            let Some(opened) = findings.take(opened, affects)? else {
                continue;
            };
            let checked = match kind {
                ObjectKind::Pack => opened.table().map(|_| ()),
                _ => check_hash(&opened, findings, cancel),
            };
            findings.take(checked, affects)?;
        }
    }
    progress.end();
    Ok(())
}

/// Compares the hash of a whole object with its manifest.
fn check_hash(object: &Opened, findings: &Findings, cancel: &Cancel) -> Result<()> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK.min(object.size() as usize)];
    let mut at = 0;
    while at < object.size() {
        cancel.check()?;
        let length = CHUNK.min((object.size() - at) as usize);
        object.read_into(at, &mut buffer[..length])?;
        hasher.update(&buffer[..length]);
        findings
            .bytes_read
            .fetch_add(length as u64, Ordering::Relaxed);
        at += length as u64;
    }
    if Digest(*hasher.finalize().as_bytes()) != object.expected.info.hash {
        return Err(damaged(&object.name, "its content is not what was written"));
    }
    Ok(())
}

/// Checks the frames of which no block was read: those that nobody needs any more.
pub(super) fn check_rest(
    catalog: &Catalog,
    findings: &Findings,
    marks: &Marks,
    sample: Option<Sample>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<()> {
    progress.phase("checking unneeded frames", None, Unit::Bytes);
    for generation in catalog.head.known() {
        let generation = generation.generation;
        let Ok(known) = catalog.generation(generation) else {
            continue;
        };
        let packs = known.objects.keys();
        for (_, number) in packs.filter(|(kind, _)| *kind == ObjectKind::Pack) {
            // A pack that cannot be opened is in the findings already.
            let Ok(pack) = catalog.object(generation, ObjectKind::Pack, *number) else {
                continue;
            };
            let Ok(table) = pack.table() else { continue };
            let read = marks.pack(generation, *number);
            for (frame, entry) in table.iter().enumerate() {
                let frame = frame as u32;
                if entry.length == 0 || read.is_some_and(|read| read.has_any(frame)) {
                    continue;
                }
                let length = u64::from(entry.length);
                findings.content_total.fetch_add(length, Ordering::Relaxed);
                let place = BlockAddress {
                    generation,
                    pack: *number,
                    frame,
                    slot: 0,
                };
                if sample.is_some_and(|sample| !sample.has(&place)) {
                    continue;
                }
                cancel.check()?;
                findings.take(catalog.stored_frame(&pack, frame), None)?;
                findings.bytes_read.fetch_add(length, Ordering::Relaxed);
                findings
                    .content_checked
                    .fetch_add(length, Ordering::Relaxed);
                progress.advance(length);
            }
        }
    }
    progress.end();
    Ok(())
}
