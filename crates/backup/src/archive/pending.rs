//! The segment that is being filled, in memory.

use evenkeel_binlog::{self as binlog, Event, Format, Groups, GtidSet, MAGIC, body, kind};
use evenkeel_op::Result;
use evenkeel_repository::BlockHash;
use evenkeel_repository::logs::{LogPosition, SegmentHeader, Unfinished};
use std::time::Instant;

/// A set that is longer is not in headers: one of a few servers takes a hundred bytes.
const GTIDS_MAX: usize = 256 << 10;

/// Where the archive of a file is, and what came since the last segment.
pub(super) struct Pending {
    pub(super) file: String,
    start: u64,
    bytes: Vec<u8>,
    /// When its first byte came.
    since: Option<Instant>,
    previous: Option<LogPosition>,
    gap: Option<String>,
    last_event: u64,
    groups: Groups,
    format: Option<Format>,
    /// What the server had executed at the end; nothing where that is not known.
    gtids: Option<GtidSet>,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    transactions: u64,
    times: Option<(u32, u32)>,
    gtids: Option<(String, String)>,
    statement: Option<u32>,
}

impl Pending {
    /// Begins a file, behind `previous` or behind a gap.
    pub(super) fn begin(file: String, previous: Option<LogPosition>, gap: Option<String>) -> Self {
        Self {
            bytes: MAGIC.to_vec(),
            gap,
            ..Self::resume(file, 0, previous)
        }
    }

    fn resume(file: String, start: u64, previous: Option<LogPosition>) -> Self {
        Self {
            file,
            start,
            bytes: Vec::new(),
            since: None,
            previous,
            gap: None,
            last_event: 0,
            groups: Groups::default(),
            format: None,
            gtids: None,
            seen: Seen::default(),
        }
    }

    /// Continues behind a segment.
    pub(super) fn behind(last: &SegmentHeader) -> Result<Self> {
        let end = LogPosition {
            file: last.file.clone(),
            position: last.end,
        };
        let mut pending = Self::resume(last.file.clone(), last.end, Some(end));
        pending.gtids = last.gtids.as_deref().map(str::parse).transpose()?;
        if let Some(unfinished) = &last.unfinished {
            let gtid = unfinished.gtid.as_deref();
            pending.groups = Groups::resume(&binlog::Unfinished {
                start: unfinished.start,
                time: unfinished.time,
                statement: unfinished.statement,
                gtid: gtid.map(str::parse).transpose()?,
                in_transaction: unfinished.in_transaction,
            });
        }
        Ok(pending)
    }

    /// Returns the position after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub(super) fn place(&self) -> LogPosition {
        LogPosition {
            file: self.file.clone(),
            position: self.end(),
        }
    }

    pub(super) fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    pub(super) fn set_format(&mut self, format: Format) {
        self.format = Some(format);
    }

    /// Returns how many bytes of the log wait, and since when; nothing when only the magic does.
    pub(super) fn waiting(&self) -> Option<(u64, Instant)> {
        self.since.map(|since| (self.bytes.len() as u64, since))
    }

    /// Adds an event that was checked.
    pub(super) fn add(&mut self, event: &Event, format: &Format) -> Result<()> {
        self.since.get_or_insert_with(Instant::now);
        self.last_event = event.position;
        self.bytes.extend_from_slice(&event.bytes);
        match event.header.kind {
            kind::PREVIOUS_GTIDS => {
                self.gtids = GtidSet::parse_previous(body(&event.bytes, Some(format)));
            }
            kind::MARIADB_GTID_LIST => {
                self.gtids = GtidSet::parse_list(body(&event.bytes, Some(format)));
            }
            _ => {}
        }
        if let Some(group) = self.groups.step(event, format)? {
            match (&group.gtid, &mut self.gtids) {
                (Some(gtid), Some(gtids)) => gtids.add(gtid),
                // What has no name cannot be recognized elsewhere.
                _ => self.gtids = None,
            }
            let seen = &mut self.seen;
            seen.transactions += 1;
            seen.statement = Some(group.statement);
            let first = seen.times.map_or(group.time, |(first, _)| first);
            seen.times = Some((first, group.time));
            if let Some(gtid) = group.gtid {
                let last = gtid.to_string();
                let first = seen
                    .gtids
                    .take()
                    .map_or_else(|| last.clone(), |(first, _)| first);
                seen.gtids = Some((first, last));
            }
        }
        Ok(())
    }

    /// Takes what waits as a segment; the next one continues behind it.
    pub(super) fn take(&mut self) -> Option<(SegmentHeader, Vec<u8>)> {
        self.since.take()?;
        let seen = std::mem::take(&mut self.seen);
        let bytes = std::mem::take(&mut self.bytes);
        let end = self.start + bytes.len() as u64;
        let (first_gtid, last_gtid) = seen.gtids.unzip();
        let header = SegmentHeader {
            file: self.file.clone(),
            start: self.start,
            end,
            previous: self.previous.take(),
            gap: self.gap.take(),
            last_event: self.last_event,
            last_event_hash: bytes
                .get((self.last_event - self.start) as usize..)
                .map(BlockHash::of),
            transactions: seen.transactions,
            first_time: seen.times.map(|times| times.0),
            last_time: seen.times.map(|times| times.1),
            first_gtid,
            last_gtid,
            gtids: self
                .gtids
                .as_ref()
                .map(ToString::to_string)
                .filter(|text| text.len() <= GTIDS_MAX),
            last_statement: seen.statement,
            unfinished: self.groups.unfinished().map(|open| Unfinished {
                start: open.start,
                time: open.time,
                statement: open.statement,
                gtid: open.gtid.map(|gtid| gtid.to_string()),
                in_transaction: open.in_transaction,
            }),
            server_version: self
                .format
                .as_ref()
                .map(|format| format.server_version.clone())
                .unwrap_or_default(),
            crc: 0,
            stored: 0,
            stored_crc: None,
            of: None,
        };
        self.start = end;
        self.previous = Some(LogPosition {
            file: self.file.clone(),
            position: end,
        });
        Some((header, bytes))
    }
}
