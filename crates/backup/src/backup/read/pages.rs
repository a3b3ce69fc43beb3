//! Checks InnoDB pages on their way into the repository.

use crate::report::CorruptPage;
use evenkeel_innodb::{PageHeader, Probe, SpaceFormat, Verdict, verify};
use evenkeel_op::Result;
use evenkeel_server::files::{FoundFile, ServerFiles};
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the generation names of the system tablespace's files, in their order.
pub(crate) fn system_space(files: &ServerFiles) -> Vec<String> {
    let files = files.system_tablespace().into_iter();
    files.map(|file| file.name.clone()).collect()
}

/// Corrupt pages that are kept in memory and reported one by one; beyond that they are counted.
const REPORTED_MAX: usize = 1000;

/// How the pages of one file are checked.
#[derive(Debug, Clone)]
pub(crate) struct PageCheck {
    format: SpaceFormat,
    /// Number of the file's first page: not 0 for the second file of the system tablespace.
    first_page: u32,
}

impl PageCheck {
    /// Reads the first page of a tablespace file; `None` when its pages cannot be checked.
    pub(crate) fn of_file(file: &File) -> Result<Option<Self>> {
        Ok(match SpaceFormat::of_file(file)? {
            Probe::Checkable(format) => Some(Self {
                format,
                first_page: 0,
            }),
            Probe::NotCheckable(_) => None,
        })
    }

    /// The same from the first page itself.
    pub(crate) fn of_page(first: &[u8]) -> Option<Self> {
        match SpaceFormat::parse(first) {
            Probe::Checkable(format) => Some(Self {
                format,
                first_page: 0,
            }),
            Probe::NotCheckable(_) => None,
        }
    }

    /// Returns the check for a later file of the same tablespace.
    pub(crate) fn continued(&self, first_page: u32) -> Self {
        Self {
            format: self.format,
            first_page,
        }
    }

    /// Whether the server keeps holes in the file.
    pub(crate) fn has_holes(&self) -> bool {
        self.format.page_compressed
    }

    /// Checks every page of a block that starts at byte `offset` of the file.
    pub(crate) fn block(&self, file: &str, offset: u64, bytes: &[u8], into: &Findings) {
        let size = self.format.physical_size();
        let mut checked = 0;
        for (index, page) in bytes.chunks(size).enumerate() {
            let in_file = offset / size as u64 + index as u64;
            let number = in_file as u32 + self.first_page;
            match verify(page, number, &self.format) {
                Verdict::Good => checked += 1,
                Verdict::Empty | Verdict::Unchecked(_) => {}
                Verdict::Corrupt { why, .. } => {
                    checked += 1;
                    into.corrupt(Suspect {
                        file: file.to_owned(),
                        page: u64::from(number),
                        space: self.format.space_id,
                        header: PageHeader::read(page, &self.format),
                        why: why.to_string(),
                    });
                }
            }
        }
        into.checked.fetch_add(checked, Ordering::Relaxed);
    }
}

/// A page that failed its check; its doublewrite copy may still save it.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    pub(crate) file: String,
    pub(crate) page: u64,
    pub(crate) space: u32,
    pub(crate) header: Option<PageHeader>,
    pub(crate) why: String,
}

impl Suspect {
    pub(crate) fn report(self) -> CorruptPage {
        CorruptPage {
            file: self.file,
            page: self.page,
            space: self.space,
            table: None,
            index: None,
            why: self.why,
            remedy: None,
        }
    }
}

/// What the checks of a run found; shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    checked: AtomicU64,
    corrupt: AtomicU64,
    suspects: Mutex<Vec<Suspect>>,
}

impl Findings {
    fn corrupt(&self, suspect: Suspect) {
        self.corrupt.fetch_add(1, Ordering::Relaxed);
        let mut suspects = self.suspects.lock().unwrap_or_else(|e| e.into_inner());
        if suspects.len() < REPORTED_MAX {
            suspects.push(suspect);
        }
    }

    /// Returns how many pages were checked.
    pub(crate) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// Takes the suspects, with how many there were beyond the kept ones.
    pub(crate) fn take(&self) -> (Vec<Suspect>, u64) {
        let suspects =
            std::mem::take(&mut *self.suspects.lock().unwrap_or_else(|e| e.into_inner()));
        let more = self.corrupt.load(Ordering::Relaxed) - suspects.len() as u64;
        (suspects, more)
    }
}

/// The files of the system tablespace continue each other's page numbers, and only the first one
/// says how its pages are made. They are met in the order in which they are configured, because
/// that is the order in which they were made and named.
#[derive(Debug)]
pub(crate) struct SystemSpace {
    names: Vec<String>,
    first: Option<PageCheck>,
    pages: u64,
}

impl SystemSpace {
    pub(crate) fn of(files: &ServerFiles) -> Self {
        Self {
            names: system_space(files),
            first: None,
            pages: 0,
        }
    }

    pub(crate) fn check(
        &mut self,
        found: &FoundFile,
        file: &File,
        size: u64,
        page_size: u32,
    ) -> Result<Option<PageCheck>> {
        if !self.names.contains(&found.name) {
            return PageCheck::of_file(file);
        }
        if self.first.is_none() {
            self.first = PageCheck::of_file(file)?;
        }
        let first_page = u32::try_from(self.pages).unwrap_or(u32::MAX);
        self.pages += size / u64::from(page_size);
        Ok(self.first.as_ref().map(|check| check.continued(first_page)))
    }
}
