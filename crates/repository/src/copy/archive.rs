//! The archived binary logs: objects that are written once, recognized by their names and lengths.
//! Only what was forgotten of a timeline is rewritten, and each side forgets for itself.

use super::run::{Run, Sides};
use crate::fault::store_failed;
use crate::heal::list;
use crate::logs;
use crate::names::BINLOGS;
use crate::store::{Existing, UNFINISHED};
use evenkeel_op::Result;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Ending of the names of locks, which stay where they are.
const LOCK: &str = ".lock";

/// Sends what is not there; returns how many objects were sent.
pub(super) fn copy(sides: &Sides<'_>, run: &Run<'_>) -> Result<u64> {
    let (from, to) = (sides.from.store(), sides.to.store());
    let mut folders = vec![BINLOGS.to_owned()];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        let mut found = list(&**from, &folder)?;
        if found.is_empty() {
            continue;
        }
        to.make_folder(&folder)
            .map_err(|error| store_failed("make", &folder, error))?;
        let there = list(&**to, &folder)?;
        // Nothing comes before its predecessor, and the mark of what was forgotten before them all:
        // without it they would seem to lack what they came after.
        found.sort_by_key(|one| logs::order_of(&one.name));
        let first = found.iter().find(|one| logs::order_of(&one.name).is_some());
        let joins = first.is_none_or(|first| there.iter().any(|other| other.name == first.name));
        for one in found {
            let is_mark = one.name == logs::FORGOTTEN;
            // What the other side has of older ones continues without a gap.
            if is_mark && joins && !there.is_empty() {
                continue;
            }
            let name = format!("{folder}/{}", one.name);
            if one.name.ends_with(LOCK) || one.name.ends_with(UNFINISHED) {
                continue;
            }
            if one.is_folder {
                folders.push(name);
                continue;
            }
            let present = there.iter().find(|other| other.name == one.name);
            if is_mark || present.is_none_or(|present| present.size != one.size) {
                object(sides, &name, run)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn object(sides: &Sides<'_>, name: &str, run: &Run<'_>) -> Result<()> {
    let read = |error| store_failed("read", name, error);
    let write = |error| store_failed("write", name, error);
    let object = sides.from.store().open(name).map_err(read)?;
    let new = sides.to.store().create(name, Existing::Replace);
    let mut new = new.map_err(write)?;
    let mut buffer = vec![0; CHUNK.min(object.size() as usize)];
    let mut at = 0;
    while at < object.size() {
        let length = CHUNK.min((object.size() - at) as usize);
        run.pace(length as u64)?;
        object
            .read_exact_at(at, &mut buffer[..length])
            .map_err(read)?;
        new.write(&buffer[..length]).map_err(write)?;
        at += length as u64;
    }
    new.finish().map_err(write)?;
    run.sent(object.size());
    Ok(())
}
