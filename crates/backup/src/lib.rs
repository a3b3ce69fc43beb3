//! Backs up, restores and proves a MySQL or MariaDB data directory.
//!
//! ```text
//! backup:  survey ─► freeze (lock, snapshot, unlock) ─► read (only what changed) ─► commit
//! archive: ask ─► attach ─► receive (a server's binary logs, as they are written)
//! restore: plan ─► apply (each block once, in parallel) ─► place (the directory appears whole)
//! mount:   lay out (names) ─► show ─► serve (content, where it is asked for) ─► end
//! verify:  read (restore's own code) ─► boot (a server starts on it, tables are checked)
//! ```

pub mod archive;
pub mod backup;
pub mod clone;
pub mod engine;
pub mod facts;
pub mod left_out;
pub mod mount;
pub mod point;
pub mod report;
pub mod restore;
pub mod tables;
mod throwaway;
pub mod verify;

/// Returns how many threads read and compress when nobody says: one per core.
pub(crate) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}
