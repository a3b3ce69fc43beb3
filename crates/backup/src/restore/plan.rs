//! What is known before anything is written.

use super::staging::Staging;
use crate::engine::Tool;
use crate::facts::Facts;
use crate::point::Means;
use evenkeel_repository::{FileMeta, Reader};
use std::collections::BTreeMap;

/// Where everything will go: made before anything is written.
pub(super) struct Plan {
    pub(super) reader: Reader,
    pub(super) facts: Facts,
    pub(super) roots: BTreeMap<String, Staging>,
    /// What the roots were themselves.
    pub(super) tops: BTreeMap<String, FileMeta>,
    /// Prepares what it once copied.
    pub(super) tool: Option<Tool>,
    /// With what, and as whom, archived transactions are applied.
    pub(super) means: Option<Means>,
}
