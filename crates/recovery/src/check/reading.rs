//! One thread's reading: a piece of a file, a chunk at a time, a page at a time.

use super::again;
use super::judge::Measure;
use super::report::Severity;
use super::scan::{How, Piece};
use super::shape::Shape;
use super::source::{OpenFile, Source};
use super::survey::{CheckContext, FileLocation, Subject};
use super::tally::{Findings, Raw, Tally, What};
use evenkeel_innodb::SpaceFormat;
use evenkeel_op::{Error, Result};
use std::time::Duration;

/// Bytes read in one go: a multiple of every page size.
const CHUNK: usize = 1 << 20;
/// How often a first page is looked at again that says nothing, and how long between.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// One thread's reading.
pub(super) struct Reading<'a> {
    context: &'a CheckContext,
    how: &'a How<'a>,
    findings: &'a Findings,
    pub(super) tally: Tally,
    buffer: Vec<u8>,
    again: again::Rereads,
}

impl<'a> Reading<'a> {
    pub(super) fn new(context: &'a CheckContext, how: &'a How<'a>, findings: &'a Findings) -> Self {
        Self {
            context,
            how,
            findings,
            tally: Tally::default(),
            buffer: vec![0; CHUNK],
            again: again::Rereads::default(),
        }
    }

    /// Reads and judges a piece. What is wrong with it is no error.
    pub(super) fn piece(&mut self, piece: &Piece) -> Result<()> {
        let subject = &self.context.subjects[piece.subject];
        let Some(source) = self.open(subject, piece.range.start == 0)? else {
            self.skip(piece);
            return Ok(());
        };
        if source.size() == 0 {
            // A running server has made it this moment.
            if !self.context.is_live() {
                self.findings.unchecked(&subject.name, "it is empty");
            }
            return Ok(());
        }
        let shape = match subject.shape.get() {
            Some(shape) => shape.clone(),
            None => {
                let mut found = Shape::of(&source, &mut self.buffer);
                // A running server may just be writing the first page.
                for _ in 0..LOOKS {
                    if !matches!(found, Shape::NoFirstPage(_)) || !self.context.is_live() {
                        break;
                    }
                    std::thread::sleep(PAUSE);
                    found = Shape::of(&source, &mut self.buffer);
                }
                subject.shape.get_or_init(|| found).clone()
            }
        };
        let (format, first_page, guessed) = match shape {
            Shape::Pages {
                format,
                first_page,
                guessed,
            } => (format, first_page, guessed),
            // Nothing is missing, unless the server was shut down and wrote everything before.
            Shape::Opaque(why) if !self.context.was_shut_down() || is_left_over(subject) => {
                if piece.range.start == 0 {
                    self.findings.unchecked(&subject.name, why);
                }
                self.skip(piece);
                return Ok(());
            }
            Shape::Opaque(why) | Shape::NoFirstPage(why) => {
                if piece.range.start == 0 {
                    self.tally.damaged += 1;
                    self.findings.add(no_first_page(piece.subject, why));
                }
                self.skip(piece);
                return Ok(());
            }
        };
        if guessed && piece.range.start == 0 {
            let note = "its first page is damaged; the format of the others was derived from \
                 their contents";
            self.findings.unchecked(&subject.name, note);
        }
        let place = FilePlace {
            piece,
            subject,
            source: &source,
            format: &format,
            first_page,
        };
        self.pages(&place)?;
        if piece.range.start == 0 && subject.name.ends_with(".ibd") {
            self.length(&place);
        }
        Ok(())
    }

    fn skip(&self, piece: &Piece) {
        let length = piece.range.end - piece.range.start;
        self.how.progress.advance(length);
    }

    /// Opens a file. One that is gone or closed to us is noted, by whoever reads its beginning.
    fn open(&self, subject: &Subject, is_first: bool) -> Result<Option<Source>> {
        let path = match &subject.place {
            FileLocation::Path(path) => path,
            FileLocation::Stored(record) => {
                let reader = self.context.reader.as_ref();
                let reader = reader.ok_or_else(|| Error::failed("no generation is open"))?;
                return Ok(Some(Source::Stored(Box::new(reader.open_file(record)?))));
            }
        };
        match OpenFile::open(path) {
            Ok(file) => Ok(Some(Source::File(file))),
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && self.context.is_live() =>
            {
                if is_first {
                    self.findings.vanished();
                }
                Ok(None)
            }
            Err(error) => {
                self.findings.unreadable(&subject.name, error.to_string());
                Ok(None)
            }
        }
    }

    fn pages(&mut self, place: &FilePlace<'_>) -> Result<()> {
        let range = &place.piece.range;
        let end = range.end.min(place.source.size());
        let mut at = range.start;
        let file = match place.source {
            Source::File(file) => Some(file),
            Source::Stored(_) => None,
        };
        let mut was_cached = file.is_none_or(|file| file.is_cached(at));
        while at < end {
            self.how.cancel.check()?;
            let length = (end - at).min(CHUNK as u64);
            if let Some(file) = file
                && file.is_hole(at, length)
            {
                self.tally.empty += length / place.format.physical_size() as u64;
                self.tally.bytes += length;
                self.how.progress.advance(length);
                at += length;
                continue;
            }
            let next_is_cached = file.is_none_or(|file| {
                let next = at + length;
                next >= end || file.is_cached(next) || {
                    file.announce(next, (end - next).min(CHUNK as u64));
                    false
                }
            });
            self.how
                .rate
                .pace(length, || self.how.cancel.is_cancelled());
            self.chunk(place, at, length as usize);
            if let (Some(file), false) = (file, was_cached) {
                file.forget(at, length);
            }
            was_cached = next_is_cached;
            self.how.progress.advance(length);
            at += length;
        }
        Ok(())
    }

    /// Reads and judges up to [`CHUNK`] bytes.
    fn chunk(&mut self, place: &FilePlace<'_>, at: u64, length: usize) {
        let size = place.format.physical_size();
        let measure = place.measure(self.context);
        let mut buffer = std::mem::take(&mut self.buffer);
        match place.source.read(at, &mut buffer[..length]) {
            Ok(got) => {
                self.tally.bytes += got as u64;
                for (index, page) in buffer[..got].chunks(size).enumerate() {
                    let offset = at + (index * size) as u64;
                    let number = place.number(offset);
                    if let Some(raw) = measure.judge(page, number, offset, &mut self.tally) {
                        self.doubt(place, raw);
                    }
                }
            }
            // One by one: a bad sector must not hide its neighbours.
            Err(_) => self.singly(place, at, &mut buffer[..length]),
        }
        self.buffer = buffer;
    }

    fn singly(&mut self, place: &FilePlace<'_>, at: u64, buffer: &mut [u8]) {
        let size = place.format.physical_size();
        let measure = place.measure(self.context);
        for (index, page) in buffer.chunks_mut(size).enumerate() {
            let offset = at + (index * size) as u64;
            let number = place.number(offset);
            match place.source.read(offset, page) {
                Ok(0) => {}
                Ok(got) => {
                    self.tally.bytes += got as u64;
                    if let Some(raw) = measure.judge(&page[..got], number, offset, &mut self.tally)
                    {
                        self.doubt(place, raw);
                    }
                }
                Err(error) => {
                    self.tally.damaged += 1;
                    self.findings
                        .add(measure.unreadable(number, offset, error.chain()));
                }
            }
        }
    }

    /// Looks again at a page of a running server, which may just be writing it; tells what stays.
    fn doubt(&mut self, place: &FilePlace<'_>, raw: Raw) {
        let raw = match (&place.source, &place.subject.place) {
            (Source::File(file), FileLocation::Path(path))
                if self.context.is_live() && raw.severity == Severity::Damage =>
            {
                let measure = place.measure(self.context);
                match again::look(file, path, &measure, raw, &mut self.again, &mut self.tally) {
                    Some(raw) => raw,
                    None => return,
                }
            }
            _ => raw,
        };
        if raw.severity == Severity::Damage {
            self.tally.damaged += 1;
        }
        self.findings.add(raw);
    }

    /// Compares a file's length with what its first page says.
    fn length(&self, place: &FilePlace<'_>) {
        let size = place.format.physical_size() as u64;
        let (expected, found) = (
            u64::from(place.format.size_pages),
            place.source.size() / size,
        );
        // A running server's file may have been re-created, or grown, since it was opened.
        if found >= expected || self.context.is_live() {
            return;
        }
        self.findings.add(Raw {
            severity: Severity::Damage,
            subject: place.piece.subject,
            page: None,
            offset: place.source.size(),
            space: Some(place.format.space_id),
            what: What::ShortFile,
            expected: Some(expected),
            found: Some(found),
            header: None,
            kind: None,
        });
    }
}

/// Whether it is what an interrupted DDL left, which no server reads.
fn is_left_over(subject: &Subject) -> bool {
    let own_name = subject.name.rsplit('/').next();
    own_name.is_some_and(|name| name.starts_with("#sql"))
}

/// Describes a first page that says nothing, where the others do not help either.
fn no_first_page(subject: usize, why: &'static str) -> Raw {
    Raw {
        severity: Severity::Damage,
        subject,
        page: Some(0),
        offset: 0,
        space: None,
        what: What::FirstPage(why),
        expected: None,
        found: None,
        header: None,
        kind: None,
    }
}

/// A part of a file, open.
struct FilePlace<'a> {
    piece: &'a Piece,
    subject: &'a Subject,
    source: &'a Source,
    format: &'a SpaceFormat,
    first_page: u32,
}

impl<'a> FilePlace<'a> {
    /// Returns the number of the page at a byte of the file.
    fn number(&self, offset: u64) -> u32 {
        let in_file = offset / self.format.physical_size() as u64;
        u32::try_from(in_file + u64::from(self.first_page)).unwrap_or(u32::MAX)
    }

    fn measure(&self, context: &'a CheckContext) -> Measure<'a> {
        Measure {
            format: self.format,
            bound: &context.bound,
            subject: self.piece.subject,
        }
    }
}
