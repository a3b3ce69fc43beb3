//! Good copies of damaged pages: in a repository, and in the doublewrite buffer.

use super::pages::Pages;
use super::prove::prove;
use super::report::Severity;
use super::survey::{CheckContext, FileLocation};
use super::tally::Raw;
use evenkeel_innodb::doublewrite::DoublewriteCopies;
use evenkeel_innodb::{SpaceFormat, Verdict, verify};
use evenkeel_op::{Context, Result};
use evenkeel_repository::{Location, Reader, Repository};
use std::fs::File;

/// A good copy of a page.
#[derive(Debug, Clone)]
pub(super) struct PageCopy {
    /// 0 for one of the doublewrite buffer.
    pub(super) generation: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) format: SpaceFormat,
}

impl PageCopy {
    pub(super) fn lsn(&self) -> u64 {
        super::judge::lsn(&self.bytes)
    }

    /// Says where it is from.
    pub(super) fn from(&self) -> String {
        match self.generation {
            0 => "doublewrite".to_owned(),
            number => format!("generation {number}"),
        }
    }
}

/// The good copies of one damaged page.
#[derive(Debug, Clone, Default)]
pub(super) struct Copies {
    /// The newest in the repository.
    pub(super) newest: Option<PageCopy>,
    /// One that is proven to be what the page was.
    pub(super) same: Option<PageCopy>,
    /// The one in the doublewrite buffer.
    pub(super) doublewrite: Option<PageCopy>,
}

/// A repository's generations, opened as they are needed.
struct Generations {
    newest: Reader,
    numbers: Vec<u32>,
    older: Vec<Reader>,
}

impl Generations {
    fn open(place: &Location, only: Option<u32>) -> Result<Option<Self>> {
        let repository = Repository::open(place)?;
        let mut numbers: Vec<u32> = match only {
            Some(number) => vec![number],
            None => {
                let all = repository.generations()?;
                all.iter().map(|one| one.generation).collect()
            }
        };
        let Some(newest) = numbers.pop() else {
            return Ok(None);
        };
        numbers.reverse();
        Ok(Some(Self {
            newest: repository.reader(newest)?,
            numbers,
            older: Vec::new(),
        }))
    }

    /// Returns the reader of the newest, the one before it, and so on.
    fn back(&mut self, steps: usize) -> Result<Option<&Reader>> {
        if steps == 0 {
            return Ok(Some(&self.newest));
        }
        while self.older.len() < steps {
            let Some(number) = self.numbers.get(self.older.len()) else {
                return Ok(None);
            };
            self.older.push(self.newest.sibling(*number)?);
        }
        Ok(self.older.get(steps - 1))
    }
}

/// Finds good copies of the damaged pages among the findings. Torn pages that crash recovery repairs are
/// marked as such.
pub(super) fn find(
    raws: &mut [Raw],
    context: &CheckContext,
    repository: Option<(&Location, Option<u32>)>,
) -> Result<Vec<Copies>> {
    let is_any = raws.iter().any(|raw| raw.severity == Severity::Damage);
    let mut generations = match repository {
        Some((place, only)) if is_any => Generations::open(place, only)?,
        _ => None,
    };
    let doublewrite = match is_any && !context.is_live() {
        true => doublewrite(context)?,
        false => None,
    };
    let recovers = context.redo.is_some() && !context.was_shut_down();
    let mut found = Vec::new();
    for raw in raws.iter_mut() {
        let mut copies = Copies::default();
        let subject = &context.subjects[raw.subject];
        let pages = match (raw.severity, raw.page) {
            (Severity::Damage, Some(_)) => Pages::open(context, subject)?,
            _ => None,
        };
        if let (Some(pages), Some(page)) = (pages, raw.page) {
            // One that cannot be read proves nothing.
            let damaged = pages.at(raw.offset).unwrap_or_default();
            let format = *pages.format();
            let copy = doublewrite
                .as_ref()
                .and_then(|copies| copies.good_copy(&format, page));
            copies.doublewrite = copy.map(|bytes| PageCopy {
                generation: 0,
                bytes: bytes.to_vec(),
                format,
            });
            if copies.doublewrite.is_some() && recovers {
                raw.severity = Severity::Torn;
            }
            if let Some(generations) = &mut generations {
                stored(
                    generations,
                    &subject.name,
                    (page, raw.offset),
                    &damaged,
                    &format,
                    &mut copies,
                )?;
            }
        }
        found.push(copies);
    }
    Ok(found)
}

fn doublewrite(context: &CheckContext) -> Result<Option<DoublewriteCopies>> {
    let (Some(page_size), Some((first, more))) =
        (context.page_size, context.doublewrite.split_first())
    else {
        return Ok(None);
    };
    let open = |path: &std::path::PathBuf| {
        File::open(path).context(|| format!("failed to open {}", path.display()))
    };
    let mut copies = DoublewriteCopies::read(&open(first)?, page_size)?;
    for path in more {
        copies.add_file(&open(path)?)?;
    }
    Ok(Some(copies))
}

/// Looks through the generations, newest first, until one has the version that the page was, or
/// only older ones are left.
fn stored(
    generations: &mut Generations,
    name: &str,
    (page, offset): (u32, u64),
    damaged: &[u8],
    format: &SpaceFormat,
    copies: &mut Copies,
) -> Result<()> {
    let plain = SpaceFormat {
        doublewrite: None,
        ..*format
    };
    for steps in 0.. {
        let Some(reader) = generations.back(steps)? else {
            break;
        };
        let Some(record) = reader.find(name)? else {
            continue;
        };
        let mut bytes = vec![0; format.physical_size()];
        let content = reader.open_file(&record)?;
        // A damaged repository is no good copy.
        let is_whole = content
            .read_at(offset, &mut bytes)
            .is_ok_and(|got| got == bytes.len());
        if !is_whole || verify(&bytes, page, &plain) != Verdict::Good {
            continue;
        }
        let copy = PageCopy {
            generation: reader.generation(),
            bytes,
            format: plain,
        };
        let is_same = prove(damaged, &copy.bytes, format).is_ok();
        let is_old = damaged.len() >= 24 && copy.lsn() < super::judge::lsn(damaged);
        if copies.newest.is_none() {
            copies.newest = Some(copy.clone());
        }
        if is_same {
            copies.same = Some(copy);
            break;
        }
        if is_old {
            break;
        }
    }
    Ok(())
}

/// Where a finding's file is on this host.
pub(super) fn path_of<'g>(context: &'g CheckContext, raw: &Raw) -> Option<&'g std::path::Path> {
    match &context.subjects[raw.subject].place {
        FileLocation::Path(path) => Some(path),
        FileLocation::Stored(_) => None,
    }
}
