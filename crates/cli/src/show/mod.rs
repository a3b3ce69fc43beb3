//! What is seen: answers on standard output, talk on standard error.

pub mod answers;
mod face;
mod failure;
mod log;
mod obeyed;
mod progress;
mod statements;
mod stream;
mod table;
mod terminal;
mod usage;

pub use answers::Answer;
pub use face::Face;
pub use statements::{Form, Statements};
pub use stream::Stream;
pub use table::{Align, Table};
pub use terminal::{Terminal, plain_line};
pub use usage::usage;
