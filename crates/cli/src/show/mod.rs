//! What is seen: answers on standard output, talk on standard error.

pub mod answers;
mod failure;
mod log;
mod obeyed;
mod progress;
mod statements;
mod stream;
mod table;
mod terminal;
mod ui;
mod usage;

pub use answers::Answer;
pub use statements::{Form, Statements};
pub use stream::Stream;
pub use table::{Align, TextTable};
pub use terminal::{Terminal, plain_line};
pub use ui::Ui;
pub use usage::usage;
