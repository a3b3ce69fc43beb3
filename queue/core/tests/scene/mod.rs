//! One table on a simulated disk.

#![allow(dead_code, reason = "each test uses its part")]

use evenkeel_queue::io::simulated::Simulated;
use evenkeel_queue::{Options, Queue, Report, Result, Store};
use std::path::Path;
use std::sync::Arc;

pub(crate) const ANCHOR: &str = "/t.que";

/// Small segments, so that there are several.
pub(crate) fn small() -> Options {
    Options {
        segment_bytes: 2048,
        compact_from: 4096,
        compact_dead: 50,
        slice_bytes: 512,
        ..Options::default()
    }
}

pub(crate) fn store(disk: &Simulated) -> Store {
    Store::new(Arc::new(disk.clone()), Path::new("/queue")).expect("there is room")
}

pub(crate) fn create(disk: &Simulated, options: Options) -> Arc<Queue> {
    store(disk)
        .create(Path::new(ANCHOR), b"layout")
        .expect("it is made");
    let opened = store(disk).open(Path::new(ANCHOR), options);
    opened.expect("it opens").0
}

pub(crate) fn open(disk: &Simulated) -> Result<(Arc<Queue>, Report)> {
    store(disk).open(Path::new(ANCHOR), small())
}

/// All rows that are there: ids and bytes.
pub(crate) fn rows(table: &Queue) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut rows = Vec::new();
    let mut from = 0;
    while let Some(id) = table.next_visible(from, None) {
        rows.extend(table.read(id)?.map(|row| (id, row)));
        from = id + 1;
    }
    Ok(rows)
}
