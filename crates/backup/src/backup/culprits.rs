//! Names the table and index that corrupt pages belong to, and what would mend them.

use super::pages::Suspect;
use super::request::Source;
use crate::Run;
use crate::report::CorruptPage;

/// Turns suspects into reports.
pub(super) fn name(suspects: Vec<Suspect>, _source: &Source, _run: Run<'_>) -> Vec<CorruptPage> {
    suspects.into_iter().map(Suspect::report).collect()
}
