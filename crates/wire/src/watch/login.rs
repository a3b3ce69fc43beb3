//! The packets by which a session begins: who logs in, and what both sides agree on. Proofs of passwords are
//! passed over.

use crate::decode::{Bytes, Malformed};

/// Capabilities that decide how later packets are read, by the bits of the protocol.
pub(super) mod can {
    pub(crate) const SCHEMA: u64 = 1 << 3;
    pub(crate) const COMPRESS: u64 = 1 << 5;
    pub(crate) const PROTOCOL_41: u64 = 1 << 9;
    pub(crate) const TLS: u64 = 1 << 11;
    pub(crate) const SECURE_CONNECTION: u64 = 1 << 15;
    pub(crate) const LENGTH_ENCODED_AUTH: u64 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u64 = 1 << 24;
    pub(crate) const OPTIONAL_METADATA: u64 = 1 << 25;
    pub(crate) const ZSTD: u64 = 1 << 26;
    pub(crate) const QUERY_ATTRIBUTES: u64 = 1 << 27;
}

/// The length of a request for TLS: an answer's beginning without a name.
const TLS_REQUEST: u64 = 32;

/// What the server's greeting says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Greeted {
    pub(super) session: u32,
    pub(super) capabilities: u64,
}

/// Reads the server's first packet.
pub(super) fn greeting(packet: &[u8]) -> Result<Greeted, Malformed> {
    let mut bytes = Bytes(packet);
    if bytes.byte()? != 10 {
        return Err(Malformed);
    }
    bytes.until_zero();
    let session = bytes.number(4)? as u32;
    bytes.take(8 + 1)?;
    let low = bytes.number(2)?;
    // Collation and status.
    bytes.take(3)?;
    let high = bytes.number(2)?;
    Ok(Greeted {
        session,
        capabilities: low | high << 16,
    })
}

/// What the client answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// All that follows is encrypted.
    Tls,
    Login(Login<'a>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Login<'a> {
    pub(super) capabilities: u64,
    pub(super) collation: u8,
    pub(super) user: &'a [u8],
    pub(super) schema: Option<&'a [u8]>,
}

/// Reads the client's first packet; `length` is that of the whole.
pub(super) fn answer(packet: &[u8], length: u64) -> Result<Answer<'_>, Malformed> {
    let mut bytes = Bytes(packet);
    let low = bytes.number(2)?;
    if low & can::PROTOCOL_41 == 0 {
        // Before MySQL 4.1: two bytes of capabilities, three of the longest packet.
        bytes.take(3)?;
        return Ok(Answer::Login(Login {
            capabilities: low,
            collation: 0,
            user: bytes.until_zero(),
            schema: None,
        }));
    }
    let capabilities = low | bytes.number(2)? << 16;
    bytes.take(4)?;
    let collation = bytes.byte()?;
    bytes.take(23)?;
    if capabilities & can::TLS != 0 && length == TLS_REQUEST {
        return Ok(Answer::Tls);
    }
    let user = bytes.until_zero();
    if capabilities & can::LENGTH_ENCODED_AUTH != 0 {
        bytes.string()?;
    } else if capabilities & can::SECURE_CONNECTION != 0 {
        let proof = usize::from(bytes.byte()?);
        bytes.take(proof)?;
    } else {
        bytes.until_zero();
    }
    let schema = (capabilities & can::SCHEMA != 0).then(|| bytes.until_zero());
    Ok(Answer::Login(Login {
        capabilities,
        collation,
        user,
        schema: schema.filter(|name| !name.is_empty()),
    }))
}

/// Reads whom a session changes to, and its new schema.
pub(super) fn change(packet: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut bytes = Bytes(packet);
    let user = bytes.until_zero();
    let proof = usize::from(bytes.byte()?);
    bytes.take(proof)?;
    Ok((user, bytes.until_zero()))
}

/// Returns whether these bytes begin a record of TLS: so a connection looks that was encrypted before it was seen.
pub(super) fn looks_encrypted(bytes: &[u8]) -> bool {
    // The length's highest byte is 0 in a command of less than 64 KiB, and 1 and more in a version of TLS.
    matches!(bytes, [0x14..=0x17, 3, 1..=4, ..])
}
