//! Archived binary logs: objects of the repository that belong to no generation.
//!
//! ```text
//! binlogs/SOURCE/archive.lock              held by the one run that archives it
//! binlogs/SOURCE/TIMELINE/FILE.START-END   a segment: these bytes of this file
//! binlogs/SOURCE/TIMELINE/forgotten        what was before is not missing, it was forgotten
//! binlogs/SOURCE/TIMELINE/follows-1        from where it continues: another server's timeline
//! ```
//!
//! A *source* is a server, by its own id. A *timeline* is one unbroken sequence of its logs: RESET MASTER begins
//! another, with the same file names. An archiver only adds, behind what there is, and takes neither
//! of the repository's locks; what goes is removed by whoever holds both.

mod check;
mod document;
mod forget;
mod handle;
mod header;
mod index;
mod link;
mod mark;
mod segment;

pub(crate) use check::check;
pub use forget::{ForgetLogs, ForgetLogsPlan, ForgottenLogs};
pub use handle::{LogWriter, Logs};
pub use header::{Home, LogPosition, SegmentHeader, Unfinished};
pub(crate) use index::order_of;
pub use index::{Gap, Segment, Timeline};
pub use link::Link;
pub(crate) use mark::FORGOTTEN;
pub use segment::NewSegment;

use crate::fault::{damaged, store_failed};
use crate::heal::{self, is_unfinished, list};
use crate::names::{ARCHIVE_LOCK, BINLOGS};
use crate::store::{Lock, LockMode};
use evenkeel_op::{Error, ErrorKind, Result};
use segment::Opened;

impl Logs {
    /// Reads the log's bytes of a segment, verified.
    ///
    /// Errors: `Differs` for one that is damaged or not what its name says, `WrongKey` without a
    /// reader's key.
    pub fn read(&self, segment: &Segment) -> Result<Vec<u8>> {
        let (opened, header) = self.open(segment)?;
        let header = header.ok_or_else(crate::crypt::no_key)?;
        opened.content(&self.keys, &header, opened.stored()?)
    }

    fn open(&self, segment: &Segment) -> Result<(Opened, Option<SegmentHeader>)> {
        let opened = segment::open(&*self.store, self.repository, &self.keys, &segment.object)?;
        let header = opened.header()?;
        if let Some(header) = &header {
            let home = Home {
                repository: self.repository,
                source: segment.source.clone(),
                timeline: segment.timeline.clone(),
            };
            let is_it = (&header.file, header.start, header.end)
                == (&segment.file, segment.start, segment.end)
                && header.of.as_ref().is_none_or(|of| *of == home);
            if !is_it {
                return Err(damaged(
                    &segment.object,
                    "it is a different segment, or one of another repository, under this name",
                ));
            }
        }
        Ok((opened, header))
    }

    /// Takes the lock of whoever archives a source, and removes what an interrupted run left.
    ///
    /// Errors: `Busy` when another run has it.
    pub fn claim(&self, source: &str) -> Result<Box<dyn Lock>> {
        let folder = format!("{BINLOGS}/{source}");
        for name in [BINLOGS, &folder] {
            let made = self.store.make_folder(name);
            made.map_err(|error| store_failed("make", name, error))?;
        }
        let name = format!("{folder}/{ARCHIVE_LOCK}");
        let lock = self
            .store
            .try_lock(&name, LockMode::Exclusive)
            .map_err(|error| store_failed("lock", &name, error))?;
        let lock = lock.ok_or_else(|| {
            Error::new(
                ErrorKind::Busy,
                format!("another run is archiving the binary logs of {source}"),
            )
        })?;
        for (source, id) in self.folders(Some(source))? {
            let folder = index::folder(&source, &id);
            for one in list(&*self.store, &folder)? {
                if is_unfinished(&one.name) && !one.is_folder {
                    heal::remove(&*self.store, &format!("{folder}/{}", one.name))?;
                }
            }
        }
        Ok(lock)
    }

    /// Begins a run that adds segments: it seals them for those who may read now.
    ///
    /// Errors: `WrongKey` without a key of an encrypted repository.
    pub fn writer(&self) -> Result<LogWriter> {
        Ok(LogWriter {
            keys: self.keys.begin_run()?,
            logs: self.clone(),
        })
    }
}

impl LogWriter {
    /// Makes the folder of a timeline.
    pub fn make_timeline(&self, source: &str, timeline: &str) -> Result<()> {
        let folder = index::folder(source, timeline);
        let made = self.logs.store.make_folder(&folder);
        made.map_err(|error| store_failed("make", &folder, error))
    }

    /// Writes a segment of `bytes`; it is there once it is finished. Fills in what the header says of
    /// the bytes and of where it belongs.
    pub fn write(
        &self,
        (source, timeline): (&str, &str),
        header: &mut SegmentHeader,
        bytes: &[u8],
    ) -> Result<NewSegment> {
        let folder = index::folder(source, timeline);
        let name = index::object_name(&folder, &header.file, header.start, header.end);
        header.of = Some(Home {
            repository: self.logs.repository,
            source: source.to_owned(),
            timeline: timeline.to_owned(),
        });
        segment::write(
            &*self.logs.store,
            self.logs.repository,
            self.keys.as_ref(),
            &name,
            header,
            bytes,
        )
    }

    /// Whether the repository's keys were changed since: what follows has to be resealed.
    ///
    /// Errors: `WrongKey` where the keys are of another repository.
    pub fn is_outdated(&self) -> Result<bool> {
        let Some(keys) = &self.keys else {
            return Ok(false);
        };
        let newest = crate::crypt::read(&*self.logs.store, self.logs.repository)?.newest_epoch();
        Ok(newest != Some(keys.epoch))
    }
}
