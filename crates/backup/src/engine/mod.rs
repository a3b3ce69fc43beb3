//! The server's own hot-copy tool: found, matched with the server, run, and asked to prepare what it
//! once copied.

mod option_file;
mod prepare;
mod process;
mod recorded;
mod tool;

pub use tool::{Tool, Wanted};

pub(crate) use option_file::OptionFile;
pub(crate) use prepare::{Copied, prepare, reach};
pub(crate) use process::{Output, Reported, Ticks, run};

/// What `snapshot` begins with in the facts of a generation that a tool has copied.
const SNAPSHOT: &str = "engine/";

/// Returns the name of the tool that copied a generation, from its facts' `snapshot`; `None` when it
/// was made in another way.
#[must_use]
pub fn tool_of(snapshot: &str) -> Option<&str> {
    snapshot.strip_prefix(SNAPSHOT)
}

/// Returns what `snapshot` is for a generation that this tool copied.
#[must_use]
pub fn snapshot_of(tool: &str) -> String {
    format!("{SNAPSHOT}{tool}")
}
