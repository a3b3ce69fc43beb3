//! Any SQL file, statement by statement, into a server: in parallel where order cannot matter.

pub mod split;
