//! Appends map records to a generation's `maps`.

use crate::crypt::{self, Key, Sealer};
use crate::fault::store_failed;
use crate::format::header::ObjectId;
use crate::format::record::{self, RecordId, RecordKind, Within};
use crate::ids::Digest;
use crate::manifest::ObjectInfo;
use crate::map::RecordRef;
use crate::store::{Existing, NewObject, Store};
use evenkeel_op::{Error, Result};

/// Bytes collected before they are written.
const BUFFER: usize = 256 << 10;

pub(crate) struct MapsWriter {
    id: ObjectId,
    seed: u32,
    sealer: Option<Sealer>,
    object: Box<dyn NewObject>,
    buffer: Vec<u8>,
    offset: u64,
    hasher: blake3::Hasher,
}

impl MapsWriter {
    pub(crate) fn create(store: &dyn Store, id: ObjectId, metadata: Option<&Key>) -> Result<Self> {
        let (header, sealer) = crypt::begin(id, metadata)?;
        let object = store
            .create(&id.name(), Existing::Refuse)
            .map_err(|error| store_failed("write", &id.name(), error))?;
        let seed = header.seed();
        let header = header.encode();
        Ok(Self {
            id,
            seed,
            sealer,
            object,
            buffer: header.to_vec(),
            offset: header.len() as u64,
            hasher: blake3::Hasher::new(),
        })
    }

    /// Appends a record and returns where it is.
    pub(crate) fn append(
        &mut self,
        kind: RecordKind,
        id: RecordId,
        body: &[u8],
    ) -> Result<RecordRef> {
        let within = Within {
            seed: self.seed,
            sealer: self.sealer.as_ref(),
            offset: self.offset,
        };
        let bytes = record::encode(within, kind, id, body)
            .map_err(|_| Error::failed("a map is too long to encrypt"))?;
        let at = RecordRef {
            generation: self.id.generation,
            offset: self.offset,
            length: bytes.len() as u32,
        };
        self.offset += bytes.len() as u64;
        self.buffer.extend_from_slice(&bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(at)
    }

    fn flush(&mut self) -> Result<()> {
        self.object
            .write(&self.buffer)
            .map_err(|error| store_failed("write", &self.id.name(), error))?;
        self.hasher.update(&self.buffer);
        self.buffer.clear();
        Ok(())
    }

    /// Makes the object durable and returns what the manifest says of it.
    pub(crate) fn finish(mut self) -> Result<ObjectInfo> {
        self.flush()?;
        let name = self.id.name();
        self.object
            .finish()
            .map_err(|error| store_failed("write", &name, error))?;
        Ok(ObjectInfo {
            name: self.id.file_name(),
            size: self.offset,
            hash: Digest(*self.hasher.finalize().as_bytes()),
        })
    }
}
