//! What clients ask for, by the numbers of the protocol.

/// A command's number that is none: the answer to something that was not seen.
pub const UNSEEN: u8 = 0x00;
/// The session ends.
pub const QUIT: u8 = 0x01;
/// The default schema changes.
pub const INIT_DB: u8 = 0x02;
/// A statement as text.
pub const QUERY: u8 = 0x03;
pub(super) const FIELD_LIST: u8 = 0x04;
pub(super) const STATISTICS: u8 = 0x09;
pub(super) const PROCESS_INFO: u8 = 0x0a;
/// A session begins. The number is the one that servers log it with; on the wire it is never sent.
pub const CONNECT: u8 = 0x0b;
/// Another account takes over the session.
pub const CHANGE_USER: u8 = 0x11;
/// A replica fetches binary logs: the connection has no more statements.
pub const BINLOG_DUMP: u8 = 0x12;
/// A statement is prepared.
pub const PREPARE: u8 = 0x16;
/// A prepared statement runs.
pub const EXECUTE: u8 = 0x17;
/// A value is sent ahead of the execution.
pub const SEND_LONG_DATA: u8 = 0x18;
/// A prepared statement is forgotten.
pub const CLOSE: u8 = 0x19;
pub(super) const RESET_STATEMENT: u8 = 0x1a;
/// More rows of a cursor.
pub const FETCH: u8 = 0x1c;
/// A replica fetches binary logs by GTID.
pub const BINLOG_DUMP_GTID: u8 = 0x1e;
/// The session is as new.
pub const RESET_CONNECTION: u8 = 0x1f;
/// A prepared statement runs for many rows of values: MariaDB's.
pub const BULK_EXECUTE: u8 = 0xfa;

/// Returns what servers call a command in their general logs; `None` for numbers that no server has.
#[must_use]
pub fn name(command: u8) -> Option<&'static str> {
    Some(match command {
        QUIT => "Quit",
        INIT_DB => "Init DB",
        QUERY => "Query",
        FIELD_LIST => "Field List",
        0x05 => "Create DB",
        0x06 => "Drop DB",
        0x07 => "Refresh",
        0x08 => "Shutdown",
        STATISTICS => "Statistics",
        PROCESS_INFO => "Processlist",
        CONNECT => "Connect",
        0x0c => "Kill",
        0x0d => "Debug",
        0x0e => "Ping",
        CHANGE_USER => "Change user",
        BINLOG_DUMP => "Binlog Dump",
        0x13 => "Table Dump",
        0x14 => "Connect Out",
        0x15 => "Register Slave",
        PREPARE => "Prepare",
        EXECUTE => "Execute",
        SEND_LONG_DATA => "Long Data",
        CLOSE => "Close stmt",
        RESET_STATEMENT => "Reset stmt",
        0x1b => "Set option",
        FETCH => "Fetch",
        0x1d => "Daemon",
        BINLOG_DUMP_GTID => "Binlog Dump GTID",
        RESET_CONNECTION => "Reset connection",
        0x20 => "Clone",
        BULK_EXECUTE => "Bulk execute",
        _ => return None,
    })
}

/// Returns whether the server answers nothing.
pub(super) fn is_mute(command: u8) -> bool {
    matches!(command, QUIT | CLOSE | SEND_LONG_DATA)
}

/// Returns whether a client's bytes may be the beginning of a command: so a connection is joined that was not
/// seen from its beginning.
pub(super) fn looks_like_one(bytes: &[u8]) -> bool {
    let Some((header, rest)) = bytes.split_first_chunk::<5>() else {
        return false;
    };
    let [low, middle, high, sequence, command] = *header;
    let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
    if sequence != 0 || length == 0 || name(command).is_none() || command == CONNECT {
        return false;
    }
    // What follows in the same segment, and commands of a fixed length.
    let fixed = match command {
        QUIT | STATISTICS | PROCESS_INFO | 0x0e | RESET_CONNECTION => Some(1),
        CLOSE | RESET_STATEMENT | 0x0c => Some(5),
        FETCH => Some(9),
        _ => None,
    };
    let is_text = !matches!(command, QUERY | PREPARE)
        || rest
            .first()
            .is_none_or(|b| *b != 0 || rest.get(1) == Some(&1));
    fixed.is_none_or(|fixed| fixed == length) && is_text
}
