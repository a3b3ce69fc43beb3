//! Progress: bars on a terminal, else a line at phase changes and every thirty seconds.

mod bars;
mod lines;

pub(super) use bars::Bars;
pub(super) use lines::Lines;
