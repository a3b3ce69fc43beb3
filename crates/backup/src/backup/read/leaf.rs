//! Checks and stores what was read of a leaf.

use super::buffers::Buffers;
use super::pieces::{Filled, Part};
use super::{Item, Open, Shop};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_repository::{Change, Leaf, Worker};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Stores the blocks of one leaf, in their order, as they are read.
pub(super) fn store(
    worker: &mut Worker,
    item: &Item,
    buffers: &Buffers,
    shop: &Shop<'_>,
) -> Result<()> {
    let open = &item.open;
    let builder = open
        .builder
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .clone();
    let builder = builder.ok_or_else(|| Error::failed("a file was finished too early"))?;
    let mut leaf = builder.leaf(item.leaf)?;
    for filled in &item.pieces {
        let ended = || Error::new(ErrorKind::Interrupted, "the readers ended");
        let filled = filled.recv().map_err(|_| ended())??;
        for part in &filled.parts {
            store_part(worker, &mut leaf, (&filled, part), item, shop)?;
        }
        filled.end(buffers);
    }
    builder.set_leaf(leaf)
}

fn store_part(
    worker: &mut Worker,
    leaf: &mut Leaf,
    (filled, part): (&Filled, &Part),
    item: &Item,
    shop: &Shop<'_>,
) -> Result<()> {
    let bytes_read = part.shape.bytes_read();
    shop.run.progress.advance(part.range.end - part.range.start);
    let total = &shop.totals.bytes_read;
    total.fetch_add(bytes_read, Ordering::Relaxed);
    for block in part.blocks.clone() {
        let place = leaf.byte_range(block);
        let mut allocated = part.shape.allocated(&place);
        let data = match allocated {
            0 => &[],
            _ => filled.bytes(part, &place),
        };
        if item.open.source.is_device() && data.iter().all(|byte| *byte == 0) {
            // The nearest that a device has to a hole: restored as one.
            allocated = 0;
        }
        store_block(
            worker,
            leaf,
            (block, &place),
            (data, allocated),
            (item, shop),
        )?;
    }
    let all = super::pieces::length(std::slice::from_ref(&part.blocks), item.open.block_size);
    shop.ahead.stored(all);
    if bytes_read > 0 {
        // Also what is read directly: a filesystem may take some of it from the cache.
        item.open.source.forget(part.range.clone());
    }
    Ok(())
}

/// Stores a block, of which `allocated` bytes are more than a hole.
fn store_block(
    worker: &mut Worker,
    leaf: &mut Leaf,
    (block, place): (u64, &Range<u64>),
    (data, allocated): (&[u8], u64),
    (item, shop): (&Item, &Shop<'_>),
) -> Result<()> {
    // Zeros that became a hole, or the reverse, are no other content.
    let mut maybe_same = leaf.base_is_zero(block);
    let change = if allocated == 0 {
        leaf.hole(worker, block)?
    } else {
        // The same goes for zeros at the end of a block. Pages never end in zeros.
        maybe_same = data.iter().rev().take(512).all(|byte| *byte == 0);
        check(&item.open, place.start, data, shop);
        match allocated < data.len() as u64 {
            true => leaf.put_with_tail_hole(worker, block, &data[..allocated as usize])?,
            false => leaf.put(worker, block, data)?,
        }
    };
    if change == Change::Changed {
        note_change(item, block, allocated, maybe_same, shop);
    }
    Ok(())
}

fn check(open: &Open, offset: u64, data: &[u8], shop: &Shop<'_>) {
    if let Some(check) = &open.check {
        check.block(&open.file.name, offset, data, &shop.totals.findings);
    }
}

fn note_change(item: &Item, block: u64, bytes: u64, maybe_same: bool, shop: &Shop<'_>) {
    shop.totals
        .bytes_changed
        .fetch_add(bytes, Ordering::Relaxed);
    if let Some(candidates) = &item.candidates
        && !maybe_same
        && !candidates.iter().any(|range| range.contains(&block))
    {
        let mut missed = shop.totals.missed.lock().unwrap_or_else(|e| e.into_inner());
        missed.push(format!("{} block {block}", item.open.file.name));
    }
}

/// Finishes a file of which this was the last leaf.
pub(super) fn finish_if_last(open: &Open) -> Result<()> {
    if open.leaves_left.fetch_sub(1, Ordering::AcqRel) > 1 {
        return Ok(());
    }
    let builder = open
        .builder
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .take();
    let builder = builder
        .and_then(std::sync::Arc::into_inner)
        .ok_or_else(|| Error::failed("a file was finished twice"))?;
    builder.finish()?;
    Ok(())
}
