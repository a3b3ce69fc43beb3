//! Keeps N sessions busy and times what they do.
//!
//! A [`Drive`] runs one thread per [`Work`]; each calls [`Work::once`] again and again until it is
//! stopped. Counters and latency histograms can be read at any moment, so that whoever watches sees
//! throughput before, during and after an event. [`run`] is a whole run by a [`Plan`].
//!
//! | file | what |
//! |---|---|
//! | `work` | what a session does, and how a unit of it ended |
//! | `pace` | when the next unit begins |
//! | `tally` | what was done, by kind of unit, with latencies |
//! | `drive` | sessions at work |
//! | `run` | ramp-up, then a measured time cut into intervals |
//! | `sample` | throughput over an interval, latency over all of it |

mod drive;
mod pace;
mod run;
mod sample;
mod tally;
mod work;

pub use drive::{Drive, Mark, Totals};
pub use pace::Pace;
pub use run::{Ended, Plan, Run, Sample, run};
pub use sample::{Interval, Latency};
pub use tally::{KindTally, Tally};
pub use work::{Outcome, Revival, Unit, Work};
