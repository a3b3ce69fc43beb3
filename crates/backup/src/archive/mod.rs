//! Archives a server's binary logs as they are written.
//!
//! ```text
//! ask (who is it, which logs) ─► attach (to which timeline, from where) ─► receive ─► segments
//! ```

mod extract;
mod list;
mod needed;
mod pending;
mod seam;
mod source;

pub use evenkeel_repository::logs::{Gap, Link, LogPosition};
pub use extract::extract;
pub use list::{ArchiveList, Reach, SourceList, TimelineList, list};
pub(crate) use needed::LogPlace;
pub use needed::{plan_forget, plan_forget_without};

use evenkeel_binlog::{Event, Format, Header, Rotate, kind};
use evenkeel_op::{Context, Error, ErrorKind, Event as Progressed, Result, Run};
use evenkeel_repository::logs::{LogWriter, Logs, Timeline};
use evenkeel_repository::store::Lock;
use evenkeel_repository::{Location, Repository};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Received;
use pending::Pending;
use seam::Seam;
use serde::Serialize;
use source::Source;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait before a lost server is tried again: doubled each time, up to the second.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(15)];
/// How often the request to stop is looked at meanwhile.
const POLL: Duration = Duration::from_millis(100);
/// How often a run that follows a server looks whether somebody changed the repository's keys.
const KEYS_AFTER: Duration = Duration::from_secs(60);

/// How often a run that follows a server says that it has caught up.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// What to archive, and how.
#[derive(Debug, Clone)]
pub struct ArchiveRequest {
    /// The repository; made where there is none.
    pub repository: Location,
    /// The server.
    pub server: ConnectOptions,
    /// Ends when everything is archived that the server had written when the run began.
    pub until_current: bool,
    /// Continues behind logs that the server has deleted, instead of failing.
    pub allow_gap: bool,
    /// A segment is finished when it holds so many bytes of the log.
    pub rotate_bytes: u64,
    /// A segment is finished when its first byte is so old.
    pub rotate_after: Duration,
    /// Tells a server that waits for it when a transaction is in the repository; segments are finished
    /// as soon as it does.
    pub semi_sync: bool,
    /// Has the server compress what it sends, if it can.
    pub compress: bool,
}

/// What a run archived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveReport {
    /// The server's own id, by which its logs are filed.
    pub source: String,
    /// The timeline of its logs.
    pub timeline: String,
    /// The first place that the run archived.
    pub from: Option<LogPosition>,
    /// Up to where the archive reaches now.
    pub to: Option<LogPosition>,
    /// Segments written.
    pub segments: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Bytes of the log in them.
    pub bytes: u64,
    /// Bytes that they take.
    pub bytes_stored: u64,
    /// How often the connection to the server was lost and restored.
    pub reconnected: u64,
    /// Gaps that were allowed.
    pub gaps: Vec<Gap>,
    /// From where the timeline continues, as this run found: what is archived of another server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<Link>,
    /// Why the timeline that this run began does not continue from what is archived of another
    /// server, with which it has transactions in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub does_not_follow: Option<String>,
}

/// Archives until everything is there that there was (`until_current`), or until it is asked to stop:
/// then what came is finished, and the report is given as at any other end.
///
/// Errors: `Differs` when the server has deleted what the archive lacks; `Busy` when another run
/// archives the same source; `Refused` when the server writes no log or the account may not read it.
pub fn archive(request: &ArchiveRequest, run: Run<'_>) -> Result<ArchiveReport> {
    let logs = Repository::open_or_create(&request.repository)?.logs();
    let mut archiver = Archiver {
        request,
        run,
        writer: logs.writer()?,
        logs,
        keys_seen: Instant::now(),
        replica: replica_id(),
        report: ArchiveReport::default(),
        lock: None,
        target: None,
        said: None,
    };
    let mut wait = BACK_OFF[0];
    loop {
        let had = archiver.report.segments;
        match archiver.once() {
            Ok(()) => return Ok(archiver.report),
            Err(error) if error.kind() == ErrorKind::Unreachable && !request.until_current => {
                let text = error.chain();
                run.progress.warn(format!("{text}; trying again"));
            }
            Err(error) => return Err(error),
        }
        if archiver.report.segments > had {
            wait = BACK_OFF[0];
        }
        let until = Instant::now() + wait;
        while Instant::now() < until {
            if run.cancel.is_cancelled() {
                return Ok(archiver.report);
            }
            std::thread::sleep(POLL);
        }
        wait = (wait * 2).min(BACK_OFF[1]);
        archiver.report.reconnected += 1;
    }
}

/// An id that no replica is likely to have, another one in each process.
fn replica_id() -> u32 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.subsec_nanos());
    0x8000_0000 | (nanos.rotate_left(11) ^ std::process::id()) & 0x7fff_ffff
}

struct Archiver<'a> {
    request: &'a ArchiveRequest,
    run: Run<'a>,
    logs: Logs,
    writer: LogWriter,
    /// When the repository's keys were looked at.
    keys_seen: Instant,
    replica: u32,
    report: ArchiveReport,
    lock: Option<Box<dyn Lock>>,
    /// Where a run that ends by itself ends.
    target: Option<LogPosition>,
    /// When it was last said that all is archived.
    said: Option<Instant>,
}

/// Where to continue.
struct Attached {
    pending: Pending,
}

impl Archiver<'_> {
    /// Archives over one connection, to the end or until it is lost.
    fn once(&mut self) -> Result<()> {
        let source = Source::ask(&self.request.server, self.replica, self.request.compress)?;
        if self.report.source != source.id {
            if !self.report.source.is_empty() {
                self.run.progress.warn(format!(
                    "a different server answers now: {} instead of {}",
                    source.id, self.report.source
                ));
                self.target = None;
            }
            self.claim(&source)?;
        }
        if self.request.until_current && self.target.is_none() {
            self.target = Some(source.now.clone());
        }
        let attached = self.attach(&source)?;
        self.receive(&source, attached)
    }

    fn claim(&mut self, source: &Source) -> Result<()> {
        // The earlier server's goes first: nobody waits for two.
        self.lock = None;
        self.lock = Some(self.logs.claim(&source.id)?);
        self.report.source.clone_from(&source.id);
        Ok(())
    }

    /// Finds the timeline that the server's log continues, or begins one.
    fn attach(&mut self, source: &Source) -> Result<Attached> {
        let mut known = self.logs.timelines(Some(&source.id))?;
        // The newest first.
        known.reverse();
        for timeline in &known {
            if !source.continues(timeline, &self.logs, self.run.cancel)? {
                continue;
            }
            let last = timeline
                .segments
                .last()
                .ok_or_else(|| Error::failed("an empty timeline"))?;
            let pending = Pending::behind(&self.logs.header(last)?)?;
            self.report.timeline.clone_from(&timeline.id);
            if let Seam::Link(link) = self.seam(source, Some(timeline))? {
                self.follow(link)?;
            }
            return Ok(Attached { pending });
        }
        let Some((first, _)) = source.logs.first() else {
            return Err(Error::refused("the server lists no binary log"));
        };
        let purged = known.iter().find_map(|timeline| {
            let end = timeline
                .end()
                .filter(|end| source.begins_after(&end.file))?;
            Some((timeline, end))
        });
        if let Some((timeline, end)) = purged {
            return self.over_a_gap(timeline, end, first);
        }
        let seam = self.seam(source, None)?;
        let first = match &seam {
            Seam::Link(link) => {
                let repository = Repository::open(&self.request.repository)?;
                let needed = seam::first_needed(&repository, source, &link.file)?;
                needed.unwrap_or_else(|| first.clone())
            }
            _ => first.clone(),
        };
        self.begin(source, &known, first, seam)
    }

    /// Looks whether the server's log continues from what is archived of another. That this cannot
    /// be told does not keep the log from being archived.
    fn seam(&self, source: &Source, own: Option<&Timeline>) -> Result<Seam> {
        match seam::find(source, &self.logs, own, self.run.cancel) {
            Ok(seam) => Ok(seam),
            Err(error) if error.kind() == ErrorKind::Unreachable => Err(error),
            Err(error) => {
                self.run.cancel.check()?;
                self.run.progress.warn(format!(
                    "cannot tell whether the log of {} continues the archived log of another \
                     server: {}",
                    source.id,
                    error.chain()
                ));
                Ok(Seam::None)
            }
        }
    }

    /// Begins a timeline with a file of the server.
    fn begin(
        &mut self,
        source: &Source,
        known: &[Timeline],
        first: String,
        seam: Seam,
    ) -> Result<Attached> {
        let name = source.history(&first, self.run.cancel)?;
        // A server that was reset within a second of its beginning has one of the same name.
        let namesakes = known.iter().filter(|one| one.id.starts_with(&name)).count();
        let id = match namesakes {
            0 => name,
            more => format!("{name}-{}", more + 1),
        };
        if !known.is_empty() {
            self.run.progress.warn(format!(
                "the binary logs of {} are not the ones archived before: a new timeline starts ({id})",
                source.id
            ));
        }
        self.writer.make_timeline(&source.id, &id)?;
        self.report.timeline = id;
        match seam {
            Seam::None => {}
            Seam::Link(link) => self.follow(link)?,
            Seam::Torn { source: other, why } => {
                let text = format!(
                    "the log of {} does not continue the archived log of {other}: {why}; later \
                     points can be restored only from generations of {}",
                    source.id, source.id
                );
                self.run.progress.warn(text.clone());
                self.report.does_not_follow = Some(text);
            }
        }
        Ok(Attached {
            pending: Pending::begin(first, None, None),
        })
    }

    /// Notes from where the timeline continues. It comes before the log: whoever finds one without
    /// the other finds a log that continues from nothing.
    fn follow(&mut self, link: Link) -> Result<()> {
        let home = (self.report.source.as_str(), self.report.timeline.as_str());
        self.writer.follow(home, &link)?;
        fail::fail_point!("archive::linked");
        self.run.progress.note(format!(
            "the log of {} continues the archived log of {}, at {}",
            self.report.source, link.source, link.after
        ));
        self.report.follows = Some(link);
        Ok(())
    }

    fn over_a_gap(
        &mut self,
        timeline: &Timeline,
        end: LogPosition,
        first: &str,
    ) -> Result<Attached> {
        let text = format!("the server has deleted its binary logs between {end} and {first}");
        if !self.request.allow_gap {
            return Err(Error::new(ErrorKind::Differs, text)
                .hint(
                    "to continue after the gap, add --allow-gap: no point inside the gap can \
                     be restored",
                )
                .hint("then make a backup: points after it can be restored"));
        }
        self.run.progress.warn(text.clone());
        self.report.timeline.clone_from(&timeline.id);
        self.report.gaps.push(Gap {
            after: end,
            before: LogPosition {
                file: first.to_owned(),
                position: 0,
            },
            why: Some(text.clone()),
        });
        Ok(Attached {
            pending: Pending::begin(first.to_owned(), None, Some(text)),
        })
    }

    /// Receives until the end, cutting segments.
    fn receive(&mut self, source: &Source, attached: Attached) -> Result<()> {
        let Attached { mut pending } = attached;
        let from = LogPosition {
            file: pending.file.clone(),
            position: pending.end().max(4),
        };
        let reached = |pending: &Pending, target: &Option<LogPosition>| {
            target
                .as_ref()
                .is_some_and(|target| is_at(&pending.place(), target))
        };
        if reached(&pending, &self.target) {
            self.report.to = Some(pending.place());
            self.caught_up(source.asked);
            return Ok(());
        }
        let mut stream = source.archived_stream(&from, self.request.semi_sync)?;
        // Up to where the server waits.
        let mut asked: Option<LogPosition> = None;
        loop {
            let received = match stream.receive() {
                Ok(received) => received,
                Err(error) => {
                    // What came whole is worth keeping.
                    self.finish(&mut pending)?;
                    return Err(error);
                }
            };
            let is_quiet = matches!(received, Received::Nothing);
            match received {
                Received::Event(event) => self.take(&mut pending, event)?,
                Received::Asking(event) => {
                    self.take(&mut pending, event)?;
                    asked = Some(pending.place());
                }
                Received::Nothing => {}
                Received::End => {
                    self.finish(&mut pending)?;
                    return Err(Error::new(
                        ErrorKind::Unreachable,
                        "the server ended the stream",
                    ));
                }
            }
            // Who waits, waits for no more than what has come together.
            if let Some(place) = asked.take_if(|_| stream.is_drained()) {
                self.finish(&mut pending)?;
                stream.acknowledge(&place.file, place.position)?;
            }
            if self.run.cancel.is_cancelled() {
                return self.finish(&mut pending);
            }
            if reached(&pending, &self.target) {
                self.finish(&mut pending)?;
                self.caught_up(source.asked);
                return Ok(());
            }
            let ripe = pending.waiting().is_some_and(|(bytes, since)| {
                bytes >= self.request.rotate_bytes || since.elapsed() >= self.request.rotate_after
            });
            if ripe {
                self.finish(&mut pending)?;
            }
            if is_quiet && pending.waiting().is_none() {
                self.caught_up(stream.heard());
            }
        }
    }

    /// Says that all that the server had sent when it was last heard is in the repository.
    fn caught_up(&mut self, heard: Instant) {
        if self.said.is_some_and(|said| said.elapsed() < SAY_EVERY) {
            return;
        }
        self.said = Some(Instant::now());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let at = now.saturating_sub(heard.elapsed());
        let unix_s = at.as_secs_f64();
        self.run.progress.event(Progressed::CaughtUp { unix_s });
    }

    /// Takes one event that was sent.
    fn take(&mut self, pending: &mut Pending, bytes: Vec<u8>) -> Result<()> {
        let header = Header::parse(&bytes)?;
        if header.length as usize != bytes.len() {
            return Err(Error::failed("the server sent an incomplete event"));
        }
        match header.kind {
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => return Ok(()),
            kind::ROTATE if header.is_artificial() => {
                let rotate = Rotate::parse(&bytes)?;
                if rotate.file != pending.file {
                    self.finish(pending)?;
                    *pending = Pending::begin(rotate.file, Some(pending.place()), None);
                }
                return Ok(());
            }
            kind::FORMAT_DESCRIPTION => {
                let format = Format::parse(&bytes)?;
                // Changed for whoever begins in the middle; MariaDB recomputes its checksum only where all are.
                if format.checksums || !header.is_artificial() {
                    format.verify(&bytes)?;
                }
                pending.set_format(format);
            }
            _ => {}
        }
        // The format of a file that is resumed is sent again.
        if header.is_artificial() || header.kind == kind::FORMAT_DESCRIPTION && pending.end() > 4 {
            return Ok(());
        }
        let at = pending.place();
        let format = pending.format().cloned().ok_or_else(|| {
            Error::failed(format!(
                "the server sent no format description event before {at}"
            ))
        })?;
        if !header.may_end_at(at.position + bytes.len() as u64) {
            return Err(Error::failed(format!(
                "the event after {at} ends at {}: the server left out what is in between",
                header.next
            ))
            .hint("the binary log may be encrypted: encrypted logs cannot be archived"));
        }
        format
            .verify(&bytes)
            .context(|| format!("the event at {at} arrived damaged"))?;
        let event = Event {
            position: at.position,
            header,
            bytes,
        };
        pending.add(&event, &format)
    }

    /// Finishes the segment that is being filled, if it holds anything.
    fn finish(&mut self, pending: &mut Pending) -> Result<()> {
        self.report.to = Some(pending.place());
        let Some((mut header, bytes)) = pending.take() else {
            return Ok(());
        };
        fail::fail_point!("archive::segment_full");
        self.look_at_keys()?;
        let home = (self.report.source.as_str(), self.report.timeline.as_str());
        let segment = self.writer.write(home, &mut header, &bytes)?;
        fail::fail_point!("archive::segment_written");
        segment.finish()?;
        fail::fail_point!("archive::segment_finished");
        let report = &mut self.report;
        report.from.get_or_insert(LogPosition {
            file: header.file,
            position: header.start,
        });
        report.segments += 1;
        report.transactions += header.transactions;
        report.bytes += bytes.len() as u64;
        report.bytes_stored += header.stored;
        Ok(())
    }
}

impl Archiver<'_> {
    /// Who was removed must not be able to read what is archived from then on.
    fn look_at_keys(&mut self) -> Result<()> {
        if self.keys_seen.elapsed() < KEYS_AFTER {
            return Ok(());
        }
        if self.writer.is_outdated()? {
            self.logs = Repository::open(&self.request.repository)?.logs();
            self.writer = self.logs.writer()?;
            if self.writer.is_outdated()? {
                return Err(Error::new(
                    ErrorKind::WrongKey,
                    "the repository's keys were changed, and this run does not have the new ones",
                )
                .hint("start the run again"));
            }
        }
        self.keys_seen = Instant::now();
        Ok(())
    }
}

/// Whether a place is not before another.
fn is_at(place: &LogPosition, target: &LogPosition) -> bool {
    let order = |place: &LogPosition| (evenkeel_binlog::number_of(&place.file), place.position);
    order(place) >= order(target)
}
