//! What was forgotten of a timeline: the object `forgotten` in its folder. It comes before anything is
//! removed, so whoever finds less than was written knows whether that was meant.

use super::document::DocumentKind;
use super::handle::Logs;
use super::header::LogPosition;
use super::index;
use crate::crypt::RunKeys;
use crate::sealed;
use crate::store::Existing;
use evenkeel_op::{ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// The object, and the title of the document.
pub(crate) const FORGOTTEN: &str = "forgotten";
/// The object while it is written.
pub(super) const UNFINISHED_MARK: &str = "forgotten.tmp";
const DOCUMENT: DocumentKind = DocumentKind {
    title: FORGOTTEN,
    proof: "evenkeel forgotten logs v1",
};

/// As it stands in the document.
#[derive(Clone, Serialize, Deserialize)]
struct Content {
    /// Everything before this was forgotten; everything there is where it says nothing.
    before: Option<LogPosition>,
}

/// What is known to be forgotten of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Forgotten {
    /// Everything before this place.
    Before(LogPosition),
    /// Everything.
    All,
}

impl Forgotten {
    /// Whether a segment of `file` is forgotten.
    pub(super) fn holds(&self, file: &str) -> bool {
        match self {
            Self::All => true,
            Self::Before(place) => {
                evenkeel_binlog::number_of(file) < evenkeel_binlog::number_of(&place.file)
            }
        }
    }
}

fn name(source: &str, timeline: &str) -> String {
    format!("{}/{FORGOTTEN}", index::folder(source, timeline))
}

/// Writes the mark of a timeline; it replaces an earlier one.
pub(super) fn write(
    logs: &Logs,
    keys: Option<&RunKeys>,
    (source, timeline): (&str, &str),
    before: Option<&LogPosition>,
) -> Result<()> {
    let content = Content {
        before: before.cloned(),
    };
    let bytes = DOCUMENT.seal(logs, keys, (source, timeline), content)?;
    let name = name(source, timeline);
    sealed::write_object(&*logs.store, &name, &bytes, Existing::Replace)
}

/// Reads the mark of a timeline.
pub(super) fn read(logs: &Logs, source: &str, timeline: &str) -> Result<Forgotten> {
    let name = name(source, timeline);
    let content: Content = DOCUMENT.read(logs, (source, timeline), &name)?;
    Ok(match content.before {
        Some(place) => Forgotten::Before(place),
        None => Forgotten::All,
    })
}

/// Whether an error says that there is no such mark, or that it is damaged.
pub(super) fn is_damage(error: &evenkeel_op::Error) -> bool {
    error.kind() == ErrorKind::Differs
}
