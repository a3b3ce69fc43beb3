//! SQL text as MySQL and MariaDB read it, for all who have to tell code from strings and comments.
//!
//! Nothing is copied or allocated, and any bytes are survived. Three layers, each on the one before:
//!
//! * [`Inside`], [`comment_at`]: where a string, a name or a comment begins and ends; what comes in pieces
//!   is looked at piece by piece.
//! * [`Tokens`]: a text's tokens, every byte in one of them. [`code`] is the same without blanks and comments.
//! * [`Lexemes`]: tokens that a parser reads as one: numbers with their point and sign, strings with their
//!   character set, variables, signs of several characters.
//!
//! Executed comments (`/*!50100 … */`, `/*M!100100 … */`) are read, whatever their version: which server would
//! execute them is not known here.

mod lexeme;
mod mode;
mod span;
mod token;
mod unquoted;
mod wide;

pub use lexeme::{Lexeme, Lexemes};
pub use mode::Mode;
pub use span::{Comment, Inside, Passed, comment_at, gate_at};
pub use token::{Code, Token, TokenKind, Tokens, code};
pub use unquoted::unquoted;
pub use wide::Wide;

/// Returns whether a byte may stand in a name without quotes.
#[must_use]
pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Returns whether a byte is white space.
#[must_use]
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
