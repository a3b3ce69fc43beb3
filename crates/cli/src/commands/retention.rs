//! What a backup forgets when it is done: `forget` and `prune` in the same command, for timers.

use super::{forget, waiting};
use crate::args::{Backup, PRUNE_MIN_LIVE};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{BackupAnswer, Failure, ForgetAnswer, PruneAnswer};
use evenkeel_backup::archive;
use evenkeel_op::{Error, Result};
use evenkeel_repository::{Forget, Prune, Repository};
use std::time::Duration;

/// Whether anything should be forgotten or freed after the backup.
#[must_use]
pub(super) fn is_wanted(args: &Backup) -> bool {
    args.keep.is_any() || args.prune
}

/// Forgets and frees what the backup's keep rules say, and notes in its answer what came of it. The
/// generation that was just made always stays. Returns whether all of it was done.
pub(super) fn apply(args: &Backup, answer: &mut BackupAnswer, ui: &Ui) -> bool {
    let outcome = match answer.corrupt.is_empty() {
        true => waiting::for_others(&args.waiting, ui, || perform(args, answer, ui)),
        // The generations before may be the last good ones.
        false => Err(
            Error::failed("nothing was forgotten: this generation holds corrupt pages")
                .hint("fix the pages, then run 'evenkeel forget'"),
        ),
    };
    let Err(error) = outcome else {
        return true;
    };
    ui.warn_of("the backup is done, but ", &error);
    answer.retention_failure = Some(Failure::of(&error));
    false
}

fn perform(args: &Backup, answer: &mut BackupAnswer, ui: &Ui) -> Result<()> {
    let place = ui.repository_in(&args.repository, args.storage_class.as_deref())?;
    let repository = Repository::open(settings::unlock(place, &args.keys, "backup", ui.cancel())?)?;
    // With `--wait` this is done again when another run was in its way.
    if args.keep.is_any() && answer.forgotten.is_none() {
        let mut rules = forget::rules(&args.keep, &repository)?;
        rules.these.insert(answer.report.generation);
        let plan = repository.plan_forget(&Forget::Except(rules), false)?;
        repository.perform_forget(&plan, Duration::ZERO)?;
        answer.forgotten = Some(ForgetAnswer::new(&plan, true));
    }
    if args.prune {
        let how = Prune {
            live_share_min: f64::from(PRUNE_MIN_LIVE) / 100.0,
            ..Prune::default()
        };
        let plan = repository.plan_prune(&how, ui.cancel())?;
        let logs = archive::plan_forget(&repository)?;
        let freed = repository.perform_forget_logs(&logs, Duration::ZERO, ui.cancel())?
            + repository.perform_prune(&plan, Duration::ZERO, ui.cancel())?;
        answer.pruned = Some(PruneAnswer::new(&plan, &logs, Some(freed)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Output, Verb};
    use crate::signals::Signals;
    use serde_json::json;

    #[test]
    fn a_generation_with_corrupt_pages_sends_no_other_away() {
        let words = ["evenkeel", "backup", "/nonexistent/r", "--keep-last=1"];
        let cli = crate::parse(words.map(Into::into).to_vec()).unwrap();
        let Verb::Backup(args) = cli.verb else {
            panic!("no backup");
        };
        let ui = Ui::new(&Output::default(), Signals::default());
        for (corrupt, kind) in [(json!([]), "no-repository"), (json!([page()]), "failed")] {
            let mut answer: BackupAnswer = serde_json::from_value(made(corrupt)).unwrap();
            assert!(!apply(&args, &mut answer, &ui));
            assert_eq!(answer.retention_failure.unwrap().kind, kind);
            assert!(answer.forgotten.is_none());
        }
    }

    fn page() -> serde_json::Value {
        json!({"file": "data/bank/accounts.ibd", "page": 3, "space": 5, "why": "checksum"})
    }

    fn made(corrupt: serde_json::Value) -> serde_json::Value {
        json!({
            "source": "db1:/var/lib/mysql", "generation": 7, "kind": "full", "files": 3,
            "bytes_logical": 3, "bytes_read": 2, "bytes_changed": 1, "bytes_stored": 1,
            "pages_checked": 1, "pages_corrupt": 1, "seconds": 1.5, "rested_s": 0.0,
            "lock_ms": 2.25, "write_pause_ms": 1.0, "snapshot": "btrfs", "corrupt": corrupt,
            "coordinates": {"binlog_file": null, "binlog_position": null, "gtid": null},
        })
    }
}
