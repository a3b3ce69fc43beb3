//! Big-endian integers out of a buffer. Callers have checked the length: a short buffer panics.

/// Returns the two bytes at `at`.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the four bytes at `at`.
#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns the eight bytes at `at`.
#[inline]
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    (u64::from(be32(bytes, at)) << 32) | u64::from(be32(bytes, at + 4))
}

/// Returns whether every byte is zero. Reads 64 bytes a step, which compiles to vector code.
pub(crate) fn all_zero(bytes: &[u8]) -> bool {
    let mut chunks = bytes.chunks_exact(64);
    chunks.all(|chunk| chunk.iter().fold(0, |seen, byte| seen | byte) == 0)
        && bytes[bytes.len() / 64 * 64..].iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_big_endian() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(be16(&bytes, 1), 0x0203);
        assert_eq!(be32(&bytes, 1), 0x0203_0405);
        assert_eq!(be64(&bytes, 1), 0x0203_0405_0607_0809);
    }

    #[test]
    fn one_bit_anywhere_is_not_zero() {
        for len in [0, 1, 63, 64, 65, 130] {
            let mut bytes = vec![0; len];
            assert!(all_zero(&bytes));
            for at in 0..len {
                bytes[at] = 0x10;
                assert!(!all_zero(&bytes), "byte {at} of {len}");
                bytes[at] = 0;
            }
        }
    }
}
