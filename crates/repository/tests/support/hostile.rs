//! What somebody who may write makes of a repository that is not encrypted: any field another, and every
//! checksum above it recomputed.

use super::forge::{opened, sealed};
use super::memory::Objects;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const HEADER: usize = 64;
const TAIL: usize = 32;
const ENTRY: usize = 24;

fn seed(object: &[u8]) -> u32 {
    crc32c::crc32c(&object[..60])
}

pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Every place of a number in a JSON value, and every text.
pub fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            path.push(name.clone());
            leaves(value, path, found);
            path.pop();
        }),
        Value::Array(each) => each.iter().enumerate().for_each(|(at, value)| {
            path.push(at.to_string());
            leaves(value, path, found);
            path.pop();
        }),
        _ => {}
    }
    found.push(
        format!("/{}", path.join("/"))
            .trim_end_matches('/')
            .to_owned(),
    );
}

/// What stands in the place of a field.
pub fn edges(old: &Value) -> Vec<Value> {
    let mut all = vec![
        Value::Null,
        json!(0),
        json!(1),
        json!(-1),
        json!(65_536),
        json!(u32::MAX),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("../../../../escaped"),
        json!("/escaped"),
        json!("generations/1/../../../escaped"),
        json!("pack-4294967295"),
        json!("pack-0000.4294967295"),
        json!("manifest"),
        json!("x".repeat(100_000)),
        json!("0".repeat(64)),
        json!([]),
        json!({}),
    ];
    if let Value::Array(each) = old {
        let twice: Vec<Value> = each.iter().chain(each).cloned().collect();
        let turned: Vec<Value> = each.iter().rev().cloned().collect();
        all.extend([json!(twice), json!(turned)]);
    }
    all.retain(|one| one != old);
    all
}

/// Recomputes the checksum of a pack's table and trailer; the last is where the table is said to begin.
pub fn mend_pack(pack: &mut [u8], table_at: usize) {
    let seed = seed(pack);
    let end = pack.len() - 4;
    let crc = crc32c::crc32c_append(seed, &pack[table_at.min(end)..end]);
    put(pack, end, &crc.to_le_bytes());
}

/// Returns where a pack's table begins, and how many frames it has.
pub fn table(pack: &[u8]) -> (usize, usize) {
    let frames = number(pack, pack.len() - TAIL + 16) as usize;
    (pack.len() - TAIL - frames * ENTRY, frames)
}

/// Recomputes the checksum of an object's header.
pub fn mend_header(object: &mut [u8]) {
    let crc = crc32c::crc32c(&object[..60]);
    put(object, 60, &crc.to_le_bytes());
}

/// Returns where the records of a map begin.
pub fn records(maps: &[u8]) -> Vec<(usize, usize)> {
    let (mut at, mut found) = (HEADER, Vec::new());
    while at + 28 <= maps.len() {
        let length = 28 + number(maps, at) as usize;
        found.push((at, length));
        at += length;
    }
    assert_eq!(at, maps.len(), "records follow each other");
    found
}

pub fn mend_record(maps: &mut [u8], at: usize, length: usize) {
    let crc = crc32c::crc32c_append(seed(maps), &maps[at..at + 24]);
    let crc = crc32c::crc32c_append(crc, &maps[at + 28..at + length]);
    put(maps, at + 24, &crc.to_le_bytes());
}

/// Takes a list of one chunk apart: its records.
pub fn listed(files: &[u8]) -> Vec<Value> {
    let (stored, raw) = (number(files, HEADER) as usize, number(files, HEADER + 4));
    let payload = &files[HEADER + 24..HEADER + 24 + stored];
    let raw = zstd::bulk::decompress(payload, raw as usize).unwrap();
    let lines = raw
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Numbers of a list's chunk, index and trailer that can be made to lie.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lies {
    pub raw_length: Option<u32>,
    pub records: Option<u32>,
    pub index_raw_length: Option<u32>,
    pub chunks: Option<u32>,
    pub index_at: Option<u64>,
    pub total: Option<u64>,
}

/// Makes a list of records.
pub fn list(header: &[u8], records: &[Value], lies: Lies) -> Vec<u8> {
    let seed = seed(header);
    let mut out = header[..HEADER].to_vec();
    let chunk = |out: &mut Vec<u8>, raw: &[u8], length: u32, count: u32, number: u32| {
        let payload = zstd::bulk::compress(raw, 1).unwrap();
        let mut front = Vec::new();
        for field in [payload.len() as u32, length, count, number] {
            front.extend(field.to_le_bytes());
        }
        front.extend([1, 0, 0, 0]);
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(seed, &front), &payload);
        out.extend(front);
        out.extend(crc.to_le_bytes());
        out.extend(payload);
    };
    let raw: Vec<u8> = records
        .iter()
        .flat_map(|record| [serde_json::to_vec(record).unwrap(), b"\n".to_vec()].concat())
        .collect();
    let count = records.len() as u32;
    let length = lies.raw_length.unwrap_or(raw.len() as u32);
    chunk(&mut out, &raw, length, lies.records.unwrap_or(count), 0);
    let index_at = out.len() as u64;
    let first = records
        .first()
        .and_then(|one| one["name"].as_str())
        .unwrap_or("");
    let mut index = (HEADER as u64).to_le_bytes().to_vec();
    index.extend((first.len() as u32).to_le_bytes());
    index.extend(first.as_bytes());
    let length = lies.index_raw_length.unwrap_or(index.len() as u32);
    let chunks = lies.chunks.unwrap_or(1);
    chunk(&mut out, &index, length, chunks, u32::MAX);
    let mut trailer = b"listtail".to_vec();
    trailer.extend(lies.index_at.unwrap_or(index_at).to_le_bytes());
    trailer.extend(lies.total.unwrap_or(u64::from(count)).to_le_bytes());
    trailer.extend(chunks.to_le_bytes());
    let crc = crc32c::crc32c_append(seed, &trailer);
    trailer.extend(crc.to_le_bytes());
    out.extend(trailer);
    out
}

/// Gives manifests and the head the sizes and checksums of what is there now.
pub fn anchor(objects: &mut Objects) {
    let mut digests: BTreeMap<u64, String> = BTreeMap::new();
    for generation in 1..5u64 {
        let name = format!("generations/{generation}/manifest");
        let Some(bytes) = objects.get(&name) else {
            continue;
        };
        let (title, mut manifest) = opened(bytes);
        for one in manifest["objects"].as_array_mut().into_iter().flatten() {
            describe(objects, generation, one);
        }
        for one in manifest["references"].as_array_mut().into_iter().flatten() {
            refer(&digests, one);
        }
        refer(&digests, &mut manifest["based_on"]);
        let bytes = sealed(&title, &manifest);
        digests.insert(generation, blake3::hash(&bytes).to_hex().to_string());
        objects.insert(name, Arc::new(bytes));
    }
    let (title, mut head) = opened(&objects["head"]);
    for list in ["live", "retired"] {
        for one in head[list].as_array_mut().into_iter().flatten() {
            refer(&digests, one);
        }
    }
    let mut changes = head["changes"].take();
    for one in changes.as_array_mut().into_iter().flatten() {
        if let Some(generation) = one["generation"].as_u64() {
            describe(objects, generation, &mut one["now"]);
        }
    }
    head["changes"] = changes;
    objects.insert("head".to_owned(), Arc::new(sealed(&title, &head)));
}

fn refer(digests: &BTreeMap<u64, String>, one: &mut Value) {
    let generation = one.get("generation").and_then(Value::as_u64);
    if let Some(digest) = generation.and_then(|number| digests.get(&number)) {
        one["manifest"] = json!(digest);
    }
}

fn describe(objects: &Objects, generation: u64, one: &mut Value) {
    let Some(name) = one.get("name").and_then(Value::as_str).map(str::to_owned) else {
        return;
    };
    let Some(bytes) = objects.get(&format!("generations/{generation}/{name}")) else {
        return;
    };
    let hash = match name.starts_with("pack-") && bytes.len() > HEADER + TAIL {
        true => {
            let at = u64::from_le_bytes(
                bytes[bytes.len() - TAIL + 8..bytes.len() - TAIL + 16]
                    .try_into()
                    .unwrap(),
            );
            let at = (at as usize).clamp(HEADER, bytes.len());
            blake3::hash(&[&bytes[..HEADER], &bytes[at..]].concat())
        }
        false => blake3::hash(bytes),
    };
    one["size"] = json!(bytes.len());
    one["hash"] = json!(hash.to_hex().to_string());
}
