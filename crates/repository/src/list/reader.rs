//! Reads a list: in order, or one record by name.

use super::{
    CHUNK_FRONT, CHUNK_HEADER, CHUNK_LENGTH_MAX, CHUNK_RAW_MAX, FileKind, FileRecord, INDEX_NUMBER,
    LIST_MAGIC, LIST_TRAILER,
};
use crate::catalog::Opened;
use crate::fault::damaged;
use crate::format::bytes::{Cursor, Malformed};
use crate::format::header::{CIPHER_NONE, CIPHER_XCHACHA, HEADER_LENGTH};
use crate::lru::Lru;
use crate::mutex::held;
use evenkeel_op::Result;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Decoded chunks kept for lookups by name.
const CHUNKS_KEPT: usize = 8;

pub(crate) struct ListReader {
    object: Arc<Opened>,
    /// Per chunk: where it begins and its first name.
    index: Vec<(u64, String)>,
    index_at: u64,
    records: u64,
    recent: Mutex<Lru<usize, Arc<Vec<FileRecord>>>>,
}

impl ListReader {
    pub(crate) fn open(object: Arc<Opened>) -> Result<Self> {
        let broken = |_: Malformed| damaged(&object.name, "its index is not valid");
        let size = object.size();
        let mut trailer = [0; LIST_TRAILER];
        let trailer_at = size
            .checked_sub(LIST_TRAILER as u64)
            .filter(|at| *at >= HEADER_LENGTH as u64)
            .ok_or_else(|| broken(Malformed))?;
        object.read_into(trailer_at, &mut trailer)?;
        let (index_at, records, chunks) = decode_trailer(&trailer, object.seed).map_err(broken)?;
        if index_at < HEADER_LENGTH as u64 || index_at > trailer_at {
            return Err(broken(Malformed));
        }
        let (raw, count) = read_chunk(&object, index_at, trailer_at, INDEX_NUMBER)?;
        if count != chunks {
            return Err(broken(Malformed));
        }
        let index = decode_index(&raw, chunks).map_err(broken)?;
        Ok(Self {
            index,
            index_at,
            records,
            recent: Mutex::new(Lru::new(CHUNKS_KEPT)),
            object,
        })
    }

    /// Returns how many records there are.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the record of a name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<FileRecord>> {
        let after = self
            .index
            .partition_point(|(_, first)| first.as_str() <= name);
        let Some(number) = after.checked_sub(1) else {
            return Ok(None);
        };
        let kept = held(&self.recent).get(&number);
        let chunk = match kept {
            Some(chunk) => chunk,
            None => {
                let chunk = Arc::new(self.chunk(number)?);
                held(&self.recent).put(number, chunk.clone(), 1);
                chunk
            }
        };
        let found = chunk.binary_search_by(|record| record.meta.name.as_str().cmp(name));
        Ok(found.ok().map(|at| chunk[at].clone()))
    }

    fn chunk(&self, number: usize) -> Result<Vec<FileRecord>> {
        let name = &self.object.name;
        let broken = || damaged(name, format!("chunk {number} is not valid"));
        let start = self.index[number].0;
        let end = self
            .index
            .get(number + 1)
            .map_or(self.index_at, |(offset, _)| *offset);
        let (raw, count) = read_chunk(&self.object, start, end, number as u32)?;
        let mut records = Vec::new();
        for line in raw
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let record: FileRecord = serde_json::from_slice(line)
                .map_err(|error| damaged(name, format!("chunk {number}: {error}")))?;
            if record.meta.kind == FileKind::File && !record.meta.has_sound_blocks() {
                let meta = &record.meta;
                let what = format!(
                    "'{}' cannot have {} bytes in blocks of {}",
                    meta.name, meta.size, meta.block_size
                );
                return Err(damaged(name, what));
            }
            records.push(record);
        }
        let sorted = records.is_sorted_by(|a, b| a.meta.name < b.meta.name);
        let first = records.first().map(|record| record.meta.name.as_str());
        if records.len() != count as usize || !sorted || first != Some(&self.index[number].1) {
            return Err(broken());
        }
        Ok(records)
    }
}

fn decode_trailer(trailer: &[u8; LIST_TRAILER], seed: u32) -> Result<(u64, u64, u32), Malformed> {
    let mut fields = Cursor::new(trailer);
    if fields.array()? != LIST_MAGIC {
        return Err(Malformed);
    }
    let found = (fields.u64()?, fields.u64()?, fields.u32()?);
    if fields.u32()? != crc32c::crc32c_append(seed, &trailer[..28]) {
        return Err(Malformed);
    }
    Ok(found)
}

fn decode_index(raw: &[u8], chunks: u32) -> Result<Vec<(u64, String)>, Malformed> {
    let mut fields = Cursor::new(raw);
    let mut index = Vec::new();
    for _ in 0..chunks {
        let offset = fields.u64()?;
        let length = fields.u32()? as usize;
        let name = std::str::from_utf8(fields.take(length)?).map_err(|_| Malformed)?;
        index.push((offset, name.to_owned()));
    }
    fields.end()?;
    if !index.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1) {
        return Err(Malformed);
    }
    Ok(index)
}

/// Reads the chunk that fills `start..end`; returns its raw bytes and its record count.
fn read_chunk(object: &Opened, start: u64, end: u64, number: u32) -> Result<(Vec<u8>, u32)> {
    let broken = || damaged(&object.name, format!("the chunk at {start} is broken"));
    let length = end
        .checked_sub(start)
        .filter(|length| (CHUNK_HEADER as u64..=CHUNK_LENGTH_MAX).contains(length))
        .filter(|_| end <= object.size())
        .ok_or_else(broken)?;
    let bytes = object.read(start, length as usize)?;
    let sealer = object.seal.sealer()?;
    let cipher = match sealer {
        None => CIPHER_NONE,
        Some(_) => CIPHER_XCHACHA,
    };
    let parse = || -> Result<(u32, u32), Malformed> {
        let mut fields = Cursor::new(&bytes);
        let payload = fields.u32()? as usize;
        let raw_length = fields.u32()?;
        let records = fields.u32()?;
        let same = fields.u32()? == number && fields.array()? == [1, cipher, 0, 0];
        let crc = fields.u32()?;
        let rest = fields.take(payload)?;
        fields.end()?;
        let found = crc32c::crc32c_append(object.seed, &bytes[..CHUNK_FRONT]);
        let right = crc32c::crc32c_append(found, rest) == crc;
        if same && right && raw_length <= CHUNK_RAW_MAX {
            Ok((raw_length, records))
        } else {
            Err(Malformed)
        }
    };
    let (raw_length, records) = parse().map_err(|_| broken())?;
    let payload = &bytes[CHUNK_HEADER..];
    let opened = match sealer {
        None => None,
        Some(sealer) => {
            let opened = sealer.open(u64::from(number), &bytes[..CHUNK_FRONT], payload);
            Some(opened.map_err(|_| broken())?)
        }
    };
    let payload = opened.as_deref().unwrap_or(payload);
    let raw = zstd::bulk::decompress(payload, raw_length as usize).map_err(|_| broken())?;
    if raw.len() != raw_length as usize {
        return Err(broken());
    }
    Ok((raw, records))
}

/// The entries of a generation in ascending order of name, read as they are asked for.
pub struct Files {
    list: Arc<ListReader>,
    next_chunk: usize,
    chunk: VecDeque<FileRecord>,
    seen: u64,
    failed: bool,
}

impl Files {
    pub(crate) fn new(list: Arc<ListReader>) -> Self {
        Self {
            list,
            next_chunk: 0,
            chunk: VecDeque::new(),
            seen: 0,
            failed: false,
        }
    }

    fn step(&mut self) -> Result<Option<FileRecord>> {
        if self.chunk.is_empty() {
            if self.next_chunk == self.list.index.len() {
                if self.seen != self.list.records {
                    let name = &self.list.object.name;
                    return Err(damaged(
                        name,
                        "its number of records does not match its header",
                    ));
                }
                return Ok(None);
            }
            self.chunk = self.list.chunk(self.next_chunk)?.into();
            self.next_chunk += 1;
        }
        self.seen += 1;
        Ok(self.chunk.pop_front())
    }
}

impl Iterator for Files {
    type Item = Result<FileRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
