//! What has to be known of a column to write its values as text.

use crate::decode::Bytes;

/// The length of a definition's last part, with the byte that says so.
const FIXED: usize = 13;
const UNSIGNED: u16 = 32;
const ZEROFILL: u16 = 64;

/// A column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenKind {
    /// The protocol's number for it.
    pub(super) number: u8,
    pub(super) is_unsigned: bool,
    /// Digits after the point; more than there can be where that is not fixed.
    pub(super) decimals: u8,
    /// Numbers are filled with zeros up to this length.
    pub(super) filled_to: u8,
}

impl TokenKind {
    /// Reads the definition of a column. What MariaDB adds to it comes before the part that is read.
    pub(crate) fn of(definition: &[u8]) -> Option<Self> {
        let at = definition.len().checked_sub(FIXED)?;
        let mut bytes = Bytes(&definition[at..]);
        if bytes.byte().ok()? != (FIXED - 1) as u8 {
            return None;
        }
        bytes.short().ok()?;
        let length = bytes.number(4).ok()?;
        let number = bytes.byte().ok()?;
        let flags = bytes.short().ok()?;
        Some(Self {
            number,
            is_unsigned: flags & UNSIGNED != 0,
            decimals: bytes.byte().ok()?,
            filled_to: match flags & ZEROFILL {
                0 => 0,
                _ => u8::try_from(length).unwrap_or(u8::MAX),
            },
        })
    }
}
