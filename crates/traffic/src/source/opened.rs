//! A file of statements, whatever kind it is.

use super::{GeneralLog, Input, InputKind, SlowLog, Unread, Untimed};
use crate::capture::{self, Capture};
use crate::kept::KeptCapture;
use crate::{Coverage, Source, SourceKind, Statement};
use evenkeel_op::{Cancel, Error, Result};
use jiff::tz::TimeZone;
use std::io::BufRead;

/// A file of statements.
pub enum Opened {
    /// A slow query log.
    SlowLog(Box<SlowLog>),
    /// A general query log.
    GeneralLog(Box<GeneralLog>),
    /// Captured packets.
    Packets(Box<Capture<Box<dyn BufRead + Send>>>),
    /// A capture in Parquet.
    Kept(Box<KeptCapture>),
}

impl Opened {
    /// Begins to read a file; `zone` is that of the server, for logs with times that come without one, and `options` are
    /// for packets.
    ///
    /// # Errors
    ///
    /// `Usage` when packets are of no format that is known.
    pub fn new(
        input: Input,
        kind: InputKind,
        zone: TimeZone,
        options: capture::Options,
    ) -> Result<Self> {
        Ok(match kind {
            InputKind::SlowLog => Self::SlowLog(Box::new(SlowLog::new(input, zone))),
            InputKind::GeneralLog => Self::GeneralLog(Box::new(GeneralLog::new(input, zone))),
            InputKind::Packets => Self::Packets(Box::new(Capture::new(input.bytes, options)?)),
        })
    }

    /// The source is a log that is followed from its end, since a time in nanoseconds since 1970.
    pub fn follow_from(&mut self, at_ns: i64) {
        if let Self::GeneralLog(log) = self {
            log.begin_at(at_ns);
        }
    }

    /// Returns what the statements were seen by.
    #[must_use]
    pub fn source(&self) -> SourceKind {
        match self {
            Self::SlowLog(_) => SourceKind::SlowLog,
            Self::GeneralLog(_) => SourceKind::GeneralLog,
            Self::Packets(_) => SourceKind::Packets,
            Self::Kept(kept) => kept.source(),
        }
    }

    /// Returns the first places of a log that could not be read.
    #[must_use]
    pub fn unread(&self) -> &[Unread] {
        match self {
            Self::SlowLog(log) => log.unread(),
            Self::GeneralLog(log) => log.unread(),
            Self::Packets(_) | Self::Kept(_) => &[],
        }
    }

    /// Returns why the rest of a log could not be read.
    #[must_use]
    pub fn log_damage(&self) -> Option<&Error> {
        match self {
            Self::SlowLog(log) => log.damage(),
            Self::GeneralLog(log) => log.damage(),
            Self::Packets(_) | Self::Kept(_) => None,
        }
    }

    /// Returns how many entries of a log have a time that is not that of the server.
    #[must_use]
    pub fn untimed(&self) -> Untimed {
        match self {
            Self::SlowLog(log) => log.untimed(),
            Self::GeneralLog(log) => log.untimed(),
            Self::Packets(_) | Self::Kept(_) => Untimed::default(),
        }
    }
}

impl Source for Opened {
    fn read(
        &mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        match self {
            Self::SlowLog(log) => log.read(each, cancel),
            Self::GeneralLog(log) => log.read(each, cancel),
            Self::Packets(packets) => packets.read(each, cancel),
            Self::Kept(kept) => kept.read(each, cancel),
        }
    }
}
