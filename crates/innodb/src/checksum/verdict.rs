//! What may be found out about a page.

use crate::space::SpaceFormat;
use std::fmt;

/// What was found out about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The page is what the server wrote.
    Good,
    /// All bytes are zero: the page was never written, or freed and punched out.
    Empty,
    /// The page is damaged or in the wrong place.
    Corrupt {
        /// The checksum in the page.
        stored: u32,
        /// The checksum that its bytes have.
        computed: u32,
        /// What is wrong.
        why: Why,
    },
    /// The page carries nothing that could be checked without the server's keys or codecs, and
    /// what its header does say is right.
    Unchecked(&'static str),
}

impl Verdict {
    /// Returns whether the page is damaged or in the wrong place.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

/// What is wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The checksum does not match the bytes.
    Checksum,
    /// Header and trailer carry different LSNs: two versions of the page in one (torn write).
    TornLsn,
    /// The page says that it is this other page: it was written in the wrong place.
    PageNumber(u32),
    /// The page says that it belongs to this other tablespace.
    SpaceId(u32),
    /// The page header contradicts itself.
    Header,
    /// There are only so many bytes: the file ends inside the page.
    Length(usize),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("the checksum does not match"),
            Self::TornLsn => f.write_str("header and trailer have different LSNs"),
            Self::PageNumber(found) => write!(f, "its header says page {found}"),
            Self::SpaceId(found) => write!(f, "its header says tablespace {found}"),
            Self::Header => f.write_str("its header fields contradict each other"),
            Self::Length(got) => write!(f, "it ends after {got} bytes"),
        }
    }
}

/// Why pages of the doublewrite area are left alone.
pub(super) const DOUBLEWRITE: Verdict =
    Verdict::Unchecked("a copy in the doublewrite area, legal in any state");

/// Returns whether the page is in the doublewrite area, where it belongs to another place.
pub(super) fn is_doublewrite(page_no: u32, format: &SpaceFormat) -> bool {
    format
        .doublewrite
        .is_some_and(|area| area.contains(page_no))
}

/// Makes a bad verdict.
pub(super) fn corrupt(stored: u32, computed: u32, why: Why) -> Verdict {
    Verdict::Corrupt {
        stored,
        computed,
        why,
    }
}
