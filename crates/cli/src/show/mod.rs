//! What is seen: answers on standard output, talk on standard error.

pub mod answers;
mod face;
mod failure;
mod progress;
mod table;

pub use answers::Answer;
pub use face::Face;
pub use failure::usage;
pub use table::{Align, Table};
