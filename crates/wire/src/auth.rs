//! How each plugin proves that we know the password.

use crate::decode::{Bytes, Malformed};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::scramble;
use num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

/// The smallest and the largest modulus that a server's key may have, in bytes.
const MODULUS: std::ops::RangeInclusive<usize> = 128..=2048;
/// What OAEP needs of the modulus beyond the message, in bytes.
const PADDING: usize = 42;

/// A way to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// `mysql_native_password`
    Native,
    /// `caching_sha2_password`
    CachingSha2,
    /// MariaDB's `client_ed25519`
    Ed25519,
    /// The server asks the kernel who we are: `unix_socket`, `auth_socket`.
    Peer,
}

impl Plugin {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "mysql_native_password" => Some(Self::Native),
            "caching_sha2_password" => Some(Self::CachingSha2),
            "client_ed25519" => Some(Self::Ed25519),
            "unix_socket" | "auth_socket" => Some(Self::Peer),
            _ => None,
        }
    }

    /// Returns the proof for a nonce.
    pub(crate) fn proof(self, nonce: &[u8], password: &[u8]) -> Vec<u8> {
        match self {
            Self::Native => {
                scramble::scramble_native(nonce, password).map_or_else(Vec::new, |s| s.to_vec())
            }
            Self::CachingSha2 => {
                scramble::scramble_sha256(nonce, password).map_or_else(Vec::new, |s| s.to_vec())
            }
            Self::Ed25519 => scramble::create_response_for_ed25519(password, nonce).to_vec(),
            Self::Peer => Vec::new(),
        }
    }
}

/// Encrypts a password for the server that sent `key`, a public key in PEM.
pub(crate) fn sealed(password: &[u8], nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, Malformed> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(key).map_err(|_| Malformed)?;
    let (modulus, exponent) = rsa_key(&der)?;
    let mut message = password.to_vec();
    message.push(0);
    if nonce.is_empty()
        || !MODULUS.contains(&modulus.len())
        || message.len() + PADDING > modulus.len()
    {
        return Err(Malformed);
    }
    for (byte, mask) in message.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    let key = PublicKey::new(
        BigUint::from_bytes_be(modulus),
        BigUint::from_bytes_be(exponent),
    );
    Ok(key.encrypt_block(message, Pkcs1OaepPadding::new(GetRandom)))
}

/// Takes modulus and exponent, without leading zeros, from a SubjectPublicKeyInfo.
fn rsa_key(der: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut info = Bytes(element(&mut Bytes(der), 0x30)?);
    // The algorithm: the password would not be readable for a server with another.
    element(&mut info, 0x30)?;
    let bits = element(&mut info, 0x03)?;
    let key = bits.strip_prefix(&[0]).ok_or(Malformed)?;
    let mut key = Bytes(element(&mut Bytes(key), 0x30)?);
    let modulus = positive(element(&mut key, 0x02)?)?;
    let exponent = positive(element(&mut key, 0x02)?)?;
    Ok((modulus, exponent))
}

/// Takes one element with this tag and returns its contents.
fn element<'a>(bytes: &mut Bytes<'a>, tag: u8) -> Result<&'a [u8], Malformed> {
    if bytes.byte()? != tag {
        return Err(Malformed);
    }
    let first = usize::from(bytes.byte()?);
    let length = match first {
        0..=0x7F => first,
        0x81..=0x84 => bytes
            .take(first & 0x7F)?
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte)),
        _ => return Err(Malformed),
    };
    bytes.take(length)
}

fn positive(number: &[u8]) -> Result<&[u8], Malformed> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    Some(&number[zeros..])
        .filter(|digits| !digits.is_empty())
        .ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxSKOcxiet8lLMn8ImyUE
bGGKob5EdRz/4wdiw12ED0GfKKTKhVnodFCfm1mdy7bKOX5QxL9skrvYodpW43eR
R5bfOzIgy1qIB8RYb6qOXRBw1oA4snBDqtUjDv/lbHLJN+IbzM4oU+e3Lt9rXyLX
VY289ewONPweXHqSCnTL91w+wkU1peIFV2QhZ+upUCdCtwOn5hnJPNgxtbklFoya
C8W3Z7Xx7He2QDJsEWAqX197efw0L6j8X8Tyd8Uwb7zUB1tfMGhHfm9EwejPAtzx
4GztQNtNMtGS2oGZLQBLV9hib4dDL92iiZeckg2LAf4GsJofLLR8mcHCRoqVbQJ1
YQIDAQAB
-----END PUBLIC KEY-----
";

    #[test]
    fn a_password_is_sealed_with_the_servers_key() {
        let sealed = sealed(b"secret", &[7; 20], KEY.as_bytes()).unwrap();
        assert_eq!(sealed.len(), 256);
    }

    #[test]
    fn a_password_too_long_for_the_key_is_no_panic() {
        assert_eq!(
            sealed(&[b'x'; 300], &[7; 20], KEY.as_bytes()),
            Err(Malformed)
        );
        assert_eq!(sealed(b"secret", &[7; 20], b"no key"), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_key_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = rsa_key(&bytes);
            let _ = sealed(b"secret", &[7; 20], &bytes);
        }

        #[test]
        fn a_damaged_key_is_no_panic(at in 0usize..60, byte: u8) {
            let good = SubjectPublicKeyInfoDer::from_pem_slice(KEY.as_bytes()).unwrap();
            let mut der = good.to_vec();
            der[at] = byte;
            let _ = rsa_key(&der);
        }
    }
}
