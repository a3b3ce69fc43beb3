//! `backup`.

use super::metrics::Watch;
use super::{forget, over_ssh, retention, waiting};
use crate::args::{Backup, BackupLock, SnapshotMethod, Verb};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{BackupAnswer, Failure};
use evenkeel_backup::backup::{
    self, ApplierWish, BackupRequest, LockWish, RunKind, SnapshotChoice, Source,
};
use evenkeel_op::{Error, ErrorKind, Result, Run, exit};
use evenkeel_repository::{Compression, Repository};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Runs the command on this host, which may not be the repository's: what is forgotten, and what is
/// told of it, is the other's matter.
pub fn run(args: &Backup, ui: &Ui) -> Result<u8> {
    let answer = back_up(args, ui)?;
    ui.answer(&answer);
    Ok(code(&answer))
}

/// Runs the command on the host that is meant, and what belongs to it where the repository is.
pub(super) fn run_here_or_there(
    args: &Backup,
    verb: &Verb,
    words: &[OsString],
    ui: &Ui,
) -> Result<u8> {
    // Not only when the backup is made.
    forget::refuse_nothing(&args.keep)?;
    let watch = Watch::of(verb);
    let made = match args.remote.ssh {
        Some(_) => back_up_there(args, verb, words, ui),
        None => back_up(args, ui),
    };
    let mut ended = made.map(|mut answer| {
        let whole = !retention::is_wanted(args) || retention::apply(args, &mut answer, ui);
        let code = if whole { code(&answer) } else { exit::PARTIAL };
        (code, answer)
    });
    let noted = watch.map_or(Ok(()), |watch| tell(&watch, &ended, ui));
    if let (Ok((code, answer)), Err(error)) = (&mut ended, noted) {
        // The generation is there, and whoever watches the file would not learn of it.
        answer.metrics_failure = Some(Failure::of(&error));
        *code = exit::PARTIAL;
    }
    ended.map(|(code, answer)| {
        ui.answer(&answer);
        code
    })
}

/// Tells how it ended before it is answered, so that the answer can say that it was not reported.
fn tell(watch: &Watch, ended: &Result<(u8, BackupAnswer)>, ui: &Ui) -> Result<()> {
    match ended {
        Ok((code, answer)) => {
            // A plain struct: it cannot fail to serialise.
            let document = serde_json::to_value(answer).unwrap_or_default();
            watch.tell(*code, Some(&document), ui)
        }
        Err(error) => watch.tell(error.kind().exit_code(), None, ui),
    }
}

fn code(answer: &BackupAnswer) -> u8 {
    match answer.corrupt.is_empty() {
        true => exit::DONE,
        false => exit::PARTIAL,
    }
}

/// Backs up a server of another host.
fn back_up_there(args: &Backup, verb: &Verb, words: &[OsString], ui: &Ui) -> Result<BackupAnswer> {
    let before = newest(args, ui)?;
    let answer: BackupAnswer = over_ssh::run_for_answer(verb, &args.remote, words, ui)?;
    refuse_phantom(answer.report.generation, before, &numbers(args, ui)?)?;
    Ok(answer)
}

/// Refuses an answer about a generation that the repository does not have, or had before the run: what is forgotten
/// and reported depends on this number, and a host that was taken over may send any.
fn refuse_phantom(made: u32, before: u32, there: &[u32]) -> Result<()> {
    if made > before && there.contains(&made) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Differs,
        format!("the other host reports that it made generation {made}, but the repository has no new generation with that number"),
    )
    .hint("nothing was forgotten: check that host, and run 'evenkeel verify' on the repository"))
}

/// Returns the newest generation's number, as the repository has it; 0 where there is none.
fn newest(args: &Backup, ui: &Ui) -> Result<u32> {
    Ok(numbers(args, ui)?.into_iter().max().unwrap_or(0))
}

/// Returns the numbers of the repository's generations; none where there is no repository yet.
fn numbers(args: &Backup, ui: &Ui) -> Result<Vec<u32>> {
    match Repository::open(ui.location(&args.repository, None)?) {
        Ok(repository) => {
            let listed = repository.generations()?;
            Ok(listed.iter().map(|one| one.generation).collect())
        }
        Err(error) if error.kind() == ErrorKind::NoRepository => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn back_up(args: &Backup, ui: &Ui) -> Result<BackupAnswer> {
    waiting::for_others(&args.waiting, ui, || back_up_now(args, ui))
}

fn back_up_now(args: &Backup, ui: &Ui) -> Result<BackupAnswer> {
    let request = request(args, ui)?;
    let done = backup::backup(
        &request,
        Run {
            progress: ui.progress(),
            cancel: ui.cancel(),
        },
    )?;
    let mut answer = BackupAnswer::new(done.report, done.corrupt);
    answer.read_everything_because = done.read_everything.map(str::to_owned);
    Ok(answer)
}

fn request(args: &Backup, ui: &Ui) -> Result<BackupRequest> {
    let source = match &args.datadir {
        _ if !args.volume.is_empty() => Source::Volumes(args.volume.clone()),
        Some(datadir) => Source::Stopped {
            datadir: datadir.clone(),
            settings: BTreeMap::new(),
        },
        None => {
            let options = settings::connect(&args.connection, "backup", ui)?;
            super::resume::resume(&options, ui);
            Source::Live(Box::new(options))
        }
    };
    let place = ui.repository_in(&args.repository, args.storage_class.as_deref())?;
    let place =
        settings::unlock_or_encrypt(place, &args.keys, &args.encrypt, "backup", ui.cancel())?;
    let mut request = BackupRequest::new(place, source, snapshot(args)?);
    request.kind = match args.against {
        _ if args.full => RunKind::Full,
        Some(generation) => RunKind::Against(generation),
        None => RunKind::Auto,
    };
    request.new_source = args.new_source;
    request.snapshot_dirs.clone_from(&args.snapshot_dir);
    request.snapshot_bytes = args.snapshot_size;
    request.stop_server = args.stop;
    if args.stop_applier {
        request.applier = ApplierWish::Stop(super::watch_applier::program());
    }
    request.lock = lock(args.lock);
    request.limits = settings::limits(&args.locking);
    request.audit = args.audit;
    request.rate_bytes_per_s = args.rate.unwrap_or(0);
    request.max_impact_percent = args.max_impact;
    if let Some(level) = args.level {
        request.compression = Compression::Level(level);
    }
    if let Some(workers) = args.workers {
        request.workers = usize::from(workers);
    }
    request.keep_corrupt = args.keep_corrupt;
    request.engine_tool.clone_from(&args.engine_tool);
    Ok(request)
}

fn snapshot(args: &Backup) -> Result<SnapshotChoice> {
    Ok(match args.snapshot {
        SnapshotMethod::Auto if args.hook.is_none() => SnapshotChoice::Auto,
        SnapshotMethod::Btrfs => SnapshotChoice::Btrfs,
        SnapshotMethod::Reflink => SnapshotChoice::Reflink,
        SnapshotMethod::Lvm => SnapshotChoice::Lvm,
        SnapshotMethod::Copy => SnapshotChoice::Copy,
        SnapshotMethod::Engine => SnapshotChoice::Engine,
        SnapshotMethod::Hook | SnapshotMethod::Auto => SnapshotChoice::Hook {
            command: args.hook.clone().ok_or_else(|| {
                Error::usage("--snapshot hook needs a command").hint("give it with --hook COMMAND")
            })?,
            release: args.hook_release.clone(),
        },
    })
}

fn lock(typed: BackupLock) -> LockWish {
    match typed {
        BackupLock::Auto => LockWish::Auto,
        BackupLock::Ftwrl => LockWish::GlobalRead,
        BackupLock::None => LockWish::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_another_host_names_has_to_be_there_and_new() {
        assert!(refuse_phantom(3, 2, &[1, 2, 3]).is_ok());
        assert!(refuse_phantom(1, 0, &[1]).is_ok());
        for (made, before, there) in [(4711, 2, &[1, 2][..]), (2, 2, &[1, 2]), (1, 0, &[])] {
            let refused = refuse_phantom(made, before, there).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Differs);
        }
    }
}
