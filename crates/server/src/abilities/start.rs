//! What a server reads through the page cache when it starts.
//!
//! Traced (`strace -f`) on 100 to 300 tables, after SIGKILL and after a shutdown:
//!
//! | server | of each `.ibd` after a crash | after a shutdown | InnoDB pages |
//! |---|---|---|---|
//! | MySQL 5.7.22 | 64 KiB in one read, one file after the other (`dict_check_tablespaces`) | nothing | page cache |
//! | MySQL 8.0.15 | four reads of 8 KiB to learn its id, then 64 KiB, one file after the other | the four reads | page cache |
//! | MariaDB 10.11.19 | 64 KiB of those only that the redo log names | nothing | `O_DIRECT` |
//!
//! The buffer pool is loaded by a thread of its own while clients are served.

use super::{Flavour, Version};

/// What servers read of a tablespace to check its header: the largest page there is.
const HEADER_BYTES: u64 = 64 << 10;
/// What MySQL 8.0 reads of a tablespace to learn its id.
const SCAN_BYTES: u64 = 32 << 10;

/// How a server reads its files at start, as far as warming the page cache can be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartReads {
    /// How many bytes from the beginning of each table's file it reads through the page cache, one
    /// file after the other, when it recovers from a crash; 0: it does not read them all.
    pub header_bytes_after_crash: u64,
    /// The same after a shutdown.
    pub header_bytes_after_shutdown: u64,
    /// Whether it reads InnoDB pages past the page cache when `innodb_flush_method` is not set.
    pub pages_direct_by_default: bool,
}

impl StartReads {
    /// Returns how a version reads. One that is not known is taken to read all that any does.
    #[must_use]
    pub fn of(server: Option<(Flavour, Version)>) -> Self {
        let (after_crash, after_shutdown) = match server {
            Some((Flavour::MariaDb, version)) if version >= Version::new(10, 6, 0) => (0, 0),
            Some((_, version)) if version < Version::new(8, 0, 0) => (HEADER_BYTES, 0),
            Some((Flavour::MariaDb, _)) => (HEADER_BYTES, 0),
            Some((Flavour::MySql, _)) | None => (HEADER_BYTES, SCAN_BYTES),
        };
        Self {
            header_bytes_after_crash: after_crash,
            header_bytes_after_shutdown: after_shutdown,
            pages_direct_by_default: match server {
                Some((Flavour::MariaDb, version)) => version >= Version::new(10, 6, 0),
                Some((Flavour::MySql, version)) => version >= Version::new(8, 4, 0),
                None => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_reads_as_it_was_seen_to() {
        let of = |flavour, major, minor| {
            let reads = StartReads::of(Some((flavour, Version::new(major, minor, 0))));
            (
                reads.header_bytes_after_crash,
                reads.header_bytes_after_shutdown,
                reads.pages_direct_by_default,
            )
        };
        assert_eq!(of(Flavour::MySql, 5, 7), (65536, 0, false));
        assert_eq!(of(Flavour::MySql, 8, 0), (65536, 32768, false));
        assert_eq!(of(Flavour::MySql, 9, 7), (65536, 32768, true));
        assert_eq!(of(Flavour::MariaDb, 10, 11), (0, 0, true));
        assert_eq!(of(Flavour::MariaDb, 10, 4), (65536, 0, false));
        assert_eq!(StartReads::of(None).header_bytes_after_crash, 65536);
    }
}
