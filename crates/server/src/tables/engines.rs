//! Which engines' tables a backup has whole, and why. A table of any other one is refused: nobody has shown
//! that its files are consistent, or where they are.

/// An engine that is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    /// As `information_schema.TABLES` says it.
    pub name: &'static str,
    /// Why a backup has its tables.
    pub why: &'static str,
    /// The files that each table has beside its definition, by extension; partitioned, at least one of each.
    pub files: &'static [&'static str],
    /// The number that stands for it in a `.frm` file; 0 for one that is there by name.
    pub(super) frm: u8,
}

const COVERED: [Covered; 11] = [
    Covered {
        name: "InnoDB",
        why: "crash recovery makes its files consistent",
        // Or none, in a tablespace with others: InnoDB itself is asked for its files.
        files: &[],
        frm: 12,
    },
    Covered {
        name: "MyISAM",
        why: "writes are paused while its files are read",
        files: &["MYD", "MYI"],
        frm: 9,
    },
    Covered {
        name: "Aria",
        why: "writes are paused while its files and its log are read",
        files: &["MAD", "MAI"],
        frm: 42,
    },
    Covered {
        name: "CSV",
        why: "writes are paused while its files are read",
        files: &["CSV"],
        frm: 17,
    },
    Covered {
        name: "ARCHIVE",
        why: "writes are paused while its files are read",
        files: &["ARZ"],
        frm: 16,
    },
    Covered {
        name: "MRG_MYISAM",
        why: "it has a list of other tables, and no rows",
        files: &["MRG"],
        frm: 10,
    },
    Covered {
        name: "MEMORY",
        why: "its rows are in memory only: only the definition is stored",
        files: &[],
        frm: 6,
    },
    Covered {
        name: "BLACKHOLE",
        why: "it keeps no rows",
        files: &[],
        frm: 19,
    },
    Covered {
        name: "FEDERATED",
        why: "its rows are on another server: only the definition is here",
        files: &[],
        frm: 18,
    },
    Covered {
        name: "PERFORMANCE_SCHEMA",
        why: "its rows are computed on request",
        files: &[],
        frm: 28,
    },
    Covered {
        name: "QUEUE",
        why: "all its files are in one snapshot, or are cloned while the server's process is paused",
        files: &["QUE"],
        frm: 0,
    },
];

/// Returns what is known of an engine that backups cover; `None` for any other.
#[must_use]
pub fn covered(engine: &str) -> Option<&'static Covered> {
    let is_it = |known: &&Covered| known.name.eq_ignore_ascii_case(engine);
    COVERED.iter().find(is_it)
}

/// Returns the covered engine of a number in a `.frm` file.
pub(super) fn of_frm(number: u8) -> Option<&'static Covered> {
    COVERED
        .iter()
        .find(|known| known.frm == number && number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_known_by_any_spelling() {
        assert_eq!(
            covered("MRG_MyISAM").map(|one| one.name),
            Some("MRG_MYISAM")
        );
        for other in [
            "ROCKSDB",
            "Columnstore",
            "SPIDER",
            "CONNECT",
            "S3",
            "EXAMPLE",
            "",
        ] {
            assert_eq!(covered(other), None, "{other}");
        }
    }
}
