//! In which order files are cloned where one is cloned after the other.
//!
//! What InnoDB's redo log brings forward is cloned first, while the server writes. The rest follows in the
//! moment, in the order in which its parts rely on each other:
//!
//! 1. Aria's control file. It names the checkpoint at which Aria's recovery begins.
//! 2. The tables of engines. Aria writes no page before the log has what was done to it, so pages that are
//!    cloned before the log are covered by it.
//! 3. Aria's log. It has all since the checkpoint: while a backup's lock is held it loses no file, and
//!    [`super::current`] makes sure that none was begun since the files were listed.
//! 4. Binary logs and everything else.
//! 5. InnoDB's redo log, which covers every page that was cloned before it.
//!
//! For Aria this is enough while nobody but its checkpoints writes to it: those of the system tables wait for
//! `BACKUP STAGE BLOCK_COMMIT`, and it waits for them. Where there are tables of users, whose
//! statements run on, the process is stopped for the moment: see [`crate::backup::survey::method`].

use crate::backup::survey::any_time;
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};

/// Returns the files that may be cloned while the server writes to them.
pub(in crate::backup) fn early_files(files: &ServerFiles) -> Vec<FoundFile> {
    let early = files.files.iter().filter(|file| any_time(file.class));
    early.cloned().collect()
}

/// Returns the files that are cloned in the moment, in their order.
pub(in crate::backup) fn late_files(files: &ServerFiles) -> Vec<FoundFile> {
    let late = files.files.iter().filter(|file| !any_time(file.class));
    let mut late: Vec<FoundFile> = late.cloned().collect();
    // Stable: those of one step stay together by their directories.
    late.sort_by_key(step);
    late
}

fn step(file: &FoundFile) -> u8 {
    match file.class {
        _ if file.is_aria_control() => 1,
        FileClass::EngineTable => 2,
        _ if file.is_aria_log() => 3,
        FileClass::InnodbRedo => 5,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::files::discover_stopped;
    use std::collections::BTreeMap;

    #[test]
    fn what_names_a_checkpoint_comes_before_and_what_covers_pages_after_them() {
        let data = tempfile::tempdir().unwrap();
        for schema in ["bank", "mysql", "shop"] {
            std::fs::create_dir(data.path().join(schema)).unwrap();
        }
        for name in [
            "aria_log.00000001",
            "aria_log.00000002",
            "aria_log_control",
            "bank/a.MAD",
            "bank/a.MAI",
            "bank/b.ibd",
            "ib_logfile0",
            "ibdata1",
            "mysql/db.MAD",
            "shop/c.MYD",
            "tc.log",
        ] {
            std::fs::write(data.path().join(name), "").unwrap();
        }
        let files = discover_stopped(data.path(), &BTreeMap::new()).unwrap();
        let names = |files: Vec<FoundFile>| -> Vec<String> {
            let names = files
                .iter()
                .map(|file| file.name.trim_start_matches("data/"));
            names.map(str::to_owned).collect()
        };
        assert_eq!(
            names(late_files(&files)),
            [
                "aria_log_control",
                "bank/a.MAD",
                "bank/a.MAI",
                "mysql/db.MAD",
                "shop/c.MYD",
                "aria_log.00000001",
                "aria_log.00000002",
                "tc.log",
                "ib_logfile0",
            ]
        );
        assert_eq!(names(early_files(&files)), ["bank/b.ibd", "ibdata1"]);
    }
}
