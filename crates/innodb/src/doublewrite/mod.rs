//! The doublewrite area: copies of pages whose own write may have been interrupted.
//!
//! A frozen image may hold a page half of which is old. That is legal when the doublewrite area
//! of the same image has a whole copy: the server puts it back before it replays the log.
//!
//! ```text
//! page 5 of the system tablespace, at page size - 200 (MariaDB, MySQL before 8.0.20)
//!    10  4  magic 536853855            14  4  first page of run 1    18  4  first page of run 2
//!    22 12  the three numbers again    34  4  1783657386: copies carry tablespace ids
//! #ib_<page size>_<n>.dblwr (MySQL from 8.0.20): copies one after another
//! ```

mod area;

pub use area::Area;

use crate::bytes::{be32, be64};
use crate::checksum::{Verdict, verify};
use crate::page::{LSN, PAGE_NO, PageSize, SPACE_ID};
use crate::space::SpaceFormat;
use crate::space::read_up_to;
use evenkeel_op::{Context, Result};
use std::collections::HashMap;
use std::fs::File;

/// The page copies of one frozen image. Memory: 2 MiB with pages of 16 KiB, at most 8 MiB.
#[derive(Debug, Default)]
pub struct DoublewriteCopies {
    bytes: Vec<u8>,
    page_size: usize,
    /// Where copies are in `bytes`, by tablespace id and page number.
    slots: HashMap<(u32, u32), Vec<usize>>,
}

impl DoublewriteCopies {
    /// Reads the copies in the first file of the system tablespace. None there, for example with
    /// `innodb_doublewrite=OFF` from the start, is no error.
    pub fn read(ibdata1: &File, page_size: PageSize) -> Result<Self> {
        let mut copies = Self {
            page_size: page_size.bytes() as usize,
            ..Self::default()
        };
        if let Some(area) = Area::of_file(ibdata1, page_size)? {
            let size = u64::from(page_size.bytes());
            for first in area.first {
                copies.add(
                    ibdata1,
                    u64::from(first) * size,
                    u64::from(area.pages) * size,
                )?;
            }
        }
        Ok(copies)
    }

    /// Adds the copies in a `#ib_<page size>_<n>.dblwr` file (MySQL from 8.0.20).
    pub fn add_file(&mut self, dblwr: &File) -> Result<()> {
        let length = dblwr
            .metadata()
            .context(|| "failed to look at a doublewrite file")?
            .len();
        self.add(dblwr, 0, length)
    }

    /// Adds the copies in a range of a file.
    fn add(&mut self, file: &File, offset: u64, length: u64) -> Result<()> {
        let before = self.bytes.len();
        self.bytes.resize(before + length as usize, 0);
        let got = read_up_to(file, &mut self.bytes[before..], offset)
            .context(|| "failed to read the doublewrite area")?;
        self.bytes
            .truncate(before + got / self.page_size * self.page_size);
        for at in (before..self.bytes.len()).step_by(self.page_size) {
            let page = &self.bytes[at..];
            let key = (be32(page, SPACE_ID), be32(page, PAGE_NO));
            self.slots.entry(key).or_default().push(at);
        }
        Ok(())
    }

    /// Returns the newest copy of a page that is whole by its own checksum. None for pages whose
    /// tablespace id is compressed or encrypted (MariaDB's full_crc32): a copy does not tell whose
    /// it is.
    #[must_use]
    pub fn good_copy(&self, format: &SpaceFormat, page_no: u32) -> Option<&[u8]> {
        // A copy of a page of the area itself cannot exist; the check without the area is exact.
        let plain = SpaceFormat {
            doublewrite: None,
            ..*format
        };
        let slots = self.slots.get(&(format.space_id, page_no))?;
        let size = plain.physical_size().min(self.page_size);
        slots
            .iter()
            .map(|at| &self.bytes[*at..*at + size])
            .filter(|page| verify(page, page_no, &plain) == Verdict::Good)
            .max_by_key(|page| be64(page, LSN))
    }

    /// Returns for which pages (tablespace id, page number) there is any copy, whole or not.
    pub fn pages(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.slots.keys().copied()
    }
}
