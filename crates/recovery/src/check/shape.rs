//! How the pages of a file look: derived from its first page or, if that is damaged, from the others.

use super::source::Source;
use evenkeel_innodb::doublewrite::Area;
use evenkeel_innodb::{Probe, SpaceFormat, verify};

/// The page of the system tablespace that says where the doublewrite area is.
const TRX_SYS_PAGE: usize = 5;

/// How a file's pages look.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// They can be checked.
    Pages {
        format: SpaceFormat,
        /// The number of the file's first page.
        first_page: u32,
        /// The first page is damaged: the format was derived from the others.
        guessed: bool,
    },
    /// There is nothing to check yet, for this reason.
    Opaque(&'static str),
    /// The file's first page says nothing and the others do not either.
    NoFirstPage(&'static str),
}

const UNBORN: &str = "its first page was never written";

/// Whether a server has made the file and not written to it yet: all zeros, or a first page without
/// type and LSN (MySQL), which is in memory only. Crash recovery makes such a file from the log.
pub(super) fn is_unborn(start: &[u8]) -> bool {
    const LSN_AND_TYPE: std::ops::Range<usize> = 16..26;
    start
        .get(LSN_AND_TYPE)
        .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
}

impl Shape {
    /// Finds out how the pages of a file look. `buffer` takes its beginning: 1 MiB.
    pub(super) fn of(source: &Source, buffer: &mut [u8]) -> Self {
        let Ok(got) = source.read(0, buffer) else {
            return Self::NoFirstPage("its first pages cannot be read");
        };
        let start = &buffer[..got];
        let is_sound = |format: &SpaceFormat| {
            let page = start.get(..format.physical_size());
            page.is_some_and(|page| !verify(page, 0, format).is_corrupt())
        };
        let (mut format, guessed) = match SpaceFormat::parse(&start[..got.min(65536)]) {
            Probe::Checkable(format) if is_sound(&format) => (format, false),
            Probe::Checkable(mut format) => {
                // What a damaged page says of the file's length counts for nothing.
                format.size_pages = 0;
                (SpaceFormat::guess(start).unwrap_or(format), false)
            }
            Probe::NotCheckable(why) => match SpaceFormat::guess(start) {
                Some(format) => (format, true),
                None if is_unborn(start) => return Self::Opaque(UNBORN),
                None => return Self::NoFirstPage(why),
            },
        };
        if format.space_id == 0 {
            let size = format.page_size.bytes() as usize;
            let page = start.get(TRX_SYS_PAGE * size..(TRX_SYS_PAGE + 1) * size);
            format.doublewrite = page.and_then(|page| Area::parse(page, format.page_size));
        }
        Self::Pages {
            format,
            first_page: 0,
            guessed,
        }
    }
}
