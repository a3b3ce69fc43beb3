//! What is noted of a timeline, in its folder: sealed, bound to its place, and in an encrypted
//! repository proven by a key, so that nobody else can have written it.

use super::handle::Logs;
use crate::crypt::{Access, RunKeys};
use crate::fault::damaged;
use crate::ids::{Digest, RepositoryId};
use crate::sealed;
use evenkeel_op::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind of document.
pub(super) struct DocumentKind {
    /// The document's title.
    pub(super) title: &'static str,
    /// What its proof is for, so that one of another kind does not serve.
    pub(super) proof: &'static str,
}

/// ```text
/// evenkeel TITLE 1                     2 in an encrypted repository
/// { repository, source, timeline, CONTENT …, epoch, proof }
/// blake3 …
/// ```
#[derive(Clone, Serialize, Deserialize)]
struct Body<C> {
    repository: RepositoryId,
    source: String,
    timeline: String,
    #[serde(flatten)]
    content: C,
    /// In an encrypted repository: whose metadata key made the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<u32>,
    /// What only that key can make of the document without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Digest>,
}

impl<C: Serialize + Clone> Body<C> {
    fn unproven(&self) -> Result<Vec<u8>> {
        let mut clear = self.clone();
        clear.proof = None;
        serde_json::to_vec(&clear).context(|| "failed to render a document")
    }
}

impl DocumentKind {
    /// Returns the bytes of a document about a timeline.
    pub(super) fn seal<C: Serialize + Clone>(
        &self,
        logs: &Logs,
        keys: Option<&RunKeys>,
        (source, timeline): (&str, &str),
        content: C,
    ) -> Result<Vec<u8>> {
        let mut body = Body {
            repository: logs.repository,
            source: source.to_owned(),
            timeline: timeline.to_owned(),
            content,
            epoch: keys.map(|keys| keys.epoch),
            proof: None,
        };
        let mut version = sealed::VERSION_PLAIN;
        if let Some(keys) = keys {
            version = sealed::VERSION;
            body.proof = Some(keys.metadata.mac(self.proof, &body.unproven()?));
        }
        sealed::seal_as(version, self.title, &body)
    }

    /// Reads a document about a timeline. Without any key of an encrypted repository nobody vouches
    /// for it.
    pub(super) fn read<C: Serialize + DeserializeOwned + Clone>(
        &self,
        logs: &Logs,
        (source, timeline): (&str, &str),
        name: &str,
    ) -> Result<C> {
        let bytes = sealed::read_object(&*logs.store, name)?;
        let body: Body<C> = sealed::unseal(self.title, name, &bytes)?;
        let says = (
            body.repository,
            body.source.as_str(),
            body.timeline.as_str(),
        );
        if says != (logs.repository, source, timeline) {
            return Err(damaged(name, "it belongs to another timeline"));
        }
        if logs.keys.is_encrypted() && logs.keys.access() > Access::Locked {
            let forged = || damaged(name, "its author did not have the keys");
            let (Some(epoch), Some(proof)) = (body.epoch, &body.proof) else {
                return Err(forged());
            };
            let key = logs.keys.metadata(epoch)?;
            if !key.is_mac(self.proof, &body.unproven()?, proof) {
                return Err(forged());
            }
        }
        Ok(body.content)
    }
}
