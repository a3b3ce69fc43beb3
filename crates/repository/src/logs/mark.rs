//! What was forgotten of a history: the object `forgotten` in its folder. It comes before anything is
//! removed, so whoever finds less than was written knows whether that was meant.

use super::header::Place;
use super::{Logs, index};
use crate::crypt::{Access, RunKeys};
use crate::fault::damaged;
use crate::ids::{Digest, RepositoryId};
use crate::sealed;
use crate::store::Existing;
use evenkeel_op::{Context, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// The object, and the title of the document.
pub(crate) const FORGOTTEN: &str = "forgotten";
/// The object while it is written.
pub(super) const UNFINISHED_MARK: &str = "forgotten.tmp";
const PROOF: &str = "evenkeel forgotten logs v1";

/// ```text
/// evenkeel forgotten 1                 2 in an encrypted repository
/// { repository, source, timeline, before, epoch, proof }
/// blake3 …
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    repository: RepositoryId,
    source: String,
    timeline: String,
    /// Everything before this was forgotten; everything there is where it says nothing.
    before: Option<Place>,
    /// In an encrypted repository: whose metadata key made the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<u32>,
    /// What only that key can make of the document without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Digest>,
}

impl Body {
    fn unproven(&self) -> Result<Vec<u8>> {
        let mut clear = self.clone();
        clear.proof = None;
        serde_json::to_vec(&clear).context(|| "failed to render a mark")
    }
}

/// What is known to be forgotten of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Forgotten {
    /// Everything before this place.
    Before(Place),
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

/// Writes the mark of a history; it replaces an earlier one.
pub(super) fn write(
    logs: &Logs,
    keys: Option<&RunKeys>,
    (source, timeline): (&str, &str),
    before: Option<&Place>,
) -> Result<()> {
    let mut body = Body {
        repository: logs.repository,
        source: source.to_owned(),
        timeline: timeline.to_owned(),
        before: before.cloned(),
        epoch: keys.map(|keys| keys.epoch),
        proof: None,
    };
    let mut version = sealed::VERSION_PLAIN;
    if let Some(keys) = keys {
        version = sealed::VERSION;
        body.proof = Some(keys.metadata.mac(PROOF, &body.unproven()?));
    }
    let bytes = sealed::seal_as(version, FORGOTTEN, &body)?;
    let name = name(source, timeline);
    sealed::write_object(&*logs.store, &name, &bytes, Existing::Replace)
}

/// Reads the mark of a history. Without any key of an encrypted repository nobody vouches for it.
pub(super) fn read(logs: &Logs, source: &str, timeline: &str) -> Result<Forgotten> {
    let name = name(source, timeline);
    let bytes = sealed::read_object(&*logs.store, &name)?;
    let body: Body = sealed::unseal(FORGOTTEN, &name, &bytes)?;
    let ours = (logs.repository, source, timeline);
    if (
        body.repository,
        body.source.as_str(),
        body.timeline.as_str(),
    ) != ours
    {
        return Err(damaged(&name, "it is another history's"));
    }
    if logs.keys.is_encrypted() && logs.keys.access() > Access::Locked {
        let forged = || damaged(&name, "it was not written by anyone who has the keys");
        let (Some(epoch), Some(proof)) = (body.epoch, &body.proof) else {
            return Err(forged());
        };
        let key = logs.keys.metadata(epoch)?;
        if !key.is_mac(PROOF, &body.unproven()?, proof) {
            return Err(forged());
        }
    }
    Ok(match body.before {
        Some(place) => Forgotten::Before(place),
        None => Forgotten::All,
    })
}

/// Whether an error says that there is no such mark, or that it is damaged.
pub(super) fn is_damage(error: &evenkeel_op::Error) -> bool {
    error.kind() == ErrorKind::Differs
}
