//! Progress: bars on a terminal, else a line at phase changes and every thirty seconds.

mod bars;
mod lines;
mod told;

pub(super) use bars::Bars;
pub(super) use lines::Lines;
pub(super) use told::Told;
