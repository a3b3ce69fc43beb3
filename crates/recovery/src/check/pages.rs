//! Single pages of a file that was checked: for names, for copies, for healing.

use super::shape::Shape;
use super::source::{OpenFile, Source};
use super::survey::{CheckContext, FileLocation, Subject};
use evenkeel_innodb::{SpaceFormat, verify};
use evenkeel_op::{Context, Error, Result};

/// A file whose pages are read one by one.
pub(super) struct Pages {
    source: Source,
    format: SpaceFormat,
    first_page: u32,
}

impl Pages {
    /// Opens a file whose pages can be checked.
    pub(super) fn open(context: &CheckContext, subject: &Subject) -> Result<Option<Self>> {
        let Some(Shape::Pages {
            format, first_page, ..
        }) = subject.shape.get()
        else {
            return Ok(None);
        };
        let source = match &subject.place {
            FileLocation::Path(path) => Source::File(
                OpenFile::open(path).context(|| format!("failed to open {}", subject.name))?,
            ),
            FileLocation::Stored(record) => {
                let reader = context.reader.as_ref();
                let reader = reader.ok_or_else(|| Error::failed("no generation is open"))?;
                Source::Stored(Box::new(reader.open_file(record)?))
            }
        };
        Ok(Some(Self {
            source,
            format: *format,
            first_page: *first_page,
        }))
    }

    pub(super) fn format(&self) -> &SpaceFormat {
        &self.format
    }

    /// Reads the page at a byte of the file, sound or not; fewer bytes where the file ends.
    pub(super) fn at(&self, offset: u64) -> Result<Vec<u8>> {
        let mut page = vec![0; self.format.physical_size()];
        let got = self.source.read(offset, &mut page)?;
        page.truncate(got);
        Ok(page)
    }

    /// Reads a page by its number in the tablespace, if it is in this file and sound.
    pub(super) fn sound(&self, number: u32) -> Option<Vec<u8>> {
        let in_file = u64::from(number.checked_sub(self.first_page)?);
        let page = self.at(in_file * self.format.physical_size() as u64).ok()?;
        let is_sound = verify(&page, number, &self.format) == evenkeel_innodb::Verdict::Good;
        is_sound.then_some(page)
    }
}
