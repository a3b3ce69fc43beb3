//! What `capture` says at its end: how much was seen.

use super::Answer;
use crate::settings::shown_place;
use evenkeel_op::{Error, units};
use evenkeel_traffic::capture::tap::Tally;
use evenkeel_traffic::kept::Written;
use evenkeel_traffic::{Coverage, SourceKind};
use serde::Serialize;
use std::path::Path;

/// How much of what went by was seen.
#[derive(Debug, Clone, Serialize)]
pub struct CaptureAnswer {
    /// Statements that were decoded.
    pub statements: u64,
    /// Other commands: sessions that began or ended, and what has no text.
    pub others: u64,
    /// Of all of these, shown: the filters kept them.
    pub shown: u64,
    /// Of all: not answered when the capture ended.
    pub unanswered: u64,
    /// Of all: without text or values, because these went by before the capture began or are missing.
    pub unseen: u64,
    /// What they were seen by: packets, tap, uprobes, slow-log, general-log, performance-schema.
    pub source: &'static str,
    /// Packets read.
    pub packets: u64,
    /// Packets that the kernel dropped.
    pub packets_dropped: u64,
    /// Bytes of connections that are not in the capture.
    pub bytes_missing: u64,
    /// Connections that TLS hides.
    pub connections_encrypted: u64,
    /// Packets that could not be decoded.
    pub undecodable: u64,
    /// The capture ended within a packet.
    pub cut: bool,
    /// Why the rest of the capture could not be read.
    pub damage: Option<String>,
    /// With --tap: its connections.
    pub tap: Option<TapAnswer>,
    /// With --uprobes: what was seen of the server.
    pub uprobes: Option<UprobesAnswer>,
    /// With --directory: what was written into it.
    pub kept: Option<KeptAnswer>,
    /// Nothing of the above is missing.
    pub complete: bool,
    #[serde(skip)]
    kind: SourceKind,
    #[serde(skip)]
    missing: Vec<String>,
}

/// What was written into a directory.
#[derive(Debug, Clone, Serialize)]
pub struct KeptAnswer {
    /// The directory.
    pub directory: String,
    /// Files, all complete.
    pub files: u64,
    /// Statements in them.
    pub statements: u64,
}

/// What became of the connections of a tap.
#[derive(Debug, Clone, Serialize)]
pub struct TapAnswer {
    /// Connections that clients made.
    pub connections: u64,
    /// Connections that were refused: the tap could open no more files.
    pub refused: u64,
    /// Connections that ended at once: the server could not be reached.
    pub unreachable: u64,
    /// Connections that were not idle in time at the end, and were closed.
    pub cut_off: u64,
    /// Logins that failed while TLS was hidden from the client.
    pub logins_failed: u64,
}

/// What was seen of a server's process.
#[derive(Debug, Clone, Serialize)]
pub struct UprobesAnswer {
    /// Connections that did something.
    pub connections: u64,
    /// Statements that the kernel had no memory for.
    pub statements_lost: u64,
    /// What else it had no memory for: ends of statements, parts of texts.
    pub events_lost: u64,
}

/// What the statements were seen by.
#[derive(Debug, Clone, Copy)]
pub enum SeenBy {
    /// Packets, captured or read from a file.
    Packets,
    /// A tap.
    Tap(Tally),
    /// The server's own functions.
    Server {
        /// Connections that did something.
        connections: u64,
    },
    /// What the server wrote or remembered.
    ServerItself(SourceKind),
}

impl SeenBy {
    fn kind(self) -> SourceKind {
        match self {
            Self::Packets => SourceKind::Packets,
            Self::Tap(_) => SourceKind::Tap,
            Self::Server { .. } => SourceKind::Uprobes,
            Self::ServerItself(kind) => kind,
        }
    }
}

impl CaptureAnswer {
    /// Puts the answer together; `missing` says what was not seen.
    #[must_use]
    pub fn new(
        coverage: &Coverage,
        [shown, unanswered]: [u64; 2],
        cut: bool,
        damage: Option<&Error>,
        seen_by: SeenBy,
        missing: Vec<String>,
    ) -> Self {
        Self {
            statements: coverage.statements,
            others: 0,
            shown,
            unanswered,
            unseen: coverage.unseen,
            source: seen_by.kind().name(),
            packets: coverage.packets,
            packets_dropped: coverage.packets_dropped,
            bytes_missing: coverage.bytes_missing,
            connections_encrypted: coverage.connections_encrypted,
            undecodable: coverage.undecodable,
            cut,
            damage: damage.map(Error::chain),
            tap: match seen_by {
                SeenBy::Tap(tally) => Some(TapAnswer {
                    connections: tally.connections,
                    refused: tally.refused,
                    unreachable: tally.unreachable,
                    cut_off: tally.cut_off,
                    logins_failed: tally.logins_failed,
                }),
                _ => None,
            },
            uprobes: match seen_by {
                SeenBy::Server { connections } => Some(UprobesAnswer {
                    connections,
                    statements_lost: coverage.commands_lost,
                    events_lost: coverage.events_lost,
                }),
                _ => None,
            },
            kept: None,
            complete: missing.is_empty(),
            kind: seen_by.kind(),
            missing,
        }
    }
}

impl CaptureAnswer {
    /// Tells statements apart from so many other commands, which were counted with them.
    pub fn tells_apart(&mut self, others: u64) {
        self.statements = self.statements.saturating_sub(others);
        self.others = others;
    }

    /// Adds what was written into a directory.
    pub fn keeps(&mut self, directory: Option<&Path>, written: Written) {
        self.kept = directory.map(|directory| KeptAnswer {
            directory: shown_place(directory),
            files: written.files,
            statements: written.statements,
        });
    }
}

/// Says that a tap refused connections.
pub fn refused(count: u64) -> String {
    let connections = units::count(count, "connection");
    format!("{connections} refused: raise the limit of open files")
}

/// Says what was not seen, in the words that fit what saw the statements.
pub fn not_seen(
    coverage: &Coverage,
    source: SourceKind,
    is_cut: bool,
    damage: Option<&Error>,
) -> Vec<String> {
    let unseen = match source {
        SourceKind::PerformanceSchema => "that the server forgot",
        _ => "without text or values",
    };
    let (undecodable, how) = match source {
        SourceKind::SlowLog | SourceKind::GeneralLog => ("entry of the log", "not read"),
        _ => ("packet", "not decoded"),
    };
    let counts = [
        (
            coverage.unseen,
            format!("{} {unseen}", units::count(coverage.unseen, "statement")),
        ),
        (
            coverage.packets_dropped,
            format!(
                "{} dropped by the kernel",
                units::count(coverage.packets_dropped, "packet")
            ),
        ),
        (
            coverage.commands_lost,
            format!(
                "{} lost for lack of memory (--ring)",
                units::count(coverage.commands_lost, "statement")
            ),
        ),
        (
            coverage.events_lost,
            format!(
                "{} of statements lost",
                units::count(coverage.events_lost, "part")
            ),
        ),
        (
            coverage.bytes_missing,
            format!(
                "{} missing from connections",
                units::bytes(coverage.bytes_missing)
            ),
        ),
        (
            coverage.connections_encrypted,
            format!(
                "{} hidden by TLS",
                units::count(coverage.connections_encrypted, "connection")
            ),
        ),
        (
            coverage.undecodable,
            format!("{} {how}", units::count(coverage.undecodable, undecodable)),
        ),
        (is_cut.into(), "the capture ends within a packet".to_owned()),
    ];
    let missing = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut all: Vec<String> = missing.map(|(_, text)| text).collect();
    all.extend(damage.map(Error::chain));
    all
}

impl TapAnswer {
    /// Says what did not go well.
    fn text(&self) -> String {
        let counts = [
            (self.unreachable, "could not reach the server"),
            (self.cut_off, "cut off at the end"),
        ];
        let mut text = String::new();
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!("; {} {what}", units::count(count, "connection")));
        }
        if self.logins_failed > 0 {
            let logins = units::count(self.logins_failed, "login");
            text.push_str(&format!("; {logins} failed while TLS was hidden"));
        }
        text
    }
}

impl Answer for CaptureAnswer {
    const SCHEMA: &'static str = "evenkeel/capture/1";

    fn text(&self) -> String {
        let others = match self.others {
            0 => String::new(),
            some => format!(" and {}", units::count(some, "other command")),
        };
        let statements = format!("{}{others}", units::count(self.statements, "statement"));
        let sources = match (&self.tap, &self.uprobes) {
            (Some(tap), _) => units::count(tap.connections, "connection"),
            (None, Some(server)) => units::count(server.connections, "connection"),
            (None, None) if self.kind.is_told_by_server() => match self.kind {
                SourceKind::SlowLog => "the slow query log".to_owned(),
                SourceKind::GeneralLog => "the general query log".to_owned(),
                _ => "performance_schema".to_owned(),
            },
            (None, None) => units::count(self.packets, "packet"),
        };
        let shown = match (&self.kept, self.shown == self.statements + self.others) {
            (Some(kept), _) => format!(
                ", {} kept in {}",
                kept.statements,
                units::count(kept.files, "file")
            ),
            (None, true) => String::new(),
            (None, false) => format!(", {} shown", self.shown),
        };
        let open = match self.unanswered {
            0 => String::new(),
            some => format!(", {some} not answered before the end"),
        };
        let seen = match &self.missing[..] {
            [] => "nothing is missing".to_owned(),
            missing => format!("not seen: {}", missing.join("; ")),
        };
        let tapped = self.tap.as_ref().map_or_else(String::new, TapAnswer::text);
        format!("{statements} in {sources}{shown}{open}; {seen}{tapped}\n")
    }
}
