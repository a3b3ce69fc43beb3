//! Whether a dump that is loaded is what was dumped, cell by cell and attribute by attribute, as a client that
//! shares nothing with the dump reads it.
//!
//! | file | what |
//! |---|---|
//! | `limits` | what one server holds and another does not |
//! | `columns` | a column of every type, and values for it |
//! | `drawn` | a schema that chance has drawn for two servers |
//! | `reader` | what a client reads of it |
//! | `attributes` | what of a definition servers tell alike |

pub mod attributes;
mod columns;
pub mod drawn;
pub mod limits;
pub mod reader;

pub use drawn::Drawn;
pub use limits::{LIMITS, Limit, Only};
pub use reader::{Reading, client};
