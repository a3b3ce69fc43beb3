//! Writes a list: records in ascending order of name.

use super::{
    CHUNK_FRONT, CHUNK_HEADER, CHUNK_RAW, CHUNK_RAW_MAX, FileRecord, INDEX_NUMBER, LIST_MAGIC,
    LIST_TRAILER,
};
use crate::crypt::{self, Key, Sealer, TAG};
use crate::fault::store_failed;
use crate::format::header::{CIPHER_NONE, CIPHER_XCHACHA, HEADER_LENGTH, ObjectId};
use crate::ids::Digest;
use crate::manifest::ObjectInfo;
use crate::store::{Existing, NewObject, Store};
use evenkeel_op::{Context, Error, Result};

pub(crate) struct ListWriter {
    id: ObjectId,
    name: String,
    seed: u32,
    sealer: Option<Sealer>,
    object: Box<dyn NewObject>,
    hasher: blake3::Hasher,
    offset: u64,
    chunk: Vec<u8>,
    chunk_records: u32,
    chunks: u32,
    records: u64,
    index: Vec<u8>,
    last: Option<String>,
}

impl ListWriter {
    /// Begins a list, sealed with what is derived from `metadata`.
    pub(crate) fn create(store: &dyn Store, id: ObjectId, metadata: Option<&Key>) -> Result<Self> {
        let (header, sealer) = crypt::begin(id, metadata)?;
        let name = id.name();
        let object = store
            .create(&name, Existing::Refuse)
            .map_err(|error| store_failed("write", &name, error))?;
        let mut writer = Self {
            seed: header.seed(),
            sealer,
            name,
            object,
            hasher: blake3::Hasher::new(),
            offset: 0,
            chunk: Vec::new(),
            chunk_records: 0,
            chunks: 0,
            records: 0,
            index: Vec::new(),
            last: None,
            id,
        };
        writer.write(&header.encode())?;
        debug_assert_eq!(writer.offset, HEADER_LENGTH as u64);
        Ok(writer)
    }

    /// Appends a record given as its name and its JSON.
    pub(crate) fn push(&mut self, name: &str, json: &[u8]) -> Result<()> {
        if self.last.as_deref().is_some_and(|last| last >= name) {
            return Err(Error::failed(format!("'{name}' was given twice")));
        }
        if json.len() >= CHUNK_RAW_MAX as usize {
            return Err(Error::failed(format!(
                "the description of '{name}' is too long"
            )));
        }
        if !self.chunk.is_empty() && self.chunk.len() + json.len() > CHUNK_RAW {
            self.flush()?;
        }
        if self.chunk.is_empty() {
            self.index.extend_from_slice(&self.offset.to_le_bytes());
            self.index
                .extend_from_slice(&(name.len() as u32).to_le_bytes());
            self.index.extend_from_slice(name.as_bytes());
        }
        self.chunk.extend_from_slice(json);
        self.chunk.push(b'\n');
        self.chunk_records += 1;
        self.records += 1;
        let last = self.last.get_or_insert_default();
        last.clear();
        last.push_str(name);
        Ok(())
    }

    /// Writes index and trailer; returns what the manifest says of the object.
    pub(crate) fn finish(mut self) -> Result<ObjectInfo> {
        if !self.chunk.is_empty() {
            self.flush()?;
        }
        let index_at = self.offset;
        let index = std::mem::take(&mut self.index);
        self.write_chunk(&index, self.chunks, INDEX_NUMBER)?;
        let mut trailer = Vec::with_capacity(LIST_TRAILER);
        trailer.extend_from_slice(&LIST_MAGIC);
        trailer.extend_from_slice(&index_at.to_le_bytes());
        trailer.extend_from_slice(&self.records.to_le_bytes());
        trailer.extend_from_slice(&self.chunks.to_le_bytes());
        let crc = crc32c::crc32c_append(self.seed, &trailer);
        trailer.extend_from_slice(&crc.to_le_bytes());
        self.write(&trailer)?;
        let info = ObjectInfo {
            name: self.id.file_name(),
            size: self.offset,
            hash: Digest(*self.hasher.finalize().as_bytes()),
        };
        let name = self.name;
        self.object
            .finish()
            .map_err(|error| store_failed("write", &name, error))?;
        Ok(info)
    }

    fn flush(&mut self) -> Result<()> {
        let chunk = std::mem::take(&mut self.chunk);
        self.write_chunk(&chunk, self.chunk_records, self.chunks)?;
        self.chunk = chunk;
        self.chunk.clear();
        self.chunk_records = 0;
        self.chunks += 1;
        Ok(())
    }

    fn write_chunk(&mut self, raw: &[u8], records: u32, number: u32) -> Result<()> {
        let mut payload = zstd::bulk::compress(raw, 3).context(|| "failed to compress a list")?;
        let (cipher, tag) = match self.sealer {
            None => (CIPHER_NONE, 0),
            Some(_) => (CIPHER_XCHACHA, TAG),
        };
        let mut out = Vec::with_capacity(CHUNK_HEADER + payload.len());
        out.extend_from_slice(&((payload.len() + tag) as u32).to_le_bytes());
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        out.extend_from_slice(&records.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&[1, cipher, 0, 0]);
        debug_assert_eq!(out.len(), CHUNK_FRONT);
        if let Some(sealer) = &self.sealer {
            sealer
                .seal(u64::from(number), &out, &mut payload, 0)
                .map_err(|_| Error::failed("a list is too long to encrypt"))?;
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(self.seed, &out), &payload);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&payload);
        self.write(&out)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.object
            .write(bytes)
            .map_err(|error| store_failed("write", &self.name, error))?;
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Renders a record as one line of JSON.
pub(crate) fn render(record: &FileRecord) -> Result<Vec<u8>> {
    serde_json::to_vec(record).map_err(|error| {
        Error::failed(format!("failed to describe '{}'", record.meta.name)).because(error)
    })
}
