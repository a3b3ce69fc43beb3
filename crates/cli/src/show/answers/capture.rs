//! What `capture` says at its end: how much was seen.

use super::Answer;
use evenkeel_op::{Error, units};
use evenkeel_traffic::Coverage;
use serde::Serialize;

/// How much of what went by was seen.
#[derive(Debug, Clone, Serialize)]
pub struct CaptureAnswer {
    /// Commands that were decoded.
    pub statements: u64,
    /// Of these, shown: the filters kept them.
    pub shown: u64,
    /// Of all: not answered when the capture ended.
    pub unanswered: u64,
    /// Of all: without text or values, because these went by before the capture began or are missing.
    pub unseen: u64,
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
    /// Nothing of the above is missing.
    pub complete: bool,
    #[serde(skip)]
    missing: Vec<String>,
}

impl CaptureAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(
        coverage: &Coverage,
        [shown, unanswered]: [u64; 2],
        cut: bool,
        damage: Option<&Error>,
    ) -> Self {
        let missing = not_seen(coverage, cut, damage);
        Self {
            statements: coverage.statements,
            shown,
            unanswered,
            unseen: coverage.unseen,
            packets: coverage.packets,
            packets_dropped: coverage.packets_dropped,
            bytes_missing: coverage.bytes_missing,
            connections_encrypted: coverage.connections_encrypted,
            undecodable: coverage.undecodable,
            cut,
            damage: damage.map(Error::chain),
            complete: missing.is_empty(),
            missing,
        }
    }
}

/// Says what was not seen.
pub fn not_seen(coverage: &Coverage, is_cut: bool, damage: Option<&Error>) -> Vec<String> {
    let counts = [
        (
            coverage.unseen,
            format!(
                "{} without text or values",
                units::count(coverage.unseen, "statement")
            ),
        ),
        (
            coverage.packets_dropped,
            format!(
                "{} dropped by the kernel",
                units::count(coverage.packets_dropped, "packet")
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
            format!(
                "{} not decoded",
                units::count(coverage.undecodable, "packet")
            ),
        ),
        (is_cut.into(), "the capture ends within a packet".to_owned()),
    ];
    let missing = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut all: Vec<String> = missing.map(|(_, text)| text).collect();
    all.extend(damage.map(Error::chain));
    all
}

impl Answer for CaptureAnswer {
    const SCHEMA: &'static str = "evenkeel/capture/1";

    fn text(&self) -> String {
        let statements = units::count(self.statements, "statement");
        let packets = units::count(self.packets, "packet");
        let shown = match self.shown == self.statements {
            true => String::new(),
            false => format!(", {} shown", self.shown),
        };
        let open = match self.unanswered {
            0 => String::new(),
            some => format!(", {some} not answered before the end"),
        };
        let seen = match &self.missing[..] {
            [] => "nothing is missing".to_owned(),
            missing => format!("not seen: {}", missing.join("; ")),
        };
        format!("{statements} in {packets}{shown}{open}; {seen}\n")
    }
}
