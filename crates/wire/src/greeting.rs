//! The server's first packet, and our answer to it.

use crate::decode::{Bytes, Malformed};

/// Capabilities, by the bits of the protocol.
pub(crate) mod can {
    pub(crate) const LONG_PASSWORD: u32 = 1;
    pub(crate) const LONG_FLAG: u32 = 1 << 2;
    /// Packets in compressed packets, from the login on.
    pub(crate) const COMPRESS: u32 = 1 << 5;
    pub(crate) const LOCAL_FILES: u32 = 1 << 7;
    pub(crate) const PROTOCOL_41: u32 = 1 << 9;
    pub(crate) const TLS: u32 = 1 << 11;
    pub(crate) const TRANSACTIONS: u32 = 1 << 13;
    pub(crate) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(crate) const MULTI_RESULTS: u32 = 1 << 17;
    pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(crate) const LENGTH_ENCODED_AUTH: u32 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
    /// What we ask for wherever it is offered.
    pub(crate) const WANTED: u32 = LONG_PASSWORD
        | LONG_FLAG
        | LOCAL_FILES
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_RESULTS
        | PLUGIN_AUTH
        | LENGTH_ENCODED_AUTH
        | DEPRECATE_EOF;
    /// Without these there is nothing we could say.
    pub(crate) const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION;
}

/// utf8mb4_general_ci: every server has it.
const UTF8MB4: u8 = 45;
/// The longest packet that we say we take: the protocol's limit.
const LONGEST_PACKET: u32 = 1 << 30;

/// What a server says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Its version as text.
    pub version: String,
    /// The connection's number.
    pub id: u32,
    /// What it can do.
    pub capabilities: u32,
    /// What a password is scrambled with.
    pub nonce: Vec<u8>,
    /// The plugin that it would have us log in with.
    pub plugin: String,
}

impl Greeting {
    /// Reads a handshake packet of protocol version 10.
    pub fn of(packet: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(packet);
        if bytes.byte()? != 10 {
            return Err(Malformed);
        }
        let version = String::from_utf8_lossy(bytes.until_zero()).into_owned();
        let id = bytes.number(4)? as u32;
        let mut nonce = bytes.take(8)?.to_vec();
        bytes.byte()?;
        let low = bytes.number(2)?;
        // Collation and status.
        bytes.take(3)?;
        let high = bytes.number(2)?;
        let length = usize::from(bytes.byte()?);
        bytes.take(10)?;
        let rest = bytes.take(length.saturating_sub(8).max(13).min(bytes.0.len()))?;
        // The scramble ends in a zero that is no part of it.
        nonce.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        Ok(Self {
            version,
            id,
            capabilities: (low | high << 16) as u32,
            nonce,
            plugin: String::from_utf8_lossy(bytes.until_zero()).into_owned(),
        })
    }

    /// Returns the beginning of every answer: also, alone, the request for TLS.
    pub(crate) fn opening(capabilities: u32) -> Vec<u8> {
        let mut packet = Vec::with_capacity(128);
        packet.extend_from_slice(&capabilities.to_le_bytes());
        packet.extend_from_slice(&LONGEST_PACKET.to_le_bytes());
        packet.push(UTF8MB4);
        packet.extend_from_slice(&[0; 23]);
        packet
    }

    /// Returns the answer that logs in.
    pub(crate) fn answer(capabilities: u32, user: &str, plugin: &str, proof: &[u8]) -> Vec<u8> {
        let mut packet = Self::opening(capabilities);
        packet.extend_from_slice(user.as_bytes());
        packet.push(0);
        // Below 251 bytes, a length-encoded length and one of a byte are the same.
        packet.push(proof.len() as u8);
        packet.extend_from_slice(proof);
        if capabilities & can::PLUGIN_AUTH != 0 {
            packet.extend_from_slice(plugin.as_bytes());
            packet.push(0);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greeting() -> Vec<u8> {
        let mut packet = b"\x0a5.7.22\0\x07\0\0\0".to_vec();
        packet.extend_from_slice(b"abcdefgh\0\xff\xf7\x08\x02\0\xff\x81\x15");
        packet.extend_from_slice(&[0; 10]);
        packet.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        packet
    }

    #[test]
    fn a_greeting_is_read() {
        let read = Greeting::of(&greeting()).unwrap();
        assert_eq!((&*read.version, read.id), ("5.7.22", 7));
        assert_eq!(read.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(read.plugin, "mysql_native_password");
        assert_eq!(read.capabilities, 0x81ff_f7ff);
    }

    #[test]
    fn another_protocol_is_malformed() {
        assert_eq!(Greeting::of(b"\x09"), Err(Malformed));
        assert_eq!(Greeting::of(b"SSH-2.0-OpenSSH"), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Greeting::of(&bytes);
        }

        #[test]
        fn a_damaged_greeting_is_read_without_a_panic(at in 0usize..70, byte: u8, cut in 0usize..90) {
            let mut packet = greeting();
            if let Some(place) = packet.get_mut(at) {
                *place = byte;
            }
            packet.truncate(cut);
            let _ = Greeting::of(&packet);
        }
    }
}
