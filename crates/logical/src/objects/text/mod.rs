//! Statements as the server prints them: read just far enough to change them safely.

mod definer;
mod event;
mod options;
mod rename;
mod table;
mod token;
mod view;

pub use definer::{Account, Definer};
pub(super) use table::in_dialect;
pub use table::{SplitTable, split_table};

pub(super) use definer::with_definer;
pub(super) use event::event_parts;
pub(super) use options::without_directories;
pub(super) use rename::{About, Doubt, Names, renamed};
pub(crate) use token::{Token, TokenKind, all_tokens, name_of, name_under, tokens, tokens_under};
pub(super) use view::{mentions, or_replace};
