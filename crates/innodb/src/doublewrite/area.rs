//! Where the doublewrite area of a system tablespace is.

use crate::bytes::be32;
use crate::page::PageSize;
use crate::space::read_up_to;
use evenkeel_op::{Context, Result};
use std::fs::File;

/// How far before the end of page 5 the doublewrite header begins.
const HEADER_FROM_END: usize = 200;
const MAGIC: u32 = 536_853_855;
const SPACE_IDS_STORED: u32 = 1_783_657_386;
/// The page with the header.
const TRX_SYS_PAGE: u64 = 5;

/// Where the doublewrite area is in the system tablespace: two runs of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The first page of each run.
    pub first: [u32; 2],
    /// How many pages each run has.
    pub pages: u32,
}

impl Area {
    /// Returns whether a page of the system tablespace is inside.
    #[must_use]
    pub fn contains(&self, page_no: u32) -> bool {
        self.first
            .iter()
            .any(|first| page_no.wrapping_sub(*first) < self.pages)
    }

    /// Reads page 5, whole; nothing if it names no area or one in an unknown way.
    #[must_use]
    pub fn parse(trx_sys_page: &[u8], page_size: PageSize) -> Option<Self> {
        let size = page_size.bytes() as usize;
        if trx_sys_page.len() != size {
            return None;
        }
        let header = &trx_sys_page[size - HEADER_FROM_END..];
        let (first, again) = (&header[10..22], &header[22..34]);
        if first != again || be32(first, 0) != MAGIC || be32(header, 34) != SPACE_IDS_STORED {
            return None;
        }
        Some(Self {
            first: [be32(first, 4), be32(first, 8)],
            pages: page_size.extent_pages(),
        })
    }

    /// Reads where the area is from the first file of the system tablespace.
    pub(crate) fn of_file(ibdata1: &File, page_size: PageSize) -> Result<Option<Self>> {
        let mut page = vec![0; page_size.bytes() as usize];
        let offset = TRX_SYS_PAGE * u64::from(page_size.bytes());
        let got = read_up_to(ibdata1, &mut page, offset)
            .context(|| "failed to read the transaction system's page")?;
        Ok(Self::parse(&page[..got], page_size))
    }
}
