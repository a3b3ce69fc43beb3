//! Sends objects, each checked on the way against what its manifest says of it.

use super::plan::Batch;
use super::run::{Run, Sides};
use crate::catalog::{Expected, Opened};
use crate::fault::{damaged, store_failed};
use crate::format::header::{HEADER_LENGTH, ObjectKind};
use crate::heal;
use crate::ids::Digest;
use crate::mutex::held;
use crate::names;
use crate::store::{Existing, NewObject};
use evenkeel_op::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes read at a time of what is no pack.
const CHUNK: usize = 1 << 20;

/// Sends what is not there of a batch, some objects at a time; returns the bytes of those that an
/// earlier copy had sent. An object gets its name when all of it is there, so that what has its name
/// and length is whole.
pub(super) fn objects(
    sides: &Sides<'_>,
    batch: &Batch,
    begun: &BTreeSet<u32>,
    run: &Run<'_>,
) -> Result<u64> {
    let mut missing = Vec::new();
    let mut kept = 0;
    for part in &batch.parts {
        let folder = names::folder(part.generation);
        let there = match begun.contains(&part.generation) {
            true => heal::list(&**sides.to.store(), &folder)?,
            false => Vec::new(),
        };
        for object in &part.objects {
            let is_whole = |one: &crate::store::Listed| {
                one.name == object.info.name && one.size == object.info.size
            };
            if there.iter().any(is_whole) {
                kept += object.info.size;
                run.progress.advance(object.info.size);
            } else {
                missing.push(object);
            }
        }
    }
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<Error>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..run.how.workers.clamp(1, missing.len().max(1)) {
            scope.spawn(|| {
                while held(&failed).is_none()
                    && let Some(expected) = missing.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(error) = one(sides, expected, run) {
                        held(&failed).get_or_insert(error);
                    }
                }
            });
        }
    });
    match held(&failed).take() {
        Some(error) => Err(error),
        None => Ok(kept),
    }
}

fn one(sides: &Sides<'_>, expected: &Expected, run: &Run<'_>) -> Result<()> {
    run.cancel.check()?;
    let id = expected.id;
    let object = sides.source.object(id.generation, id.kind, id.number)?;
    let name = id.name();
    let failed = |error| store_failed("write", &name, error);
    let new = sides.to.store().create(&name, Existing::Refuse);
    let mut new = new.map_err(failed)?;
    match id.kind {
        ObjectKind::Pack => pack(sides, &object, &mut *new, run)?,
        _ => whole(&object, &mut *new, run)?,
    }
    new.finish().map_err(failed)?;
    run.sent(object.size());
    run.objects.fetch_add(1, Ordering::Relaxed);
    fail::fail_point!("copy::object_sent");
    Ok(())
}

fn write(object: &Opened, new: &mut dyn NewObject, bytes: &[u8]) -> Result<()> {
    new.write(bytes)
        .map_err(|error| store_failed("write", &object.name, error))
}

/// Sends a pack: header and table as the manifest names them, frames as the table does.
fn pack(sides: &Sides<'_>, object: &Opened, new: &mut dyn NewObject, run: &Run<'_>) -> Result<()> {
    let table = object.table()?;
    let header = object.read(0, HEADER_LENGTH)?;
    write(object, new, &header)?;
    let mut at = HEADER_LENGTH as u64;
    for (number, entry) in table.iter().enumerate() {
        if entry.length > 0 {
            run.pace(u64::from(entry.length))?;
            let (bytes, _) = sides.source.stored_frame(object, number as u32)?;
            write(object, new, &bytes)?;
            at += bytes.len() as u64;
        }
    }
    let tail = object.read(at, (object.size() - at) as usize)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header);
    hasher.update(&tail);
    check(object, &hasher)?;
    write(object, new, &tail)
}

/// Sends what is read in one go by its readers, too.
fn whole(object: &Opened, new: &mut dyn NewObject, run: &Run<'_>) -> Result<()> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK.min(object.size() as usize)];
    let mut at = 0;
    while at < object.size() {
        let length = CHUNK.min((object.size() - at) as usize);
        run.pace(length as u64)?;
        object.read_into(at, &mut buffer[..length])?;
        hasher.update(&buffer[..length]);
        write(object, new, &buffer[..length])?;
        at += length as u64;
    }
    check(object, &hasher)
}

fn check(object: &Opened, hasher: &blake3::Hasher) -> Result<()> {
    if Digest(*hasher.finalize().as_bytes()) == object.expected.info.hash {
        return Ok(());
    }
    Err(damaged(&object.name, "its content is not what was written"))
}
