//! `clone`.

use super::over_ssh;
use crate::args::{BackupLock, CloneServer, CloneSnapshot, CompressAt, Verb};
use crate::settings;
use crate::show::Ui;
use evenkeel_backup::backup::{ApplierWish, BackupRequest, LockWish, SnapshotChoice, Source};
use evenkeel_backup::clone::{self, CloneTarget, Receiver};
use evenkeel_op::{Result, Run, exit, open_files};
use evenkeel_repository::{Compression, Location};
use std::ffi::OsString;
use std::path::Path;

/// Runs the command: the target is on this host, the server on this or the other.
pub(super) fn run_here_or_there(
    args: &CloneServer,
    verb: &Verb,
    words: &[OsString],
    ui: &Ui,
) -> Result<u8> {
    // Stretches of many small files are under way together.
    open_files::raise();
    let receiver = Receiver::begin(&target(args)?)?;
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let sent = match args.remote.ssh {
        Some(_) => over_ssh::run_into(verb, &args.remote, words, receiver.store(), ui),
        None => send(args, receiver.location(), false, ui),
    };
    let report = sent.and_then(|()| receiver.finish(run));
    ui.answer(&report.map_err(|error| receiver.give_up(error))?);
    Ok(exit::DONE)
}

/// Sends what the other host asks for: this one has the server.
pub fn run(args: &CloneServer, ui: &Ui) -> Result<u8> {
    open_files::raise();
    // The other host has the target, and calls it its repository.
    let compresses = args.remote.compress_at == CompressAt::Source;
    send(args, ui.repository(Path::new(""))?, compresses, ui)?;
    Ok(exit::DONE)
}

fn target(args: &CloneServer) -> Result<CloneTarget> {
    let mut target = CloneTarget::new(&args.target);
    target.like.clone_from(&args.like);
    for root in &args.map_root {
        target.map_roots.insert(root.id.clone(), root.dir.clone());
    }
    target.owner = args.owner.as_deref().map(settings::owner).transpose()?;
    Ok(target)
}

/// Sends what the server on this host has.
pub(super) fn send(args: &CloneServer, to: Location, compresses: bool, ui: &Ui) -> Result<()> {
    let options = settings::connect(&args.connection, "clone", ui)?;
    super::resume::resume(&options, ui);
    let snapshot = match args.snapshot {
        CloneSnapshot::Auto => SnapshotChoice::Auto,
        CloneSnapshot::Btrfs => SnapshotChoice::Btrfs,
        CloneSnapshot::Reflink => SnapshotChoice::Reflink,
        CloneSnapshot::Lvm => SnapshotChoice::Lvm,
    };
    let mut request = BackupRequest::new(to, Source::Live(Box::new(options)), snapshot);
    request.snapshot_dirs.clone_from(&args.snapshot_dir);
    request.snapshot_bytes = args.snapshot_size;
    if args.stop_applier {
        request.applier = ApplierWish::Stop(super::watch_applier::program());
    }
    request.lock = match args.lock {
        BackupLock::Auto => LockWish::Auto,
        BackupLock::Ftwrl => LockWish::GlobalRead,
        BackupLock::None => LockWish::None,
    };
    request.limits = settings::limits(&args.locking);
    request.rate_bytes_per_s = args.rate.unwrap_or(0);
    request.compression = Compression::Level(args.level);
    if let Some(workers) = args.workers {
        request.workers = usize::from(workers);
    }
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    clone::send(&request, compresses, run)
}
