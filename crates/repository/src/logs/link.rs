//! Which timeline continues from which, after another server took over: objects `follows-1`,
//! `follows-2` … in the folder of the one that continues. Each is written once, by the archiver that
//! had the server's word for it.

use super::document::DocumentKind;
use super::handle::{LogWriter, Logs};
use super::header::LogPosition;
use super::index;
use crate::heal::list;
use crate::sealed;
use crate::store::Existing;
use evenkeel_op::Result;
use serde::{Deserialize, Serialize};

/// The title of the document, and what its object's name begins with.
const FOLLOWS: &str = "follows";
const DOCUMENT: DocumentKind = DocumentKind {
    title: FOLLOWS,
    proof: "evenkeel history follows v1",
};

/// From where a timeline continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The server that was before.
    pub source: String,
    /// The timeline of its log.
    pub timeline: String,
    /// Up to here, that timeline counts.
    pub after: LogPosition,
    /// Which transactions were executed up to there, as the server writes it.
    pub gtids: String,
    /// The file of the timeline that continues, from whose beginning on there is every transaction
    /// that is not among those.
    pub file: String,
}

/// As it stands in the document.
#[derive(Clone, Serialize, Deserialize)]
struct Content {
    link: Link,
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
    /// Notes from where a timeline continues; its folder is there. Does nothing if that is noted.
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
        let content = Content { link: link.clone() };
        let bytes = DOCUMENT.seal(logs, self.keys.as_ref(), (source, timeline), content)?;
        let name = format!("{folder}/{}", object(last + 1));
        sealed::write_object(&*logs.store, &name, &bytes, Existing::Refuse)
    }
}

/// Reads a link of a timeline.
pub(super) fn read(logs: &Logs, (source, timeline): (&str, &str), number: u32) -> Result<Link> {
    let name = format!("{}/{}", index::folder(source, timeline), object(number));
    let content: Content = DOCUMENT.read(logs, (source, timeline), &name)?;
    Ok(content.link)
}
