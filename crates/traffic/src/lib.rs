//! Statements that clients send to a server: where they are seen (`capture`), how they are kept (`kept`), what they sum up to (`digest`), and
//! how they run again on another server (`replay`).
//!
//! Every source hands out the same [`Statement`]s and ends with the same [`Coverage`].

pub mod capture;
pub mod digest;
mod error_name;
mod filter;
pub mod history;
pub mod kept;
pub mod replay;
pub mod source;
mod source_kind;
mod statement;

pub use error_name::named_error;
pub use filter::Filter;
pub use source_kind::SourceKind;
pub use statement::{Command, Coverage, Seen, Source, Statement};
