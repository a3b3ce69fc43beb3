//! Facts and samples as plots and pages.
//!
//! | module | what |
//! |---|---|
//! | `plot` | lines over a plane, with events marked on it |
//! | `bars` | bars side by side, with their spread |
//! | `compare` | whether a difference between two lots of runs is more than chance |
//! | `page` | one self-contained HTML page: sentences, tables, pictures with the numbers behind them |
//!
//! Data in, text out: nothing here asks the machine, the clock or a server.

pub mod bars;
mod canvas;
pub mod compare;
pub mod page;
pub mod plot;
mod scale;

pub use bars::{Bar, BarSeries, Bars, median};
pub use page::{About, Cell, Fact, Figure, Page, PageTable, Part};
pub use plot::{Axis, Event, Plot, Point, Scale, Series};
