//! Segments as bytes. In a repository that is not encrypted:
//!
//! ```text
//!  0  magic "EKBLSEG1"                   8
//!  8  length of the header               4
//! 12  CRC32 of the header                4
//! 16  header, JSON
//!     the bytes of the log, one zstd frame
//! ```
//!
//! and in one that is:
//!
//! ```text
//!  0  magic "EKBLSEG2"                   8
//!  8  epoch of the keys                  4
//! 12  salt, random                      20
//! 32  length of the wrapped data key     4
//! 36  length of the sealed header        4   its tag included
//! 40  length of the sealed frame         8   its tag included
//! 48  crc32c of the sealed frame         4
//! 52  zero                               4
//! 56  crc32c of wrapped key and header   4
//! 60  crc32c of bytes 0..60              4
//! 64  data key, wrapped for the epoch's reading identity
//!     header, JSON, sealed with the metadata key
//!     the bytes of the log, one zstd frame, sealed with the data key
//! ```
//!
//! A segment is written at once and never changed. Drawn and argued in
//! `docs/src/design/binlog.md`.

use super::header::SegmentHeader;
use crate::crypt::{Access, Hex, Key, Keyring, RunKeys, Sealer, TAG, random};
use crate::fault::{damaged, store_failed};
use crate::format::header::HEADER_LENGTH;
use crate::ids::RepositoryId;
use crate::store::{Existing, NewObject, Store, StoredObject};
use evenkeel_op::{Context, Error, Result};

const MAGIC: &[u8; 8] = b"EKBLSEG1";
const MAGIC_SEALED: &[u8; 8] = b"EKBLSEG2";
const PREFIX: usize = 16;
const FRONT: usize = 64;
/// What of the front goes into the keys and into what the parts are bound to.
const BOUND: usize = 48;
/// Headers are a few hundred bytes, and so are wrapped keys.
const HEADER_MAX: usize = 1 << 20;
/// No segment holds more of a log: a packet of 1 GiB comes in one event, which is not divided.
const RAW_MAX: u64 = 2 << 30;
const LEVEL: i32 = 3;
/// Numbers of the sealed parts.
const PART_HEADER: u64 = 0;
const PART_FRAME: u64 = 1;

const _: () = assert!(BOUND + 16 == FRONT && FRONT == HEADER_LENGTH);

/// A segment that is written and not visible yet.
pub struct NewSegment {
    object: Box<dyn NewObject>,
    name: String,
}

impl NewSegment {
    /// Makes it durable, then visible.
    pub fn finish(self) -> Result<()> {
        self.object
            .finish()
            .map_err(|error| store_failed("write", &self.name, error))
    }
}

/// Writes a segment of `bytes`, sealed if there are keys. Fills in what the header says of the bytes
/// themselves.
pub(super) fn write(
    store: &dyn Store,
    repository: RepositoryId,
    keys: Option<&RunKeys>,
    name: &str,
    header: &mut SegmentHeader,
    bytes: &[u8],
) -> Result<NewSegment> {
    let rendered = || format!("failed to compress {name}");
    let mut frame = zstd::bulk::compress(bytes, LEVEL).context(rendered)?;
    header.crc = crc32fast::hash(bytes);
    header.stored = frame.len() as u64;
    header.stored_crc = Some(crc32c::crc32c(&frame));
    let mut json = serde_json::to_vec(header).context(rendered)?;
    let start = match keys {
        None => {
            let mut start = MAGIC.to_vec();
            start.extend((json.len() as u32).to_le_bytes());
            start.extend(crc32fast::hash(&json).to_le_bytes());
            start.extend(json);
            start
        }
        Some(keys) => seal(repository, keys, name, &mut json, &mut frame)?,
    };
    let failed = |error| store_failed("write", name, error);
    let mut object = store.create(name, Existing::Refuse).map_err(failed)?;
    object.write(&start).map_err(failed)?;
    object.write(&frame).map_err(failed)?;
    Ok(NewSegment {
        object,
        name: name.to_owned(),
    })
}

/// Seals header and frame in their place, and returns all that stands before the frame.
fn seal(
    repository: RepositoryId,
    keys: &RunKeys,
    name: &str,
    json: &mut Vec<u8>,
    frame: &mut Vec<u8>,
) -> Result<Vec<u8>> {
    let wrapped = &keys.wrapped.0;
    let mut front = [0; FRONT];
    front[..8].copy_from_slice(MAGIC_SEALED);
    front[8..12].copy_from_slice(&keys.epoch.to_le_bytes());
    random(&mut front[12..32])?;
    front[32..36].copy_from_slice(&(wrapped.len() as u32).to_le_bytes());
    front[36..40].copy_from_slice(&((json.len() + TAG) as u32).to_le_bytes());
    front[40..48].copy_from_slice(&((frame.len() + TAG) as u64).to_le_bytes());
    let too_long = |_| Error::failed(format!("{name} is too long to encrypt"));
    sealer(&keys.metadata, repository, name, &front)
        .seal(PART_HEADER, wrapped, json, 0)
        .map_err(too_long)?;
    sealer(&keys.data, repository, name, &front)
        .seal(PART_FRAME, json, frame, 0)
        .map_err(too_long)?;
    front[48..52].copy_from_slice(&crc32c::crc32c(frame).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(wrapped), json);
    front[56..60].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&front[..60]);
    front[60..].copy_from_slice(&crc.to_le_bytes());
    let mut start = front.to_vec();
    start.extend_from_slice(wrapped);
    start.extend_from_slice(json);
    Ok(start)
}

/// Returns what seals the parts of one segment: in another repository, under another name, or beside
/// another part they do not open.
fn sealer(key: &Key, repository: RepositoryId, name: &str, front: &[u8; FRONT]) -> Sealer {
    let place = key.derive(
        "evenkeel log segment key v1",
        &[&repository.0, name.as_bytes()],
    );
    let mut bound = [0; HEADER_LENGTH];
    bound[..BOUND].copy_from_slice(&front[..BOUND]);
    Sealer::new(&place, &bound)
}

/// A segment of which all but the frame was read.
pub(super) struct Opened {
    object: Box<dyn StoredObject>,
    name: String,
    /// Where the frame begins, and how many bytes it has as stored.
    at: u64,
    length: u64,
    sealed: Option<SealedFront>,
    /// JSON, in clear; nothing without the key.
    header: Option<Vec<u8>>,
}

struct SealedFront {
    repository: RepositoryId,
    front: [u8; FRONT],
    wrapped: Hex,
    sealed_header: Vec<u8>,
}

impl SealedFront {
    fn word(&self, at: usize) -> u32 {
        word(&self.front, at)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Opens a segment. Without any key of an encrypted repository there is no header.
pub(super) fn open(
    store: &dyn Store,
    repository: RepositoryId,
    keys: &Keyring,
    name: &str,
) -> Result<Opened> {
    let failed = |error| store_failed("read", name, error);
    let object = store.open(name).map_err(failed)?;
    let mut prefix = [0; PREFIX];
    object.read_exact_at(0, &mut prefix).map_err(failed)?;
    match (&prefix[..8] == MAGIC, &prefix[..8] == MAGIC_SEALED) {
        (true, _) if keys.is_encrypted() => {
            Err(damaged(name, "it is not encrypted, unlike the repository"))
        }
        (_, true) if !keys.is_encrypted() => {
            Err(damaged(name, "it is encrypted, unlike the repository"))
        }
        (true, _) => open_plain(object, name, &prefix),
        (_, true) => open_sealed(object, repository, keys, name),
        _ => Err(damaged(name, "it does not start like a segment")),
    }
}

fn open_plain(object: Box<dyn StoredObject>, name: &str, prefix: &[u8; PREFIX]) -> Result<Opened> {
    let length = word(prefix, 8) as usize;
    if length > HEADER_MAX {
        return Err(damaged(name, "its header is broken"));
    }
    let mut json = vec![0; length];
    object
        .read_exact_at(PREFIX as u64, &mut json)
        .map_err(|error| store_failed("read", name, error))?;
    if crc32fast::hash(&json) != word(prefix, 12) {
        return Err(damaged(name, "the checksum of its header does not match"));
    }
    let at = (PREFIX + length) as u64;
    Ok(Opened {
        length: object.size().saturating_sub(at),
        object,
        name: name.to_owned(),
        at,
        sealed: None,
        header: Some(json),
    })
}

fn open_sealed(
    object: Box<dyn StoredObject>,
    repository: RepositoryId,
    keys: &Keyring,
    name: &str,
) -> Result<Opened> {
    let failed = |error| store_failed("read", name, error);
    let mut front = [0; FRONT];
    object.read_exact_at(0, &mut front).map_err(failed)?;
    if crc32c::crc32c(&front[..60]) != word(&front, 60) || word(&front, 52) != 0 {
        return Err(damaged(
            name,
            "the checksum of its first bytes does not match",
        ));
    }
    let (wrapped, header) = (word(&front, 32) as usize, word(&front, 36) as usize);
    let length = u64::from(word(&front, 40)) | u64::from(word(&front, 44)) << 32;
    let at = (FRONT + wrapped + header) as u64;
    if wrapped > HEADER_MAX || header > HEADER_MAX || at.checked_add(length) != Some(object.size())
    {
        return Err(damaged(name, "its length does not match its header"));
    }
    let mut middle = vec![0; wrapped + header];
    object
        .read_exact_at(FRONT as u64, &mut middle)
        .map_err(failed)?;
    if crc32c::crc32c(&middle) != word(&front, 56) {
        return Err(damaged(name, "the checksum of its header does not match"));
    }
    let sealed_header = middle.split_off(wrapped);
    let json = match keys.access() {
        Access::Locked => None,
        _ => {
            let key = keys.metadata(word(&front, 8))?;
            let opened = sealer(key, repository, name, &front)
                .open(PART_HEADER, &middle, &sealed_header)
                .map_err(|_| damaged(name, FOREIGN))?;
            Some(opened)
        }
    };
    Ok(Opened {
        object,
        name: name.to_owned(),
        at,
        length,
        sealed: Some(SealedFront {
            repository,
            front,
            wrapped: Hex(middle),
            sealed_header,
        }),
        header: json,
    })
}

const FOREIGN: &str = "its author did not have the keys";

impl Opened {
    /// Returns the header; `None` without a key of an encrypted repository.
    pub(super) fn header(&self) -> Result<Option<SegmentHeader>> {
        let Some(json) = &self.header else {
            return Ok(None);
        };
        let broken = || damaged(&self.name, "its header is not valid");
        let header: SegmentHeader = serde_json::from_slice(json).map_err(|_| broken())?;
        let tag = if self.sealed.is_some() { TAG as u64 } else { 0 };
        let sane = header.start < header.end
            && header.end - header.start <= RAW_MAX
            && (header.start..header.end).contains(&header.last_event)
            && header.stored.checked_add(tag) == Some(self.length);
        match sane {
            true => Ok(Some(header)),
            false => Err(broken()),
        }
    }

    /// Reads what is stored of the log's bytes, and checks it as far as that takes no key.
    pub(super) fn stored(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.length)
            .map_err(|_| damaged(&self.name, "it is too long for a segment"))?;
        let mut frame = vec![0; length];
        self.object
            .read_exact_at(self.at, &mut frame)
            .map_err(|error| store_failed("read", &self.name, error))?;
        match &self.sealed {
            Some(sealed) if crc32c::crc32c(&frame) != sealed.word(48) => Err(damaged(
                &self.name,
                "the checksum of its content does not match",
            )),
            _ => Ok(frame),
        }
    }

    /// Returns the log's bytes of what is stored, verified.
    pub(super) fn content(
        &self,
        keys: &Keyring,
        header: &SegmentHeader,
        mut frame: Vec<u8>,
    ) -> Result<Vec<u8>> {
        if let Some(sealed) = &self.sealed {
            let key = keys.data(sealed.word(8), &sealed.wrapped, &self.name)?;
            frame = sealer(&key, sealed.repository, &self.name, &sealed.front)
                .open(PART_FRAME, &sealed.sealed_header, &frame)
                .map_err(|_| damaged(&self.name, FOREIGN))?;
        }
        let crc = crc32c::crc32c(&frame);
        if header.stored_crc.is_some_and(|stored| stored != crc) {
            return Err(damaged(
                &self.name,
                "the checksum of its content does not match",
            ));
        }
        let length = header.end - header.start;
        let bytes = zstd::bulk::decompress(&frame, length as usize)
            .map_err(|_| damaged(&self.name, "its content cannot be decompressed"))?;
        if bytes.len() as u64 != length || crc32fast::hash(&bytes) != header.crc {
            return Err(damaged(
                &self.name,
                "the checksum of its content does not match",
            ));
        }
        Ok(bytes)
    }
}
