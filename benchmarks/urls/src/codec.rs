//! What is measured.

use anyhow::Result;

/// Turns strings into shorter ones and back.
pub(crate) trait Codec {
    /// Bytes that both sides must hold beforehand.
    fn table_bytes(&self) -> usize;
    /// Strings that it is measured on at most, where it is slow.
    fn most(&self) -> usize {
        usize::MAX
    }
    fn pack(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<()>;
    fn unpack(&mut self, code: &[u8], out: &mut Vec<u8>) -> Result<()>;
}
