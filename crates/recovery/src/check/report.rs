//! What a check came to: a public contract, the same in JSON and on the screen.

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a check came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckReport {
    /// Whether nothing was damaged, or everything that was is healed.
    pub sound: bool,
    /// `live`, `stopped`, `files` or `generation`.
    pub target: &'static str,
    /// The data directory, the files' directory, or the repository.
    pub place: String,
    /// The generation that was checked.
    pub generation: Option<u32>,
    /// Files whose pages were looked at.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Pages of them.
    pub pages: u64,
    /// Pages whose checksum, place and LSN were right or wrong.
    pub pages_checked: u64,
    /// Pages of zeros: never written, or freed.
    pub pages_empty: u64,
    /// Pages that could not be checked without the server's keys or codecs, or may hold anything.
    pub pages_unchecked: u64,
    /// Pages that are damaged.
    pub pages_damaged: u64,
    /// Pages that are damaged, but of which the doublewrite buffer has a copy that crash recovery
    /// puts back.
    pub pages_torn: u64,
    /// Pages that looked damaged while a running server wrote them, and did not at a second look.
    pub pages_read_again: u64,
    /// How many pages there are of each kind.
    pub page_kinds: BTreeMap<&'static str, u64>,
    /// Why pages were not checked, and how many.
    pub unchecked: BTreeMap<&'static str, u64>,
    /// Files that could not be checked, and why.
    pub files_unchecked: Vec<FileNote>,
    /// Files that could not be read.
    pub files_unreadable: Vec<FileNote>,
    /// Files that were dropped while they were checked.
    pub files_vanished: u64,
    /// The LSN that no page may be beyond; none where there is no redo log to tell it.
    pub lsn_end: Option<u64>,
    /// The newest LSN of any page.
    pub lsn_max: u64,
    /// What was found, the first thousand.
    pub findings: Vec<Finding>,
    /// How many more there were.
    pub findings_more: u64,
    /// What came of healing, or would.
    pub heal: Option<HealReport>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
    /// Wall-clock time, in seconds.
    pub seconds: f64,
}

/// A file, and something about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileNote {
    /// The file's name.
    pub file: String,
    /// What there is to say.
    pub why: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is damaged.
    Damage,
    /// A torn page that crash recovery repairs by itself.
    Torn,
    /// Odd and harmless.
    Notice,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, by its name in a generation where it has one (`data/bank/accounts.ibd`).
    pub file: String,
    /// The page's number in its tablespace.
    pub page: Option<u64>,
    /// The tablespace's id.
    pub space: Option<u32>,
    /// `checksum`, `torn`, `page-number`, `space-id`, `header`, `first-page`, `cut-off`, `future-lsn`, `unreadable`,
    /// `short-file` or `stray-bits`.
    pub what: &'static str,
    /// The same as a sentence.
    pub why: String,
    /// What should be there.
    pub expected: Option<u64>,
    /// What is there.
    pub found: Option<u64>,
    /// The page's LSN, by its header.
    pub lsn: Option<u64>,
    /// What the page holds, as in `page_kinds`.
    pub page_kind: Option<&'static str>,
    /// `clustered` (the rows), `secondary` (can be rebuilt), or the page's kind.
    pub kind: &'static str,
    /// The index's id.
    pub index_id: Option<u64>,
    /// The table it belongs to, when known.
    pub table: Option<String>,
    /// The index it belongs to, when known.
    pub index: Option<String>,
    /// The statement that rebuilds it from the rows, when it is of a secondary index.
    pub rebuild_sql: Option<String>,
    /// The statement that tells a running server's name for the index, when it is not known here.
    pub lookup_sql: Option<String>,
    /// A good copy in the repository that was named.
    pub copy: Option<GoodCopy>,
}

/// A good copy of a damaged page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GoodCopy {
    /// The generation that holds it.
    pub generation: u32,
    /// Its LSN.
    pub lsn: u64,
}

/// What came of healing, or would.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HealReport {
    /// Whether anything was written.
    pub executed: bool,
    /// Where the damaged pages are kept, or would be.
    pub kept_in: PathBuf,
    /// Every damaged page.
    pub pages: Vec<HealedPage>,
}

/// What came of one page, or would.
#[derive(Debug, Clone, Serialize)]
pub struct HealedPage {
    /// The file.
    pub file: String,
    /// The page's number in its tablespace.
    pub page: u64,
    /// `planned`, `healed` or `refused`.
    pub outcome: &'static str,
    /// `generation 12` or `doublewrite`: where the good copy is from.
    pub from: Option<String>,
    /// The copy's LSN.
    pub lsn: Option<u64>,
    /// What proves that it is right, or why nothing does.
    pub why: String,
    /// What to do instead, for one that is refused.
    pub instead: Vec<String>,
    /// The file that keeps the damaged page.
    pub kept: Option<PathBuf>,
}
