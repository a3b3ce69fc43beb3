//! What helps a server's files between a crash and the next query.

pub mod baseline;
pub mod check;
pub mod prewarm;
