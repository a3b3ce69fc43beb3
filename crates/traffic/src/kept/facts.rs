//! What a file says of itself, and the last one of a capture of the whole of it: pairs in its metadata.

use crate::{Coverage, SourceKind};
use parquet::file::metadata::KeyValue;

/// What the name of every pair begins with.
const OURS: &str = "evenkeel.";
/// How the format is called; what is added to it later keeps the name.
const FORMAT: &str = "statements/1";

/// What the pair with the sums of the row groups is called.
const SUMS: &str = "sums";

/// Returns what bytes sum up to, as it stands in a file.
pub(super) fn sum_of(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Returns the pair with the sums of all row groups.
pub(super) fn sums_pair(sums: &[String]) -> KeyValue {
    KeyValue::new(format!("{OURS}{SUMS}"), sums.join(" "))
}

/// Returns the sums of all row groups; `None` in files of versions that wrote none.
pub(super) fn sums(pairs: &[KeyValue]) -> Option<Vec<String>> {
    let is_it = |pair: &&KeyValue| pair.key.strip_prefix(OURS) == Some(SUMS);
    let sums = pairs.iter().find(is_it)?.value.as_deref()?;
    Some(sums.split_whitespace().map(str::to_owned).collect())
}

/// What a file says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// The capture's name.
    pub capture: String,
    /// Which of its files this is, from 1.
    pub number: u64,
    /// Values were replaced before anything was written.
    pub is_redacted: bool,
    /// What its statements were seen by.
    pub source: SourceKind,
    /// How the capture ended; only the last file knows.
    pub end: Option<CaptureEnd>,
}

/// Which file of a capture one is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePart {
    /// The capture's name.
    pub capture: String,
    /// Which of its files, from 1.
    pub number: u64,
    /// Whether it is the last, which says how the capture ended.
    pub is_last: bool,
}

/// How a capture ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureEnd {
    /// How much of what went by was seen.
    pub coverage: Coverage,
    /// The packets ended within one.
    pub is_cut: bool,
    /// Connections that a tap refused.
    pub refused: u64,
    /// Why the rest could not be read.
    pub damage: Option<String>,
}

/// The counts of an end, with their names.
fn counts(end: &mut CaptureEnd) -> [(&'static str, &mut u64); 10] {
    let coverage = &mut end.coverage;
    [
        ("statements", &mut coverage.statements),
        ("unseen", &mut coverage.unseen),
        ("packets", &mut coverage.packets),
        ("packets_dropped", &mut coverage.packets_dropped),
        ("statements_lost", &mut coverage.commands_lost),
        ("events_lost", &mut coverage.events_lost),
        ("bytes_missing", &mut coverage.bytes_missing),
        ("connections_encrypted", &mut coverage.connections_encrypted),
        ("undecodable", &mut coverage.undecodable),
        ("connections_refused", &mut end.refused),
    ]
}

impl FileFacts {
    /// Returns them as pairs.
    pub(super) fn pairs(&self) -> Vec<KeyValue> {
        let pair = |name: &str, value: String| KeyValue::new(format!("{OURS}{name}"), value);
        let mut all = vec![
            pair("format", FORMAT.to_owned()),
            pair("capture", self.capture.clone()),
            pair("file", self.number.to_string()),
            pair("redacted", self.is_redacted.to_string()),
            pair("source", self.source.name().to_owned()),
        ];
        let Some(mut end) = self.end.clone() else {
            return all;
        };
        for (name, count) in counts(&mut end) {
            all.push(pair(name, count.to_string()));
        }
        all.push(pair("cut", end.is_cut.to_string()));
        all.extend(end.damage.map(|damage| pair("damage", damage)));
        all.push(pair("end", "true".to_owned()));
        all
    }

    /// Reads them; `None` where the file is not of this format.
    pub(super) fn of(pairs: &[KeyValue]) -> Option<Self> {
        let value = |name: &str| {
            let is_it = |pair: &&KeyValue| pair.key.strip_prefix(OURS) == Some(name);
            pairs.iter().find(is_it)?.value.clone()
        };
        let is_true = |name: &str| value(name).as_deref() == Some("true");
        (value("format")? == FORMAT).then_some(())?;
        let mut end = CaptureEnd {
            is_cut: is_true("cut"),
            damage: value("damage"),
            ..CaptureEnd::default()
        };
        for (name, count) in counts(&mut end) {
            *count = value(name).and_then(|it| it.parse().ok()).unwrap_or(0);
        }
        Some(Self {
            capture: value("capture")?,
            number: value("file")?.parse().ok()?,
            is_redacted: is_true("redacted"),
            source: SourceKind::named(&value("source")?)?,
            end: is_true("end").then_some(end),
        })
    }
}
