//! Captured statements run again: on another version, with other settings, on other hardware.
//!
//! Each session that was captured is a session again, and its statements keep their order. Across sessions, who had
//! seen another's commit sees it again.
//!
//! | file | what |
//! |---|---|
//! | `access` | what a statement does, and to which tables |
//! | `only_reads` | whether it changes no data, in any mode |
//! | `known` | both, for all statements of one shape |
//! | `returns` | whether it should return the same rows again |
//! | `sorted` | statements in the order in which they took effect |
//! | `order` | who waits for whom |
//! | `step`, `spool` | what a session does next, and the file in which all of it lies |
//! | `plan` | statements → steps |
//! | `gate` | waiting for other sessions |
//! | `play` | steps → a server |
//! | `tally` | what came out, and how it differs |
//! | `page` | the same as a page with plots |
//! | `rounds` | again and again, on one server or two |

mod access;
mod gate;
mod known;
mod only_reads;
mod order;
mod page;
mod plan;
mod play;
mod returns;
pub mod rounds;
mod sorted;
mod spool;
mod step;
mod tally;

pub use access::Left;
pub(crate) use only_reads::is_query;
pub use page::{came_to, factor, page, times};
pub use plan::{Choice, Plan, Planner};
pub use play::{Options, Speed, play};
pub use tally::{DIFFERENCES, Difference, Differences, Example, Incomparable, Outcome};
