//! A file of statements that a command reads: a log of the server, or captured packets.

use super::piped;
use crate::args::DigestSource;
use crate::show::Ui;
use crate::show::answers::{DigestedFile, not_seen};
use evenkeel_op::{Error, Result};
use evenkeel_traffic::capture::Options;
use evenkeel_traffic::source::{Input, InputKind, Opened, Unread};
use evenkeel_traffic::{Coverage, Source, Statement};
use jiff::tz::TimeZone;
use std::path::Path;

/// A file that was opened, and found to be of a kind that can be read.
pub(super) struct TrafficFile {
    name: String,
    kind: InputKind,
    opened: Opened,
    port_flag: &'static str,
}

impl TrafficFile {
    /// Opens a file; `-` is standard input. `options` are for packets, with the flag that names ports.
    ///
    /// Errors: `Usage` where it is not there, or of no kind that is known.
    pub(super) fn open(
        path: &Path,
        source: Option<DigestSource>,
        (port_flag, options): (&'static str, Options),
        ui: &Ui,
    ) -> Result<Self> {
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let input = Input::of(name, piped::open(path, "log file", ui.cancel())?)?;
        let kind = match source {
            Some(DigestSource::SlowLog) => Some(InputKind::SlowLog),
            Some(DigestSource::GeneralLog) => Some(InputKind::GeneralLog),
            Some(DigestSource::Packets) => Some(InputKind::Packets),
            None => input.kind,
        };
        let name = input.name.clone();
        let kind = kind.ok_or_else(|| {
            Error::usage(format!(
                "{name} is neither a slow query log, nor a general query log, nor captured packets"
            ))
            .hint("if it is a log with a damaged beginning, give its kind with --source")
        })?;
        let opened = Opened::new(input, kind, TimeZone::system(), options)?;
        Ok(Self {
            name,
            kind,
            opened,
            port_flag,
        })
    }

    /// Whether its times say who came before whom.
    pub(super) fn has_exact_times(&self) -> bool {
        self.kind == InputKind::Packets
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
                let missing = not_seen(&coverage, packets.is_cut(), packets.damage());
                let count = missing.len() as u64;
                (missing.join("; "), count)
            }
            log => (entries(&coverage, log.unread()), coverage.undecodable),
        };
        if unreadable > 0 {
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
            source: self.kind.name(),
            entries: coverage.statements,
            unreadable,
        })
    }
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
