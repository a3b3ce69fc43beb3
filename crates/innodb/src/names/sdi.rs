//! The dictionary that MySQL 8.0 keeps in each tablespace (SDI): JSON, packed by zlib, in a B-tree.
//!
//! ```text
//! record (new style), from its origin: type (4), id (8), transaction (6), undo (7), length (4),
//!   packed length (4), packed JSON or, if it is elsewhere, in its last 20 bytes: tablespace (4), page
//!   (4), offset (4), length (8). Before the origin: next record, from here (2, signed), kind (3 bits
//!   of 1 byte), …; at -6 how long the JSON here is (0x80: its low byte is at -7; 0x40: elsewhere)
//! page of what is elsewhere, from 38: bytes here (4), next page (4), bytes
//! ```

use super::IndexRow;
use super::encoding::encode;
use crate::bytes::{be16, be32};
use crate::page::{DATA, PageType, TYPE};
use flate2::read::ZlibDecoder;
use serde::Deserialize;
use std::io::Read;

const LEVEL: usize = DATA + 26;
/// Where the root of a new tablespace's dictionary is.
const ROOT: u32 = 3;
/// Bytes of the key: type and id.
const KEY: usize = 12;
const NEXT_PAGE: usize = 12;
const LEVELS_MAX: usize = 16;
const LEAVES_MAX: usize = 4096;
const INFIMUM: usize = 99;
const UNPACKED_LENGTH: usize = 25;
const PACKED_LENGTH: usize = 29;
const PACKED: usize = 33;
/// Of a table; 2 of a tablespace.
const OBJECT_TABLE: u32 = 1;
/// No table's dictionary entry is longer.
const LENGTH_MAX: u32 = 64 << 20;
const REFERENCE: usize = 20;
/// Bits of an index's type, as the dictionary of older servers has them.
const CLUSTERED: u32 = 1;

#[derive(Deserialize)]
struct Document {
    dd_object: SdiTable,
}

#[derive(Deserialize)]
struct SdiTable {
    name: String,
    schema_ref: String,
    #[serde(default)]
    indexes: Vec<Index>,
    #[serde(default)]
    partitions: Vec<Partition>,
}

#[derive(Deserialize)]
struct Index {
    name: String,
    #[serde(default)]
    se_private_data: String,
}

#[derive(Deserialize)]
struct Partition {
    name: String,
    #[serde(default)]
    indexes: Vec<PartitionIndex>,
    #[serde(default)]
    subpartitions: Vec<Partition>,
}

#[derive(Deserialize)]
struct PartitionIndex {
    #[serde(default)]
    se_private_data: String,
    index_opx: usize,
}

/// Returns the indexes that a leaf page of a tablespace's own dictionary names. `page` gives other
/// pages of the tablespace that are sound. Nothing of what makes no sense.
#[must_use]
pub fn read(leaf: &[u8], mut page: impl FnMut(u32) -> Option<Vec<u8>>) -> Vec<IndexRow> {
    if leaf.len() < 1024 || be16(leaf, TYPE) != PageType::SDI.0 || be16(leaf, LEVEL) != 0 {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for origin in origins(leaf) {
        let Some(json) = json(leaf, origin, &mut page) else {
            continue;
        };
        if let Ok(document) = serde_json::from_slice::<Document>(&json) {
            add(&document.dd_object, &mut rows);
        }
    }
    rows
}

/// Returns the indexes that a tablespace's own dictionary names, as far as its root is where servers
/// put it in a new tablespace. `page` gives pages that are sound.
pub fn of_space(mut page: impl FnMut(u32) -> Option<Vec<u8>>) -> Vec<IndexRow> {
    let mut rows = Vec::new();
    let Some(mut node) = page(ROOT) else {
        return rows;
    };
    let is_node = |node: &[u8]| node.len() >= 1024 && be16(node, TYPE) == PageType::SDI.0;
    for _ in 0..LEVELS_MAX {
        if !is_node(&node) || be16(&node, LEVEL) == 0 {
            break;
        }
        // Behind the key of a node's record is the page below.
        let first = node_records(&node).next();
        match first.and_then(|origin| page(be32(&node, origin + KEY))) {
            Some(below) => node = below,
            None => return rows,
        }
    }
    for _ in 0..LEAVES_MAX {
        if !is_node(&node) {
            break;
        }
        rows.extend(read(&node, &mut page));
        match page(be32(&node, NEXT_PAGE)) {
            Some(next) => node = next,
            None => break,
        }
    }
    rows
}

fn node_records(page: &[u8]) -> impl Iterator<Item = usize> {
    chain_of_records(page, 1)
}

/// Follows the chain of records.
fn origins(page: &[u8]) -> impl Iterator<Item = usize> {
    chain_of_records(page, 0)
}

fn chain_of_records(page: &[u8], kind: u8) -> impl Iterator<Item = usize> {
    let mut origin = INFIMUM;
    let mut left = page.len() / 7;
    std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let step = be16(page, origin - 2);
        // Within 64 KiB, backwards too.
        origin = (origin + usize::from(step)) & 0xffff;
        let is_record = step != 0 && origin > INFIMUM && origin + PACKED < page.len();
        (is_record && page[origin - 3] & 7 == kind).then_some(origin)
    })
}

fn json(
    page: &[u8],
    origin: usize,
    other: &mut impl FnMut(u32) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let (unpacked, packed) = (
        be32(page, origin + UNPACKED_LENGTH),
        be32(page, origin + PACKED_LENGTH),
    );
    if be32(page, origin) != OBJECT_TABLE || unpacked > LENGTH_MAX || packed > LENGTH_MAX {
        return None;
    }
    let here = page[origin - 6];
    let bytes = if here & 0x80 != 0 && here & 0x40 != 0 {
        let length = usize::from(here & 0x3f) << 8 | usize::from(page[origin - 7]);
        let local = page.get(origin + PACKED..origin + PACKED + length)?;
        let (local, reference) = local.split_at(length.checked_sub(REFERENCE)?);
        let mut bytes = local.to_vec();
        chain(be32(reference, 4), packed as usize, &mut bytes, other)?;
        bytes
    } else {
        page.get(origin + PACKED..origin + PACKED + packed as usize)?
            .to_vec()
    };
    let mut json = Vec::new();
    ZlibDecoder::new(&bytes[..])
        .take(u64::from(unpacked))
        .read_to_end(&mut json)
        .ok()?;
    Some(json)
}

/// Adds what lies in a chain of pages until `bytes` has `length`.
fn chain(
    first: u32,
    length: usize,
    bytes: &mut Vec<u8>,
    other: &mut impl FnMut(u32) -> Option<Vec<u8>>,
) -> Option<()> {
    let mut next = first;
    while bytes.len() < length {
        let page = other(next)?;
        let here = be32(&page, DATA) as usize;
        let part = page.get(DATA + 8..DATA + 8 + here)?;
        if part.is_empty() {
            return None;
        }
        bytes.extend_from_slice(part);
        next = be32(&page, DATA + 4);
    }
    Some(())
}

fn add(table: &SdiTable, rows: &mut Vec<IndexRow>) {
    // The first index of a table is the one with the rows.
    let index_type = |place: usize| if place == 0 { CLUSTERED } else { 0 };
    for (place, index) in table.indexes.iter().enumerate() {
        rows.extend(row(
            table,
            "",
            &index.name,
            index_type(place),
            &index.se_private_data,
        ));
    }
    let mut part = |suffix: &str, partition: &Partition| {
        for one in &partition.indexes {
            let Some(index) = table.indexes.get(one.index_opx) else {
                continue;
            };
            let data = &one.se_private_data;
            rows.extend(row(
                table,
                suffix,
                &index.name,
                index_type(one.index_opx),
                data,
            ));
        }
    };
    for partition in &table.partitions {
        part(&format!("#P#{}", encode(&partition.name)), partition);
        for sub in &partition.subpartitions {
            let suffix = format!("#P#{}#SP#{}", encode(&partition.name), encode(&sub.name));
            part(&suffix, sub);
        }
    }
}

/// `data` is `id=140;root=4;space_id=2;…`, or nothing for the indexes of a partitioned table itself.
fn row(
    table: &SdiTable,
    suffix: &str,
    index: &str,
    index_type: u32,
    data: &str,
) -> Option<IndexRow> {
    let value = |name: &str| {
        let mut pairs = data.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name)?.1.parse::<u64>().ok()
    };
    Some(IndexRow {
        space_id: u32::try_from(value("space_id")?).ok()?,
        index_id: value("id")?,
        table: format!(
            "{}/{}{suffix}",
            encode(&table.schema_ref),
            encode(&table.name)
        ),
        index: index.to_owned(),
        index_type,
    })
}
