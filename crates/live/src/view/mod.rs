//! What is seen of servers, as lines of text. Nothing here writes them.

mod line;
mod number;

pub use line::Lines;
pub use number::number;
