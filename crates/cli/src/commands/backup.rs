//! `backup`.

use crate::args::{Backup, BackupLock, SnapshotMethod};
use crate::settings;
use crate::show::Face;
use crate::show::answers::BackupAnswer;
use evenkeel_backup::Run;
use evenkeel_backup::backup::{
    self, ApplierWish, BackupRequest, LockWish, RunKind, SnapshotChoice, Source,
};
use evenkeel_op::{Error, Result, exit};
use std::collections::BTreeMap;

/// Runs the command.
pub fn run(args: &Backup, face: &Face) -> Result<u8> {
    let request = request(args, face)?;
    let done = backup::backup(
        &request,
        Run {
            progress: face.progress(),
            cancel: face.cancel(),
        },
    )?;
    let code = if done.corrupt.is_empty() {
        exit::DONE
    } else {
        exit::PARTIAL
    };
    face.answer(&BackupAnswer {
        report: done.report,
        corrupt: done.corrupt,
    });
    Ok(code)
}

fn request(args: &Backup, face: &Face) -> Result<BackupRequest> {
    let source = match &args.datadir {
        _ if !args.volume.is_empty() => Source::Volumes(args.volume.clone()),
        Some(datadir) => Source::Stopped {
            datadir: datadir.clone(),
            settings: BTreeMap::new(),
        },
        None => {
            let options = settings::connect(&args.connection, "backup", face)?;
            super::resume::resume(&options, face);
            Source::Live(Box::new(options))
        }
    };
    let repository = face.repository_in(&args.repository, args.storage_class.as_deref())?;
    let mut request = BackupRequest::new(repository, source, snapshot(args)?);
    request.kind = match args.against {
        _ if args.full => RunKind::Full,
        Some(generation) => RunKind::Against(generation),
        None => RunKind::Auto,
    };
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
    request.level = args.level;
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
                Error::usage("--snapshot hook needs a command").hint("name it with --hook COMMAND")
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
