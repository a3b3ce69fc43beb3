//! The files of the Aria engine: a control file that names a checkpoint, a log in numbered files, and tables.
//!
//! Tables that are made without a word about transactions have a log, and statements that write to them
//! continue under every stage of `BACKUP STAGE`.

use super::class::{ARIA_CONTROL, ARIA_LOG, FileClass};
use super::found::{FoundFile, ServerFiles, in_system_schema};
use std::path::PathBuf;

impl FoundFile {
    /// Returns whether it names the checkpoint at which Aria's recovery begins.
    #[must_use]
    pub fn is_aria_control(&self) -> bool {
        self.class == FileClass::EngineLog && self.path.ends_with(ARIA_CONTROL)
    }

    /// Returns whether it is part of Aria's log.
    #[must_use]
    pub fn is_aria_log(&self) -> bool {
        self.class == FileClass::EngineLog && self.aria_log_number().is_some()
    }

    fn aria_log_number(&self) -> Option<u32> {
        let name = self.path.file_name()?.to_str()?;
        name.strip_prefix(ARIA_LOG)?.parse().ok()
    }
}

impl ServerFiles {
    /// Returns whether somebody's own tables are Aria's.
    #[must_use]
    pub fn has_aria_user_tables(&self) -> bool {
        let is_arias = |file: &&FoundFile| {
            let extension = file.path.extension();
            file.class == FileClass::EngineTable && extension.is_some_and(|kind| kind == "MAI")
        };
        let mut tables = self.files.iter().filter(is_arias);
        tables.any(|file| !in_system_schema(&file.name))
    }

    /// Returns where the next file of Aria's log will be; `None` when there is no such log.
    #[must_use]
    pub fn next_aria_log(&self) -> Option<PathBuf> {
        let logs = self.files.iter().filter(|file| file.is_aria_log());
        let last = logs.max_by_key(|file| file.aria_log_number())?;
        let next = last.aria_log_number()? + 1;
        Some(last.path.with_file_name(format!("{ARIA_LOG}{next:08}")))
    }
}
