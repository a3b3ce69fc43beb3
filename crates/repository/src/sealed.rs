//! Small documents that people may read: a title with the format version, JSON, a checksum.
//!
//! ```text
//! evenkeel head 1
//! { … }
//! blake3 6f1e…
//! ```
//! The checksum covers every byte before its own line; that line has one possible spelling.

use crate::fault::{damaged, store_failed};
use crate::ids::Digest;
use crate::store::{Existing, Store, StoredObject};
use evenkeel_op::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// The newest format version this program reads, and the one of what belongs to encryption: a
/// program that does not know of it must not take such a repository for one of its own.
pub(crate) const VERSION: u32 = 2;
/// The version of everything else.
pub(crate) const VERSION_PLAIN: u32 = 1;

/// No document is larger: a length beyond it is damage, not a reason to allocate.
const LENGTH_MAX: u64 = 64 << 20;

/// Documents that are open at once.
const TOGETHER: usize = 64;

/// Renders a document and returns its bytes.
pub(crate) fn seal<T: Serialize>(title: &str, body: &T) -> Result<Vec<u8>> {
    seal_as(VERSION_PLAIN, title, body)
}

/// Renders a document of a version and returns its bytes.
pub(crate) fn seal_as<T: Serialize>(version: u32, title: &str, body: &T) -> Result<Vec<u8>> {
    let mut bytes = format!("evenkeel {title} {version}\n").into_bytes();
    serde_json::to_writer_pretty(&mut bytes, body)
        .map_err(|error| Error::failed(format!("failed to render the {title}")).because(error))?;
    bytes.push(b'\n');
    let digest = Digest::of(&bytes);
    bytes.extend_from_slice(format!("blake3 {digest}\n").as_bytes());
    Ok(bytes)
}

/// Reads a document back; `name` is the object, for messages.
pub(crate) fn unseal<T: DeserializeOwned>(title: &str, name: &str, bytes: &[u8]) -> Result<T> {
    let line_end = bytes
        .iter()
        .take(80)
        .position(|&b| b == b'\n')
        .ok_or_else(|| damaged(name, "it has no title line"))?;
    let version = std::str::from_utf8(&bytes[..line_end])
        .ok()
        .and_then(|line| line.strip_prefix("evenkeel "))
        .and_then(|line| line.strip_prefix(title))
        .and_then(|line| line.strip_prefix(' '))
        .and_then(|digits| digits.parse::<u32>().ok())
        .ok_or_else(|| damaged(name, format!("it does not begin with 'evenkeel {title}'")))?;
    if version > VERSION {
        return Err(newer(name, version));
    }
    const SEAL: usize = "blake3 \n".len() + 64;
    let body_end = bytes.len().saturating_sub(SEAL).max(line_end + 1);
    let digest = Digest::of(&bytes[..body_end]);
    if bytes[body_end..] != *format!("blake3 {digest}\n").as_bytes() {
        return Err(damaged(name, "its checksum does not match"));
    }
    serde_json::from_slice(&bytes[line_end + 1..body_end])
        .map_err(|error| damaged(name, format!("its body is not valid ({error})")))
}

/// Makes the error for something written by a later evenkeel.
pub(crate) fn newer(name: &str, version: u32) -> Error {
    Error::new(
        ErrorKind::Failed,
        format!("{name} has format version {version}; this evenkeel knows up to {VERSION}"),
    )
    .hint("use a newer evenkeel for this repository")
}

/// Reads a whole small object.
pub(crate) fn read_object(store: &dyn Store, name: &str) -> Result<Vec<u8>> {
    whole(name, store.open(name))
}

/// Reads many whole small objects, in the order of their names: their beginnings together, so that
/// a store far away does not cost a round trip for each.
pub(crate) fn read_objects(store: &dyn Store, names: &[String]) -> Vec<Result<Vec<u8>>> {
    let mut all = Vec::with_capacity(names.len());
    for some in names.chunks(TOGETHER) {
        let opened = some.iter().zip(store.open_all(some));
        all.extend(opened.map(|(name, opened)| whole(name, opened)));
    }
    all
}

/// Reads all of an object that was opened.
pub(crate) fn whole(name: &str, opened: io::Result<Box<dyn StoredObject>>) -> Result<Vec<u8>> {
    let read = |object: Box<dyn StoredObject>| {
        if object.size() > LENGTH_MAX {
            return Err(io::Error::other("it is too large for a document"));
        }
        let mut bytes = vec![0; object.size() as usize];
        object.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    };
    opened
        .and_then(read)
        .map_err(|error| store_failed("read", name, error))
}

/// Writes a whole small object.
pub(crate) fn write_object(
    store: &dyn Store,
    name: &str,
    bytes: &[u8],
    existing: Existing,
) -> Result<()> {
    let write = || {
        let mut object = store.create(name, existing)?;
        object.write(bytes)?;
        object.finish()
    };
    write().map_err(|error| store_failed("write", name, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_document_counts() {
        let sealed = seal("head", &serde_json::json!({"a": [1, 2], "b": "text"})).unwrap();
        let read = |bytes: &[u8]| unseal::<serde_json::Value>("head", "head", bytes);
        assert_eq!(read(&sealed).unwrap()["a"][1], 2);
        for bit in 0..sealed.len() * 8 {
            let mut wrong = sealed.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&wrong).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(read(&sealed[..length]).is_err(), "length {length}");
        }
        assert!(unseal::<serde_json::Value>("manifest", "m", &sealed).is_err());
    }

    #[test]
    fn a_newer_version_is_named() {
        let error = unseal::<()>("head", "head", b"evenkeel head 7\nwhatever").unwrap_err();
        assert!(error.to_string().contains("format version 7"), "{error}");
    }
}
