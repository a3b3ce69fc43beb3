//! Says beforehand what of a server is paused while it is frozen: for `doctor`.

use super::method::{self, Choice, Facts, Method, Moment};
use crate::backup::request::LockWish;
use crate::backup::survey;
use evenkeel_server::abilities::{Abilities, RedoLayout};
use evenkeel_server::files::ServerFiles;
use evenkeel_snapshot::Atomicity;

/// Returns what of a running server is paused while a snapshot of that atomicity is taken, and
/// why if it is the whole process; `None` when such a snapshot is not for a running server.
#[must_use]
pub fn stands_still(
    abilities: &Abilities,
    files: &ServerFiles,
    atomicity: Atomicity,
) -> Option<String> {
    let facts = survey::facts(Some(abilities), files, atomicity, false, LockWish::Auto);
    let choice = method::choose(facts).ok()?;
    let text = match choice.method {
        Method::Still => return None,
        Method::Pause => format!(
            "the server's process is paused while the files are cloned, because {}",
            reason(facts, abilities)
        ),
        Method::Splice if choice.moment == Moment::BlockCommitAndStop => format!(
            "{} while the logs are cloned, because there are tables of ENGINE=Aria",
            who_waits(choice)
        ),
        Method::Splice => format!("{} while the logs are cloned", who_waits(choice)),
        Method::Atomic if choice.moment == Moment::Stop => format!(
            "{} for the snapshot, because its logs are not synced at every commit",
            who_waits(choice)
        ),
        Method::Atomic => format!("{} for the snapshot", who_waits(choice)),
    };
    Some(text)
}

fn who_waits(choice: Choice) -> &'static str {
    match choice.moment {
        Moment::None => "nothing is locked",
        Moment::BlockCommit => "commits wait",
        Moment::BlockCommitAndStop => "commits wait and the server's process is paused",
        Moment::GlobalRead => "writes wait",
        Moment::Stop => "the server's process is stopped",
    }
}

/// Why the checkpoint splice, which stops nothing for the clones, is not for this server.
fn reason(facts: Facts, abilities: &Abilities) -> &'static str {
    if !(facts.backup_stage || facts.instance_lock) {
        "nothing else prevents files from being renamed meanwhile"
    } else if abilities.redo_layout == RedoLayout::Directory {
        "its redo log files are created and removed"
    } else {
        "evenkeel cannot write a checkpoint into its kind of redo log"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::files::discover_stopped;
    use std::collections::BTreeMap;

    fn reported(version: &str, atomicity: Atomicity) -> Option<String> {
        reported_of(version, atomicity, &[])
    }

    fn reported_of(
        version: &str,
        atomicity: Atomicity,
        settings: &[(&str, &str)],
    ) -> Option<String> {
        let data = tempfile::tempdir().unwrap();
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let files = discover_stopped(data.path(), &settings.collect()).unwrap();
        stands_still(
            &Abilities::of_version(version, "").unwrap(),
            &files,
            atomicity,
        )
    }

    #[test]
    fn a_stopped_process_is_reported_with_its_reason() {
        let of = |version| reported(version, Atomicity::PerFile).unwrap();
        assert_eq!(
            of("9.7.0"),
            "the server's process is paused while the files are cloned, because its redo log \
             files are created and removed"
        );
        assert!(of("5.7.22").ends_with("renamed meanwhile"));
        assert_eq!(
            of("8.0.15"),
            "the server's process is stopped while the logs are cloned"
        );
        assert_eq!(
            of("11.8.6-MariaDB"),
            "commits wait while the logs are cloned"
        );
    }

    #[test]
    fn tables_of_aria_are_reported() {
        let data = tempfile::tempdir().unwrap();
        let reported = |schema: &str| {
            std::fs::create_dir(data.path().join(schema)).unwrap();
            std::fs::write(data.path().join(schema).join("t.MAI"), "").unwrap();
            let files = discover_stopped(data.path(), &BTreeMap::new()).unwrap();
            let abilities = Abilities::of_version("11.8.6-MariaDB", "").unwrap();
            stands_still(&abilities, &files, Atomicity::PerFile).unwrap()
        };
        assert_eq!(reported("mysql"), "commits wait while the logs are cloned");
        assert_eq!(
            reported("shop"),
            "commits wait and the server's process is paused while the logs are cloned, because \
             there are tables of ENGINE=Aria"
        );
    }

    #[test]
    fn unsynced_logs_are_reported() {
        let of = |redo, binlog| {
            let settings = [
                ("log_bin", "ON"),
                ("innodb_flush_log_at_trx_commit", redo),
                ("sync_binlog", binlog),
            ];
            reported_of("8.0.15", Atomicity::Synced, &settings).unwrap()
        };
        assert_eq!(of("1", "1"), "nothing is locked for the snapshot");
        assert_eq!(
            of("2", "1"),
            "the server's process is stopped for the snapshot, because its logs are not synced at \
             every commit"
        );
        assert_eq!(of("0", "1"), "writes wait for the snapshot");
    }

    #[test]
    fn atomic_snapshots_stop_no_process() {
        let of = |version| reported(version, Atomicity::Whole).unwrap();
        assert_eq!(of("9.7.0"), "nothing is locked for the snapshot");
        assert_eq!(of("10.11.14-MariaDB"), "commits wait for the snapshot");
        assert_eq!(reported("9.7.0", Atomicity::Stopped), None);
    }
}
