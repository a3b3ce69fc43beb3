//! The server that an archive is made of: who it is, which logs it has, and whether they are those
//! that the archive has.

use evenkeel_binlog::{
    CHECKSUM, Event, Format, Groups, Gtid, GtidSet, Header, Rotate, kind, number_of,
};
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result};
use evenkeel_repository::BlockHash;
use evenkeel_repository::logs::{LogPosition, Logs, Timeline};
use evenkeel_server::abilities::{Abilities, Flavour, GtidKind};
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::semi_sync;
use evenkeel_wire::{BinlogRequest, BinlogStream, Received};
use std::time::{Duration, Instant};

/// How long a server may take to send the first events of a file that it has.
const FIRST_EVENTS: Duration = Duration::from_secs(60);

/// A server that is reached.
pub(super) struct Source {
    pub(super) id: String,
    /// Its log files, in order, and their lengths.
    pub(super) logs: Vec<(String, u64)>,
    /// Where it is now.
    pub(super) now: LogPosition,
    /// When it was asked that.
    pub(super) asked: Instant,
    abilities: Abilities,
    options: ConnectOptions,
    replica: u32,
    compress: bool,
}

impl Source {
    /// Asks a server who it is and what it has. Streams are compressed if it can, where that is wanted.
    pub(super) fn ask(options: &ConnectOptions, replica: u32, compress: bool) -> Result<Self> {
        let mut session = Session::open(options)?;
        let abilities = Abilities::probe(&mut session)?;
        let asked = Instant::now();
        let now = Coordinates::read(&mut session, &abilities)?;
        let (Some(file), Some(position)) = (now.binlog_file, now.binlog_position) else {
            return Err(
                Error::refused(format!("{} writes no binary log", session.place()))
                    .hint("start the server with --log-bin"),
            );
        };
        let rows = session.rows("SHOW BINARY LOGS")?;
        let length = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let logs = rows
            .iter()
            .filter_map(|row| Some((row.at(0)?.to_owned(), length(row.at(1)))))
            .collect();
        let id = session.variable(abilities.flavour.identity_variable())?;
        Ok(Self {
            id: source_id(abilities.flavour, &id.unwrap_or_default()),
            logs,
            now: LogPosition { file, position },
            asked,
            abilities,
            options: options.clone(),
            replica,
            compress,
        })
    }

    /// Whether its GTIDs are numbers that another server may give to other transactions.
    pub(super) fn counts_gtids(&self) -> bool {
        self.abilities.gtid == GtidKind::MariaDb
    }

    /// Asks which transactions the server has executed, as far as its log says so.
    pub(super) fn executed(&self) -> Result<GtidSet> {
        let mut session = Session::open(&self.options)?;
        let variable = self.abilities.executed_gtids_variable();
        let set = session.value(&format!("SELECT @@global.{variable}"))?;
        set.unwrap_or_default().parse()
    }

    /// Asks which transactions the server had executed when it began a file; nothing where the file
    /// does not say so.
    pub(super) fn executed_before(&self, file: &str) -> Result<Option<GtidSet>> {
        let mut session = Session::open(&self.options)?;
        let first = format!("SHOW BINLOG EVENTS IN {} LIMIT 4", quote(file));
        for row in session.rows(&first)? {
            let kind = row.at(2).unwrap_or_default();
            if matches!(kind, "Previous_gtids" | "Gtid_list") {
                let text = row.at(5).unwrap_or_default();
                let text = text.trim_start_matches('[').trim_end_matches(']');
                return Ok(text.parse().ok());
            }
        }
        Ok(None)
    }

    /// Receives the transactions from a file's beginning to where the server is now, until `take`
    /// wants no more: their GTIDs, and the seconds of their last statements.
    pub(super) fn transactions(
        &self,
        file: &str,
        cancel: &Cancel,
        mut take: impl FnMut(Gtid, u32) -> bool,
    ) -> Result<()> {
        let mut at = LogPosition {
            file: file.to_owned(),
            position: 4,
        };
        let mut stream = self.stream(&at)?;
        let (mut groups, mut format) = (Groups::default(), None::<Format>);
        let order = |place: &LogPosition| (number_of(&place.file), place.position);
        while order(&at) < order(&self.now) {
            cancel.check()?;
            let bytes = match stream.receive()? {
                Received::Event(bytes) | Received::Asking(bytes) => bytes,
                Received::Nothing => continue,
                Received::End => break,
            };
            let header = Header::parse(&bytes)?;
            match header.kind {
                kind::HEARTBEAT | kind::HEARTBEAT_V2 => continue,
                kind::ROTATE if header.is_artificial() => {
                    (at.file, at.position) = (Rotate::parse(&bytes)?.file, 4);
                    continue;
                }
                kind::FORMAT_DESCRIPTION => format = Some(Format::parse(&bytes)?),
                _ if header.is_artificial() => continue,
                _ => {}
            }
            let Some(format) = &format else { continue };
            let event = Event {
                position: at.position,
                header,
                bytes,
            };
            at.position = event.end();
            if let Some(group) = groups.step(&event, format)?
                && let Some(gtid) = group.gtid
                && !take(gtid, group.statement)
            {
                break;
            }
        }
        Ok(())
    }

    /// Begins a stream.
    fn stream(&self, from: &LogPosition) -> Result<BinlogStream> {
        self.open(from, false)
    }

    /// Begins the stream that is archived, which the server may wait for.
    pub(super) fn archived_stream(
        &self,
        from: &LogPosition,
        semi_sync: bool,
    ) -> Result<BinlogStream> {
        if semi_sync {
            let mut session = Session::open(&self.options)?;
            semi_sync::is_on(&mut session, self.abilities.flavour)?;
        }
        self.open(from, semi_sync)
    }

    fn open(&self, from: &LogPosition, semi_sync: bool) -> Result<BinlogStream> {
        let wanted = BinlogRequest {
            file: &from.file,
            position: from.position,
            replica: self.replica,
            semi_sync,
            compress: self.compress,
        };
        BinlogStream::open(&self.options, wanted)
    }

    /// Returns whether the server still has all that a timeline has of its last file, and it is the
    /// same: the event that the archive has last is compared with the server's.
    pub(super) fn continues(
        &self,
        timeline: &Timeline,
        logs: &Logs,
        cancel: &Cancel,
    ) -> Result<bool> {
        let Some(last) = timeline.segments.last() else {
            return Ok(false);
        };
        let there = self
            .logs
            .iter()
            .any(|(file, length)| *file == last.file && *length >= last.end);
        if !there {
            return Ok(false);
        }
        let header = logs.header(last)?;
        let from = LogPosition {
            file: last.file.clone(),
            position: header.last_event,
        };
        let theirs = match self.events(&from, 1, cancel) {
            Ok(events) => events,
            // Not the start of an event there: another file of that name.
            Err(error) if error.kind() == ErrorKind::Failed => return Ok(false),
            Err(error) => return Err(error),
        };
        let Some(theirs) = theirs.first() else {
            return Ok(false);
        };
        if let Some(hash) = header.last_event_hash {
            return Ok(BlockHash::of(theirs) == hash);
        }
        // One that the first program wrote. It is not encrypted.
        let bytes = logs.read(last)?;
        let ours = bytes.get((header.last_event - last.start) as usize..);
        Ok(ours == Some(theirs))
    }

    /// Returns a name for the timeline of the log that begins with a file: the time and a checksum of
    /// its first events.
    pub(super) fn history(&self, file: &str, cancel: &Cancel) -> Result<String> {
        let from = LogPosition {
            file: file.to_owned(),
            position: 4,
        };
        let events = self.events(&from, 2, cancel)?;
        let first = events
            .first()
            .ok_or_else(|| Error::failed(format!("the server sends nothing from {file}")))?;
        let begun = jiff::Timestamp::from_second(i64::from(Header::parse(first)?.time))
            .context(|| "the log's first event has no time")?;
        let mut hasher = crc32fast::Hasher::new();
        for event in &events {
            // Without its own checksum: with it, the sum of all is always the same.
            hasher.update(&event[..event.len().saturating_sub(CHECKSUM)]);
        }
        let begun = begun.strftime("%Y%m%dT%H%M%S");
        Ok(format!("{begun}-{:08x}", hasher.finalize()))
    }

    /// Receives up to `count` events that are in the file, from an event's start on.
    fn events(&self, from: &LogPosition, count: usize, cancel: &Cancel) -> Result<Vec<Vec<u8>>> {
        let mut stream = self.stream(from)?;
        let until = Instant::now() + FIRST_EVENTS;
        let mut all: Vec<Vec<u8>> = Vec::new();
        while all.len() < count && Instant::now() < until {
            cancel.check()?;
            match stream.receive()? {
                Received::Event(event) | Received::Asking(event) => {
                    let header = Header::parse(&event)?;
                    let beat = matches!(header.kind, kind::HEARTBEAT | kind::HEARTBEAT_V2);
                    // Idle: it has no more.
                    if beat {
                        break;
                    }
                    if !header.is_artificial() {
                        all.push(event);
                    }
                }
                Received::Nothing => {}
                Received::End => break,
            }
        }
        Ok(all)
    }

    /// Returns whether every file that the server has comes after one.
    pub(super) fn begins_after(&self, file: &str) -> bool {
        let first = self.logs.first().and_then(|(name, _)| number_of(name));
        first > number_of(file) && number_of(file).is_some()
    }
}

/// Returns the name of a source.
pub(crate) fn source_id(flavour: Flavour, own: &str) -> String {
    format!("{}-{own}", flavour.id())
}
