//! What a restore to a point answers.

use super::transaction::Transaction;
use super::two_places::TwoPlaces;
use super::unmade::Unmade;
use crate::archive::LogPosition;
use serde::Serialize;

/// Where a restore to a point came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PointReport {
    /// The generation's own place, from which on transactions were applied.
    pub from: LogPosition,
    /// The place that was reached.
    pub to: LogPosition,
    /// Transactions applied.
    pub transactions: u64,
    /// The last one applied; none when the generation was at the point already.
    pub last_applied: Option<Transaction>,
    /// The first one that was not applied; none when the archive ends there.
    pub first_not_applied: Option<Transaction>,
    /// Where the archive continued with other servers' logs, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seams: Vec<Seam>,
    /// That the time means two places, and which one this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_places: Option<TwoPlaces>,
    /// Statements of which nothing, or something else, was made here; the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmade: Vec<Unmade>,
}

/// Where the log of one server continues from that of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seam {
    /// The server that was before.
    pub from: String,
    /// Up to where its log was applied.
    pub after: LogPosition,
    /// The server whose log was applied then; places behind that are in its log.
    pub to: String,
}
