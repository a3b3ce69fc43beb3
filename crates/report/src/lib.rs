//! Facts and samples as plots and pages.

pub mod plot;

pub use plot::{Axis, Plot, Point, Scale, Series};
