//! Exit codes of the `evenkeel` binary: a public contract, published in the book.

/// Everything asked for was done.
pub const DONE: u8 = 0;
/// The operation failed; nothing half-done is left behind.
pub const FAILED: u8 = 1;
/// The command line or a setting makes no sense.
pub const USAGE: u8 = 2;
/// Part of the work was done; the output names what was not.
pub const PARTIAL: u8 = 3;
/// A check ran to its end and found something different, damaged or down.
pub const DIFFERS: u8 = 4;
/// There is no repository at that place.
pub const NO_REPOSITORY: u8 = 10;
/// Another run holds the lock.
pub const BUSY: u8 = 11;
/// The key or passphrase does not open the repository.
pub const WRONG_KEY: u8 = 12;
/// The server cannot be reached.
pub const UNREACHABLE: u8 = 13;
/// The server refuses: a privilege, version or setting is in the way.
pub const REFUSED: u8 = 14;
/// Gave up waiting for a lock rather than block the application's queries.
pub const LOCK_TIMEOUT: u8 = 15;
/// Interrupted by SIGINT, cleaned up.
pub const INTERRUPTED: u8 = 130;
/// Terminated by SIGTERM, cleaned up.
pub const TERMINATED: u8 = 143;
