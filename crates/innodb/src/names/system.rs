//! The dictionary in the system tablespace of MariaDB and of MySQL before 8.0, read without a server.
//!
//! ```text
//! page 7, at 38: … 32 root page of SYS_TABLES (4) … 44 root page of SYS_INDEXES (4)
//! record (old style), backwards from its origin: next record's place in the page (2), number of
//!   fields · 2 + 1 if their ends take one byte each (with 6 bits more, 2), heap number …, flags (1
//!   byte, 6 before the origin: 0x20 deleted); before those the ends of fields, the first one last
//! SYS_TABLES   name, transaction (6), undo (7), id (8) …
//! SYS_INDEXES  table id (8), id (8), transaction (6), undo (7), name, fields (4), type (4), space (4), root
//! ```

use super::IndexRow;
use crate::bytes::{be16, be32, be64};
use crate::page::{DATA, PageType, TYPE};
use std::collections::{HashMap, HashSet};

const DICTIONARY_HEADER: u32 = 7;
const TABLES_ROOT: usize = DATA + 32;
const INDEXES_ROOT: usize = DATA + 44;
/// Where an index page says how far above the leaves it is.
const LEVEL: usize = DATA + 26;
const NEXT_PAGE: usize = 12;
/// Where the record before the first one and the one behind the last one have their origins.
const INFIMUM: usize = 101;
const SUPREMUM: usize = 116;
const DELETED: u8 = 0x20;
/// Bytes before a record's origin, without the ends of its fields.
const EXTRA: usize = 6;
/// No tree of the dictionary is higher.
const LEVELS_MAX: usize = 16;
/// The first byte of the name of an index that is still being made.
const UNFINISHED: u8 = 0xff;

/// Reads the rows that [`super::Names::new`] takes. `page` gives a page of the system tablespace, by
/// its number, if it is there and sound; what lies behind one that is not is left out.
pub fn read(mut page: impl FnMut(u32) -> Option<Vec<u8>>) -> Vec<IndexRow> {
    let Some(header) = page(DICTIONARY_HEADER) else {
        return Vec::new();
    };
    let mut tables = HashMap::new();
    walk(be32(&header, TABLES_ROOT), &mut page, |record| {
        let (name, id) = (record.field(0)?, record.field(3)?);
        tables.insert(number(id)?, String::from_utf8_lossy(name).into_owned());
        Some(())
    });
    let mut rows = Vec::new();
    walk(be32(&header, INDEXES_ROOT), &mut page, |record| {
        let name = record.field(4)?;
        if name.first() == Some(&UNFINISHED) {
            return None;
        }
        rows.push(IndexRow {
            space_id: number(record.field(7)?)? as u32,
            index_id: number(record.field(1)?)?,
            table: tables.get(&number(record.field(0)?)?)?.clone(),
            index: String::from_utf8_lossy(name).into_owned(),
            index_type: number(record.field(6)?)? as u32,
        });
        Some(())
    });
    rows
}

/// Hands over every record of a tree that is not deleted, in order.
fn walk(
    root: u32,
    page: &mut impl FnMut(u32) -> Option<Vec<u8>>,
    mut each: impl FnMut(&Record<'_>) -> Option<()>,
) {
    let Some(mut leaf) = first_leaf(root, page) else {
        return;
    };
    let mut seen = HashSet::new();
    loop {
        for record in records(&leaf) {
            // One that makes no sense does not hide the others.
            let _ = each(&record);
        }
        let next = be32(&leaf, NEXT_PAGE);
        // Pages that were linked wrongly before they were checksummed may be a ring.
        if next == u32::MAX || !seen.insert(next) {
            return;
        }
        match page(next) {
            Some(next) => leaf = next,
            None => return,
        }
    }
}

fn first_leaf(root: u32, page: &mut impl FnMut(u32) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut number_of = root;
    for _ in 0..LEVELS_MAX {
        let node = page(number_of)?;
        if be16(&node, TYPE) != PageType::INDEX.0 {
            return None;
        }
        if be16(&node, LEVEL) == 0 {
            return Some(node);
        }
        let first = records(&node).next()?;
        number_of = number(first.field(first.fields - 1)?)? as u32;
    }
    None
}

/// A record in a page.
struct Record<'a> {
    page: &'a [u8],
    origin: usize,
    fields: usize,
    short: bool,
}

/// Follows the chain of records that are not deleted.
fn records(page: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut origin = INFIMUM;
    // A chain that was damaged before it was checksummed may be a ring.
    let mut left = page.len() / EXTRA;
    std::iter::from_fn(move || {
        loop {
            origin = usize::from(be16(page, origin - 2));
            left = left.checked_sub(1)?;
            if origin <= SUPREMUM || origin >= page.len() {
                return None;
            }
            if page[origin - EXTRA] & DELETED != 0 {
                continue;
            }
            return Some(Record {
                page,
                origin,
                fields: usize::from((be16(page, origin - 4) & 0x7fe) >> 1),
                short: page[origin - 3] & 1 != 0,
            });
        }
    })
}

impl<'a> Record<'a> {
    /// Returns a field's bytes; nothing for NULL, and for what does not lie in the page.
    fn field(&self, index: usize) -> Option<&'a [u8]> {
        if index >= self.fields {
            return None;
        }
        let start = match index {
            0 => 0,
            _ => self.end(index - 1)?.0,
        };
        let (end, is_null) = self.end(index)?;
        if is_null {
            return None;
        }
        self.page.get(self.origin + start..self.origin + end)
    }

    /// Returns where a field ends, counted from the origin, and whether it is NULL.
    fn end(&self, index: usize) -> Option<(usize, bool)> {
        if self.short {
            let at = self.origin.checked_sub(EXTRA + index + 1)?;
            let byte = *self.page.get(at)?;
            return Some((usize::from(byte & 0x7f), byte & 0x80 != 0));
        }
        let at = self.origin.checked_sub(EXTRA + 2 * index + 2)?;
        let both = be16(self.page, at);
        Some((usize::from(both & 0x3fff), both & 0x8000 != 0))
    }
}

/// Reads a number of four or eight bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => Some(u64::from(be32(bytes, 0))),
        8 => Some(be64(bytes, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_ends_and_does_not_hang() {
        let mut ring = vec![0; 16384];
        ring[TYPE..TYPE + 2].copy_from_slice(&PageType::INDEX.0.to_be_bytes());
        // The record behind the first is itself.
        for origin in [INFIMUM, 200] {
            ring[origin - 2..origin].copy_from_slice(&200_u16.to_be_bytes());
        }
        assert!(records(&ring).count() <= ring.len() / EXTRA);
        assert_eq!(read(|_| Some(ring.clone())), []);
        assert_eq!(read(|_| Some(vec![0xff; 16384])), []);
        assert_eq!(read(|_| None), []);
    }
}
