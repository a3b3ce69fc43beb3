//! Which history goes on from which, after another server took over: objects `follows-1`, `follows-2`
//! … in the folder of the one that goes on. Each is written once, by the archiver that had the server's
//! word for it.

use super::header::Place;
use super::{LogWriter, Logs, index};
use crate::crypt::Access;
use crate::fault::damaged;
use crate::heal::list;
use crate::ids::{Digest, RepositoryId};
use crate::sealed;
use crate::store::Existing;
use evenkeel_op::{Context, Result};
use serde::{Deserialize, Serialize};

/// The title of the document, and what its object's name begins with.
const FOLLOWS: &str = "follows";
const PROOF: &str = "evenkeel history follows v1";

/// From where a history goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The server that was before.
    pub source: String,
    /// The history of its log.
    pub timeline: String,
    /// Up to here, that history counts.
    pub after: Place,
    /// Which transactions were executed up to there, as the server writes it.
    pub gtids: String,
    /// The file of the history that goes on, from whose beginning on there is every transaction that
    /// is not among those.
    pub file: String,
}

/// ```text
/// evenkeel follows 1                   2 in an encrypted repository
/// { repository, source, timeline, link { source, timeline, after, gtids, file }, epoch, proof }
/// blake3 …
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    repository: RepositoryId,
    source: String,
    timeline: String,
    link: Link,
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
        serde_json::to_vec(&clear).context(|| "failed to render a link")
    }
}

/// Returns the number of a link by its object's name; `None` if it is none's.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(FOLLOWS)?.strip_prefix('-')?;
    let number = digits.parse().ok()?;
    (object(number) == name).then_some(number)
}

fn object(number: u32) -> String {
    format!("{FOLLOWS}-{number}")
}

impl LogWriter {
    /// Notes from where a history goes on; its folder is there. Does nothing if that is noted.
    pub fn follow(&self, (source, timeline): (&str, &str), link: &Link) -> Result<()> {
        let logs = &self.logs;
        let folder = index::folder(source, timeline);
        let mut last = 0;
        for one in list(&*logs.store, &folder)? {
            let Some(number) = number_of(&one.name) else {
                continue;
            };
            if read(logs, (source, timeline), number)? == *link {
                return Ok(());
            }
            last = number.max(last);
        }
        let mut body = Body {
            repository: logs.repository,
            source: source.to_owned(),
            timeline: timeline.to_owned(),
            link: link.clone(),
            epoch: self.keys.as_ref().map(|keys| keys.epoch),
            proof: None,
        };
        let mut version = sealed::VERSION_PLAIN;
        if let Some(keys) = &self.keys {
            version = sealed::VERSION;
            body.proof = Some(keys.metadata.mac(PROOF, &body.unproven()?));
        }
        let bytes = sealed::seal_as(version, FOLLOWS, &body)?;
        let name = format!("{folder}/{}", object(last + 1));
        sealed::write_object(&*logs.store, &name, &bytes, Existing::Refuse)
    }
}

/// Reads a link of a history. Without any key of an encrypted repository nobody vouches for it.
pub(super) fn read(logs: &Logs, (source, timeline): (&str, &str), number: u32) -> Result<Link> {
    let name = format!("{}/{}", index::folder(source, timeline), object(number));
    let bytes = sealed::read_object(&*logs.store, &name)?;
    let body: Body = sealed::unseal(FOLLOWS, &name, &bytes)?;
    if (
        body.repository,
        body.source.as_str(),
        body.timeline.as_str(),
    ) != (logs.repository, source, timeline)
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
    Ok(body.link)
}
