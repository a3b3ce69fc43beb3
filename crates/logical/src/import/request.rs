//! How to import, and what is said of what fails on the way.

use std::time::Duration;

/// How to import.
#[derive(Debug, Clone)]
pub struct Request {
    /// How many connections take rows at once; at least 1.
    pub threads: usize,
    /// The default database at the file's beginning.
    pub database: Option<String>,
    /// Make secondary indexes and foreign keys of new tables once their rows are there.
    pub indexes_after: bool,
    /// Leave out what begins before this line, except settings of the session; 0 or 1 for none.
    pub from_line: u64,
    /// Of these tables (`database.table`, or `all` for those not named), rows on lines before this
    /// are there already.
    pub done: Vec<(String, u64)>,
    /// Run the files that the file names.
    pub source: bool,
    /// Continue after statements that the server refuses, and commands that are not obeyed.
    pub force: bool,
    /// Leave comments out of what is stored.
    pub skip_comments: bool,
    /// Zero bytes and `\r\n` are what they are, and of the clients' commands only DELIMITER is obeyed.
    pub binary_mode: bool,
    /// How often to say which line all is in up to.
    pub tell_every: Duration,
}

/// A statement, or a command of the clients, that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStatement {
    /// The file that it is in.
    pub file: String,
    /// Its line there, from 1.
    pub line: u64,
    /// The character of the line with which it begins, from 1; 0 where it is not known.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}
