//! Dump, load and import: a server's contents as statements and rows.

pub mod dump;
pub mod import;
pub mod load;
pub mod objects;
