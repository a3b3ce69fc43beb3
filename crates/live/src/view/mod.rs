//! What is seen of servers, as lines of text. Nothing here writes them.

mod board;
mod line;
mod number;

pub use board::{Board, Key, Line, Sort, Style, plain_frame};
pub use line::Lines;
pub use number::number;
