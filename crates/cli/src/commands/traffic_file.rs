//! A file of statements that a command reads: a log of the server, or captured packets.

use super::piped;
use crate::args::DigestSource;
use crate::opened;
use crate::settings::{self, shown_place};
use crate::show::Ui;
use crate::show::answers::{DigestedFile, not_seen, refused};
use evenkeel_op::{Error, Result, units};
use evenkeel_repository::{Credentials, is_begun_by_age};
use evenkeel_traffic::capture::Options;
use evenkeel_traffic::kept::{FilePart, KeptCapture, Missing, is_begun_by_parquet};
use evenkeel_traffic::source::{Input, InputKind, Opened, Unread, Untimed};
use evenkeel_traffic::{Coverage, Source, SourceKind, Statement};
use jiff::tz::TimeZone;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file or a directory of captures that was opened, and found to be of a kind that can be read.
pub(super) struct TrafficFile {
    name: String,
    kind: &'static str,
    opened: Opened,
    port_flag: &'static str,
}

/// How files are read.
pub(super) struct Reading<'a> {
    /// The kind that they have, whatever they look like.
    pub(super) source: Option<DigestSource>,
    /// The flag that names the ports of `packets`.
    pub(super) port_flag: &'static str,
    /// How packets are decoded.
    pub(super) packets: Options,
    /// What opens encrypted captures.
    pub(super) identities: &'a [PathBuf],
}

impl TrafficFile {
    /// Opens a file, a directory or a URL of captures; `-` is standard input.
    ///
    /// Errors: `Usage` where it is not there, or of no kind that is known; `WrongKey` where it is encrypted and no
    /// identity opens it.
    pub(super) fn open(path: &Path, reading: Reading<'_>, ui: &Ui) -> Result<Self> {
        let credentials = settings::identities(reading.identities, ui.cancel())?;
        if let Some(kept) = kept(path, credentials, ui)? {
            return Ok(Self {
                name: shown_place(path),
                kind: "parquet",
                opened: Opened::Kept(Box::new(kept)),
                port_flag: reading.port_flag,
            });
        }
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let input = Input::of(name, piped::open(path, "log file", ui.cancel())?)?;
        let kind = match reading.source {
            Some(DigestSource::SlowLog) => Some(InputKind::SlowLog),
            Some(DigestSource::GeneralLog) => Some(InputKind::GeneralLog),
            Some(DigestSource::Packets) => Some(InputKind::Packets),
            None => input.kind,
        };
        let name = input.name.clone();
        let kind = kind.ok_or_else(|| {
            Error::usage(format!(
                "{name} is neither a slow query log, nor a general query log, nor captured packets, nor a capture \
                 in Parquet"
            ))
            .hint("if it is a log with a damaged beginning, give its kind with --source")
            .hint("a Parquet file cannot be read from a pipe: give its name")
        })?;
        let opened = Opened::new(input, kind, TimeZone::system(), reading.packets)?;
        Ok(Self {
            name,
            kind: kind.name(),
            opened,
            port_flag: reading.port_flag,
        })
    }

    /// Returns what the statements were seen by.
    pub(super) fn source(&self) -> SourceKind {
        self.opened.source()
    }

    /// Makes a directory an error whose captures were seen by different things.
    pub(super) fn want_one_source(&mut self) {
        if let Opened::Kept(kept) = &mut self.opened {
            kept.want_one_source();
        }
    }

    /// Whether the values of its statements were left out when they were captured.
    pub(super) fn is_redacted(&self) -> bool {
        matches!(&self.opened, Opened::Kept(kept) if kept.is_redacted())
    }

    /// Returns which file of a capture it is, if it is one of a capture in Parquet.
    pub(super) fn part(&self) -> Option<&FilePart> {
        match &self.opened {
            Opened::Kept(kept) => kept.part(),
            _ => None,
        }
    }

    /// Hands each statement to `each`, and says what could not be read.
    ///
    /// Errors: where it cannot be read; those of `each`.
    pub(super) fn read(
        mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        ui: &Ui,
    ) -> Result<DigestedFile> {
        let coverage = self.opened.read(each, ui.cancel())?;
        let (missing, unreadable) = match &self.opened {
            Opened::Packets(packets) => {
                let missing = not_seen(
                    &coverage,
                    SourceKind::Packets,
                    packets.is_cut(),
                    packets.damage(),
                );
                let count = missing.len() as u64;
                (missing.join("; "), count)
            }
            Opened::Kept(kept) => {
                if kept.filtered() > 0 {
                    ui.note(&format!(
                        "{}: the capture had filters, which left out {}",
                        self.name,
                        units::count(kept.filtered(), "statement")
                    ));
                }
                let missing = not_kept(&coverage, kept);
                let count = missing.len() as u64;
                (missing.join("; "), count)
            }
            log => (
                unread_of(&coverage, log).join("; "),
                coverage.undecodable + u64::from(log.log_damage().is_some()),
            ),
        };
        let untimed = self.opened.untimed();
        if untimed.own_clocks > 0 {
            ui.note(&format!("{}: {}", self.name, own_clocks(&untimed)));
        }
        if unreadable > 0 || untimed.unreadable > 0 {
            ui.warn(&format!("{}: {missing}", self.name));
        }
        if matches!(self.opened, Opened::Packets(_))
            && coverage.statements == 0
            && coverage.packets > 0
        {
            ui.warn(&format!(
                "{}: no client spoke to the server's port: if it listens on another one, name it with {}",
                self.name, self.port_flag
            ));
        }
        Ok(DigestedFile {
            file: self.name,
            source: self.kind,
            entries: coverage.statements,
            unreadable,
            untimed: untimed.unreadable,
            own_clocks: untimed.own_clocks,
        })
    }
}

/// Opens what may be a capture in Parquet: a URL, a directory, or a file that begins like one.
fn kept(path: &Path, credentials: Credentials, ui: &Ui) -> Result<Option<KeptCapture>> {
    if settings::is_url(path) || path.is_dir() {
        let store = ui.location(path, None)?.store();
        return KeptCapture::directory(store, credentials).map(Some);
    }
    // What is no file of this host is none of these, and what cannot be opened is told by who reads it.
    let is_file = path.metadata().is_ok_and(|facts| facts.is_file());
    let Some(mut file) = is_file.then(|| opened::open(path).ok()).flatten() else {
        return Ok(None);
    };
    let mut first = Vec::new();
    let read = file.by_ref().take(64).read_to_end(&mut first);
    if read.is_err() || !(is_begun_by_parquet(&first) || is_begun_by_age(&first)) {
        return Ok(None);
    }
    KeptCapture::file(file, &path.display().to_string(), credentials).map(Some)
}

/// Says what a capture did not see, and what is missing of it.
fn not_kept(coverage: &Coverage, kept: &KeptCapture) -> Vec<String> {
    let end = kept.ended();
    let mut all = not_seen(coverage, kept.source(), end.is_cut, None);
    all.extend(end.damage.clone());
    all.extend((end.refused > 0).then(|| refused(end.refused)));
    all.extend(kept.missing().iter().map(|missing| match missing {
        Missing::Files(capture, count) => {
            format!("{} of {capture} missing", units::count(*count, "file"))
        }
        Missing::All => {
            "not one file is complete: the capture was killed, or has just begun".to_owned()
        }
        Missing::End(capture) => {
            format!("{capture} has no end: it was killed, or is still running")
        }
    }));
    all
}

/// Says what could not be read of a log.
pub(super) fn unread_of(coverage: &Coverage, log: &Opened) -> Vec<String> {
    let unread = (coverage.undecodable > 0).then(|| entries(coverage, log.unread()));
    let untimed = log.untimed();
    let times = (untimed.unreadable > 0).then(|| {
        let (noun, they) = match untimed.unreadable {
            1 => ("entry has a time", "it counts"),
            _ => ("entries have times", "they count"),
        };
        format!(
            "{} {noun} that cannot be read, first in line {}; {they} at the time of the entry before",
            untimed.unreadable,
            untimed.first_line.unwrap_or(0)
        )
    });
    let damage = log.log_damage().map(|error| {
        let why = error.chain();
        format!("the rest could not be read and is not counted: {why}")
    });
    unread.into_iter().chain(times).chain(damage).collect()
}

/// Says how many entries have a clock of their own.
pub(super) fn own_clocks(untimed: &Untimed) -> String {
    let (noun, they) = match untimed.own_clocks {
        1 => ("entry has the time of a session", "it counts"),
        _ => ("entries have the times of sessions", "they count"),
    };
    format!(
        "{} {noun} that set its clock (SET timestamp); {they} at the time of the entry before",
        untimed.own_clocks
    )
}

/// Says which entries of a log could not be read.
fn entries(coverage: &Coverage, unread: &[Unread]) -> String {
    let places = unread
        .iter()
        .map(|one| format!("line {}: {}", one.line, one.why));
    let mut places: Vec<String> = places.collect();
    if coverage.undecodable > unread.len() as u64 {
        places.push("…".to_owned());
    }
    let (noun, be) = match coverage.undecodable {
        1 => ("entry", "is"),
        _ => ("entries", "are"),
    };
    format!(
        "{} {noun} could not be read and {be} not counted ({})",
        coverage.undecodable,
        places.join("; ")
    )
}
