//! Kinds of events, by the number that their header gives.

/// A statement.
pub const QUERY: u8 = 2;
/// A server that shut down ended the file.
pub const STOP: u8 = 3;
/// The next file's name.
pub const ROTATE: u8 = 4;
/// A value for `LAST_INSERT_ID()` or an automatic number, for the statement that follows.
pub const INTVAR: u8 = 5;
/// Seeds for `RAND()`, for the statement that follows.
pub const RAND: u8 = 13;
/// A user variable, for the statement that follows.
pub const USER_VAR: u8 = 14;
/// The format of the file: its first event.
pub const FORMAT_DESCRIPTION: u8 = 15;
/// A transaction's commit.
pub const XID: u8 = 16;
/// The first part of a file for `LOAD DATA`.
pub const BEGIN_LOAD_QUERY: u8 = 17;
/// `LOAD DATA` of the parts before.
pub const EXECUTE_LOAD_QUERY: u8 = 18;
/// Which table row events mean.
pub const TABLE_MAP: u8 = 19;
/// The server lost events.
pub const INCIDENT: u8 = 26;
/// Nothing happened for a while; only ever sent, never in a file.
pub const HEARTBEAT: u8 = 27;
/// MySQL: the statement behind rows.
pub const ROWS_QUERY: u8 = 29;
/// MySQL: a transaction's GTID.
pub const GTID: u8 = 33;
/// MySQL: a transaction without one.
pub const ANONYMOUS_GTID: u8 = 34;
/// MySQL: the GTIDs of all files before.
pub const PREVIOUS_GTIDS: u8 = 35;
/// `XA PREPARE`, which ends a group.
pub const XA_PREPARE: u8 = 38;
/// MySQL: a whole transaction, compressed.
pub const TRANSACTION_PAYLOAD: u8 = 40;
/// MySQL: as [`HEARTBEAT`], for files beyond 4 GiB.
pub const HEARTBEAT_V2: u8 = 41;
/// MySQL: a GTID with a tag.
pub const GTID_TAGGED: u8 = 42;
/// MariaDB: the statement behind rows.
pub const MARIADB_ANNOTATE_ROWS: u8 = 160;
/// MariaDB: up to which file crash recovery needs none.
pub const MARIADB_CHECKPOINT: u8 = 161;
/// MariaDB: a transaction's GTID, and its begin.
pub const MARIADB_GTID: u8 = 162;
/// MariaDB: the last GTIDs of all files before.
pub const MARIADB_GTID_LIST: u8 = 163;
/// MariaDB: what follows is encrypted.
pub const MARIADB_START_ENCRYPTION: u8 = 164;
/// MariaDB: a statement, compressed.
pub const MARIADB_QUERY_COMPRESSED: u8 = 165;
