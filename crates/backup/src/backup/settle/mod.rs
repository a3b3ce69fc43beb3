//! Settles pages that failed their checksum: torn but saved by the doublewrite buffer, or corrupt.

mod culprits;

use super::freeze::Frozen;
use super::read::pages::{self, Findings, Suspect};
use super::read::read_file;
use super::request::BackupRequest;
use super::source_file::source;
use crate::report::CorruptPage;
use evenkeel_innodb::doublewrite::DoublewriteCopies;
use evenkeel_innodb::{PageSize, Probe, SpaceFormat};
use evenkeel_op::{Context, Error, ErrorKind, Result, Run, units};
use evenkeel_server::files::{FileClass, FoundFile};
use std::collections::HashMap;
use std::fs::File;

/// What became of the pages that failed their checksum.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Corrupt pages, with their tables and indexes where the server says them.
    pub(crate) corrupt: Vec<CorruptPage>,
    /// Torn pages of which the doublewrite buffer has a good copy.
    pub(crate) torn: u64,
}

/// Tells torn pages from corrupt ones. Fails when there are corrupt ones, unless the request tells
/// otherwise.
pub(super) fn settle(
    frozen: &Frozen,
    findings: &Findings,
    request: &BackupRequest,
    run: Run<'_>,
) -> Result<Settled> {
    let (suspects, more) = findings.take();
    if suspects.is_empty() {
        return Ok(Settled::default());
    }
    let copies = doublewrite(frozen)?;
    let mut formats = HashMap::new();
    let (mut torn, mut corrupt) = (Vec::new(), Vec::new());
    for suspect in suspects {
        if saved(&suspect, frozen, &copies, &mut formats)? {
            torn.push(suspect);
        } else {
            corrupt.push(suspect);
        }
    }
    if !torn.is_empty() {
        run.progress.note(torn_sentence(&torn));
    }
    Ok(Settled {
        corrupt: judge(corrupt, more, request, run)?,
        torn: torn.len() as u64,
    })
}

/// Names the tables and indexes of corrupt pages, of which there are `more`. Fails when there are
/// any, unless the request tells otherwise.
pub(super) fn judge(
    corrupt: Vec<Suspect>,
    more: u64,
    request: &BackupRequest,
    run: Run<'_>,
) -> Result<Vec<CorruptPage>> {
    let corrupt = culprits::name(corrupt, &request.source, run);
    for page in &corrupt {
        run.progress.warn(sentence(page));
    }
    if more > 0 {
        run.progress.warn(format!(
            "{} failed their checksum",
            units::count(more, "more page")
        ));
    }
    if !corrupt.is_empty() && !request.keep_corrupt {
        let first = corrupt.first().map(sentence).unwrap_or_default();
        let mut error = Error::new(
            ErrorKind::Differs,
            format!(
                "{} found; nothing was stored. First: {first}",
                units::count(corrupt.len() as u64 + more, "corrupt page")
            ),
        );
        for remedy in corrupt
            .iter()
            .filter_map(|page| page.remedy.clone())
            .take(3)
        {
            error = error.hint(remedy);
        }
        return Err(error.hint(
            "to make a backup anyway, with the corrupt pages as they are, add --keep-corrupt",
        ));
    }
    Ok(corrupt)
}

/// Pages that are named one by one.
const NAMED_MAX: usize = 3;

fn torn_sentence(torn: &[Suspect]) -> String {
    let named = torn.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named
        .map(|page| format!("page {} of {}", page.page, page.file))
        .collect();
    if torn.len() > NAMED_MAX {
        named.push(format!("{} more", torn.len() - NAMED_MAX));
    }
    format!(
        "torn in the image; crash recovery will restore the good copy from the doublewrite buffer: {}",
        named.join(", ")
    )
}

/// Whether recovery would write a good copy of the page over it.
fn saved(
    suspect: &Suspect,
    frozen: &Frozen,
    copies: &Option<DoublewriteCopies>,
    formats: &mut HashMap<String, Option<SpaceFormat>>,
) -> Result<bool> {
    let Some(copies) = copies else {
        return Ok(false);
    };
    if !formats.contains_key(&suspect.file) {
        formats.insert(suspect.file.clone(), format_of(&suspect.file, frozen)?);
    }
    let format = formats.get(&suspect.file).and_then(Option::as_ref);
    let page_no = u32::try_from(suspect.page).unwrap_or(u32::MAX);
    Ok(format.is_some_and(|format| copies.good_copy(format, page_no).is_some()))
}

fn format_of(name: &str, frozen: &Frozen) -> Result<Option<SpaceFormat>> {
    let Some(found) = frozen.files.files.iter().find(|file| file.name == name) else {
        return Ok(None);
    };
    Ok(match SpaceFormat::of_file(&open(frozen, found)?)? {
        Probe::Checkable(format) => Some(format),
        Probe::NotCheckable(_) => None,
    })
}

fn doublewrite(frozen: &Frozen) -> Result<Option<DoublewriteCopies>> {
    let Some(page_size) = PageSize::new(frozen.files.page_size) else {
        return Ok(None);
    };
    let files = &frozen.files.files;
    let system = pages::system_space(&frozen.files).into_iter().next();
    let Some(system) = files
        .iter()
        .find(|file| Some(&file.name) == system.as_ref())
    else {
        return Ok(None);
    };
    let mut copies = DoublewriteCopies::read(&open(frozen, system)?, page_size)?;
    for found in files
        .iter()
        .filter(|file| file.class == FileClass::InnodbDoublewrite)
    {
        copies.add_file(&open(frozen, found)?)?;
    }
    Ok(Some(copies))
}

fn open(frozen: &Frozen, found: &FoundFile) -> Result<File> {
    let path = frozen.snapshot.frozen_path(&source(found));
    read_file::open(&path, found)
        .context(|| format!("failed to open the frozen copy of {}", found.name))
}

pub(crate) fn sentence(page: &CorruptPage) -> String {
    let table = page
        .table
        .as_ref()
        .map_or(String::new(), |table| format!(", table {table}"));
    let index = page
        .index
        .as_ref()
        .map_or(String::new(), |index| format!(", index {index}"));
    format!(
        "page {} of {} (space {}{table}{index}): {}",
        page.page, page.file, page.space, page.why
    )
}
