//! A point in time: which generation to begin with, and which archived transactions to apply to it.
//!
//! ```text
//! find (generation, history, cut) ─► restore ─► replay (the server applies them) ─► the directory appears
//! ```
//!
//! The server's own applier does the work: archived events become its relay logs, byte for byte, and
//! the last one ends where the point is.

mod base;
mod find;
pub(crate) mod log;
mod look;
mod meaning;
mod reached;
mod replay;
mod report;
mod transaction;
mod two_places;
mod typed;
mod unmade;
mod walk;
mod way;

pub use find::{PointPlan, find};
pub use replay::Replay;
pub(crate) use replay::{Means, ReplayDirectories, means, replay};
pub use report::{PointReport, Seam};
pub use transaction::Transaction;
pub use two_places::{TimesGoBack, TwoPlaces};
pub use typed::Point;
pub use unmade::{Unmade, Why};
