//! Where statements come from: logs, files of packets, and what a server remembers.

mod asked;
mod follow;
mod general_log;
mod input;
mod lines;
mod opened;
mod performance_schema;
mod session_clocks;
mod slow_log;
mod times;

pub use follow::{Following, Idle};
pub use general_log::GeneralLog;
pub use input::{Input, InputKind};
pub use opened::Opened;
pub use performance_schema::PerformanceSchema;
pub use slow_log::SlowLog;

use crate::Command;

/// How many places that could not be read are kept.
const UNREAD_MAX: usize = 10;

/// A place in a log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there.
    pub why: &'static str,
}

/// How many entries of a log have a time that is not that of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Untimed {
    /// Those that have a time that cannot be read: they count at another time that is known of them, or at that of the
    /// entry before.
    pub unreadable: u64,
    /// The line of the first of these.
    pub first_line: Option<u64>,
    /// Those that have the time of a session that set its clock: they count at the time of the entry before.
    pub own_clocks: u64,
}

/// Keeps the first places that could not be read.
fn keep(unread: &mut Vec<Unread>, line: u64, why: &'static str) {
    if unread.len() < UNREAD_MAX {
        unread.push(Unread { line, why });
    }
}

/// Whether a line is of those that a server writes when it opens a log.
fn is_banner(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let has = |what: &[u8]| memchr::memmem::find(line, what).is_some();
    opens_log(line)
        || line.to_ascii_lowercase().starts_with(b"tcp port: ")
        || (line.starts_with(b"Time ") || line.starts_with(b"Time\t"))
            && has(b"Id Command")
            && line.ends_with(b"Argument")
}

/// Whether a line is the first that a server writes when it opens a log.
fn opens_log(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b"started with:")
        && memchr::memmem::find(line, b", Version: ").is_some()
}

/// What the server's logs call the protocol's commands, with the numbers of these.
const COMMANDS: [(&str, Command); 32] = [
    ("Query", Command::Query),
    ("Prepare", Command::Prepare),
    ("Execute", Command::Execute),
    ("Connect", Command::Connect),
    ("Quit", Command::Quit),
    ("Sleep", Command::Other(0)),
    ("Init DB", Command::Other(2)),
    ("Field List", Command::Other(4)),
    ("Create DB", Command::Other(5)),
    ("Drop DB", Command::Other(6)),
    ("Refresh", Command::Other(7)),
    ("Shutdown", Command::Other(8)),
    ("Statistics", Command::Other(9)),
    ("Processlist", Command::Other(10)),
    ("Kill", Command::Other(12)),
    ("Debug", Command::Other(13)),
    ("Ping", Command::Other(14)),
    ("Time", Command::Other(15)),
    ("Delayed insert", Command::Other(16)),
    ("Change user", Command::Other(17)),
    ("Binlog Dump", Command::Other(18)),
    ("Table Dump", Command::Other(19)),
    ("Connect Out", Command::Other(20)),
    ("Register Slave", Command::Other(21)),
    ("Register Replica", Command::Other(21)),
    ("Long Data", Command::Other(24)),
    ("Close stmt", Command::Other(25)),
    ("Reset stmt", Command::Other(26)),
    ("Set option", Command::Other(27)),
    ("Fetch", Command::Other(28)),
    ("Binlog Dump GTID", Command::Other(30)),
    ("Reset Connection", Command::Other(31)),
];

/// Names of commands that have no number on the wire, or one that depends on the server.
const UNNUMBERED: [&str; 5] = [
    "Daemon",
    "Error",
    "Bulk_execute",
    "Clone",
    "Subscribe Group Replication Stream",
];

fn command(name: &[u8]) -> Option<Command> {
    let known = COMMANDS.iter().find(|(known, _)| known.as_bytes() == name);
    let unnumbered = || UNNUMBERED.iter().any(|known| known.as_bytes() == name);
    known
        .map(|(_, command)| *command)
        .or_else(|| unnumbered().then_some(Command::Other(u8::MAX)))
}
