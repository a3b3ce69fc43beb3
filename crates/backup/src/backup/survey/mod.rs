//! Looks at the server and decides how it will be backed up. Changes nothing.

pub(super) mod method;
pub(super) mod origin;
pub(super) mod stands_still;
pub(super) mod volumes;

use super::request::{BackupRequest, LockWish, SnapshotChoice, Source};
use crate::engine::Tool;
use crate::facts::DATA_ROOT;
use evenkeel_innodb::redo;
use evenkeel_op::{Error, ErrorKind, Result, Run, paths};
use evenkeel_repository::Location;
use evenkeel_server::abilities::{Abilities, RedoLayout};
use evenkeel_server::connect::Session;
use evenkeel_server::files::{self, FileClass, Root, ServerFiles};
use evenkeel_server::stopped::server_uuid;
use evenkeel_snapshot::{HookCommand, Layout, Method as SnapshotMethod, Settings};
use method::{Choice, Durability, Facts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the survey found and decided.
pub(super) struct Survey {
    pub(super) files: ServerFiles,
    /// `None` when the server is stopped.
    pub(super) abilities: Option<Abilities>,
    pub(super) layout: Layout,
    pub(super) settings: Settings,
    pub(super) snapshot: SnapshotMethod,
    /// Copies the files in place of a snapshot.
    pub(super) engine: Option<Tool>,
}

/// Connects, discovers the files and picks the snapshot method.
pub(super) fn survey(request: &BackupRequest, run: Run<'_>) -> Result<Survey> {
    run.cancel.check()?;
    let (files, abilities) = match &request.source {
        Source::Live(options) => {
            let mut session = Session::open(options)?;
            // Some questions wait for locks on tables, by default for a year.
            let wait_s = request.limits.deadline.as_secs().max(1);
            session.run(&format!("SET SESSION lock_wait_timeout = {wait_s}"))?;
            let abilities = Abilities::probe(&mut session)?;
            (
                without_keys(files::discover(&mut session, &abilities)?),
                Some(abilities),
            )
        }
        Source::Stopped { datadir, settings } => (stopped(datadir, settings)?, None),
        Source::Volumes(paths) => (volumes::find(paths)?, None),
    };
    let layout = match &request.source {
        Source::Volumes(_) => volumes::layout(&files),
        _ => layout_of(&files, abilities.is_some()),
    };
    let settings = Settings {
        snapshot_dirs: request.snapshot_dirs.clone(),
        snapshot_bytes: request.snapshot_bytes,
        hook: match &request.snapshot {
            SnapshotChoice::Hook { command, release } => Some(HookCommand {
                create: command.clone(),
                release: release.clone(),
                timeout: request.limits.hold,
            }),
            _ => None,
        },
        // Known when the repository is open.
        kept_for: String::new(),
    };
    let mut engine = None;
    let snapshot = match &request.snapshot {
        SnapshotChoice::Auto => match evenkeel_snapshot::choose(&layout, &settings) {
            // A stopped server's files hold still anyway, and a volume that nobody uses.
            Err(refusal) if abilities.is_none() => in_place(&layout, &settings, refusal)?,
            // A filesystem that is only full could: the tool would hide that, night after night.
            Err(error) if error.kind() != ErrorKind::Refused => return Err(error),
            Err(error) => {
                engine = Some(instead(error, request, &files, abilities.as_ref(), run)?);
                SnapshotMethod::Copy
            }
            Ok(chosen) => chosen,
        },
        SnapshotChoice::Engine => {
            engine = Some(super::engine::find(request, &files, abilities.as_ref())?);
            SnapshotMethod::Copy
        }
        SnapshotChoice::Btrfs => SnapshotMethod::Btrfs,
        SnapshotChoice::Reflink => SnapshotMethod::Reflink,
        SnapshotChoice::Lvm => SnapshotMethod::Lvm,
        SnapshotChoice::Copy => SnapshotMethod::Copy,
        SnapshotChoice::Hook { .. } => SnapshotMethod::Hook,
    };
    Ok(Survey {
        files,
        abilities,
        layout,
        settings,
        snapshot,
        engine,
    })
}

/// Finds the files of a stopped server, with what it calls itself.
fn stopped(datadir: &Path, settings: &BTreeMap<String, String>) -> Result<ServerFiles> {
    let mut files = without_keys(files::discover_stopped(datadir, settings)?);
    if let Some(uuid) = server_uuid(&files.datadir) {
        files.settings.insert("server_uuid".to_owned(), uuid);
    }
    Ok(files)
}

/// Refuses a repository within what is backed up: each generation would hold those before it, and the
/// server takes the directory for a schema.
pub(super) fn refuse_within(files: &ServerFiles, repository: &Location) -> Result<()> {
    let store = repository.store();
    let Some(directory) = store.directory() else {
        return Ok(());
    };
    let directory = paths::resolved(directory);
    let walked = |root: &&Root| root.id == DATA_ROOT || root.id.starts_with("schema-");
    let mut walked = files.roots.iter().filter(walked);
    match walked.find(|root| directory.starts_with(&root.path)) {
        None => Ok(()),
        Some(root) => Err(Error::usage(format!(
            "{} is within {}, which is backed up",
            directory.display(),
            root.path.display()
        ))
        .hint("name a directory elsewhere, ideally on another disk")),
    }
}

/// Falls back to reading in place. Where that is refused too, the other refusals say what to do.
fn in_place(layout: &Layout, settings: &Settings, refusal: Error) -> Result<SnapshotMethod> {
    let mut methods = evenkeel_snapshot::assess(layout, settings).into_iter();
    let copy = methods.find(|method| method.provider == SnapshotMethod::Copy.name());
    match copy {
        Some(copy) if !copy.usable && !layout.volumes.is_empty() => {
            Err(refusal.hint(format!("copy: {}", copy.reason)))
        }
        _ => Ok(SnapshotMethod::Copy),
    }
}

/// Finds the server's own tool where no snapshot method works; without one, why none does is the
/// error, and how to get the tool a hint more.
fn instead(
    no_snapshot: Error,
    request: &BackupRequest,
    files: &ServerFiles,
    abilities: Option<&Abilities>,
    run: Run<'_>,
) -> Result<Tool> {
    match super::engine::find(request, files, abilities) {
        Ok(tool) => {
            run.progress.note(format!(
                "the filesystem cannot freeze the files, so {} copies them (--snapshot engine)",
                tool.name
            ));
            Ok(tool)
        }
        Err(error) => Err(no_snapshot.hint(format!(
            "or let the server's own tool copy the files (--snapshot engine): {}",
            error.chain()
        ))),
    }
}

/// Leaves key files out: a backup that holds the keys to itself protects nothing.
pub(super) fn without_keys(mut files: ServerFiles) -> ServerFiles {
    let keyring = std::mem::take(&mut files.keyring);
    let keys = files
        .files
        .iter()
        .filter(|file| keyring.contains(&file.name));
    let keys = keys.map(|file| {
        (
            file.path.clone(),
            "encryption keys, which a restored server needs",
        )
    });
    files.excluded.extend(keys);
    files.files.retain(|file| !keyring.contains(&file.name));
    // A directory of nothing but keys is not one to freeze: it may be on any filesystem.
    for root in keyring
        .iter()
        .filter_map(|name| name.split('/').next())
        .filter(|id| *id != "data")
    {
        let below = |name: &str| name.split('/').next() == Some(root);
        if !files.files.iter().any(|file| below(&file.name)) {
            files.roots.retain(|known| known.id != root);
            files.dirs.retain(|(name, _)| !below(name));
        }
    }
    files.keyring = keyring;
    files
}

/// Returns where a server keeps files, for the snapshot providers.
pub fn layout_of(files: &ServerFiles, running: bool) -> Layout {
    let mut dirs: Vec<PathBuf> = files.roots.iter().map(|root| root.path.clone()).collect();
    dirs.extend(files.dirs.iter().map(|(_, path)| path.clone()));
    dirs.sort();
    dirs.dedup();
    Layout {
        datadir: files.datadir.clone(),
        dirs,
        server_running: running,
        page_bytes: u64::from(files.page_size),
        volumes: Vec::new(),
    }
}

/// Decides how the image becomes point-in-time consistent.
pub(super) fn choose(
    survey: &Survey,
    request: &BackupRequest,
    atomicity: evenkeel_snapshot::Atomicity,
) -> Result<Choice> {
    if matches!(request.source, Source::Volumes(_)) {
        return Ok(method::of_volumes(atomicity));
    }
    let abilities = survey.abilities.as_ref();
    let choice = method::choose(facts(
        abilities,
        &survey.files,
        atomicity,
        request.stop_server,
        request.lock,
    ))?;
    let stops = matches!(choice.method, method::Method::Pause) || choice.moment.is_stopped();
    if stops && survey.files.pid.is_none() {
        let refusal = Error::refused("the server's process was not found, so it cannot be paused")
            .hint("run evenkeel on the server's own host, as root or as its user");
        return Err(match choice.moment {
            // Its locks let statements on such tables continue.
            method::Moment::BlockCommitAndStop => refusal
                .hint("or convert the ENGINE=Aria tables to InnoDB: the pause is only for them"),
            _ => refusal.hint("or add --lock ftwrl, which makes writes wait instead"),
        });
    }
    Ok(choice)
}

/// Gathers what decides how the image becomes point-in-time consistent; no abilities: the server is stopped.
pub(super) fn facts(
    abilities: Option<&Abilities>,
    files: &ServerFiles,
    atomicity: evenkeel_snapshot::Atomicity,
    stop: bool,
    lock: LockWish,
) -> Facts {
    Facts {
        running: abilities.is_some(),
        atomicity,
        backup_stage: abilities.is_some_and(|a| a.backup_stage),
        instance_lock: abilities.is_some_and(|a| a.instance_lock),
        // Files of queues belong together, and a splice takes one after the other.
        spliceable: !files.has_queues()
            && abilities.is_some_and(|a| redo_layout(a.redo_layout).is_some()),
        nontransactional: files.has_nontransactional_user_tables(),
        aria: files.has_aria_user_tables(),
        durability: Durability::of(&files.settings),
        stop,
        lock,
    }
}

/// Translates the server's redo layout; `None` where no splice is proven.
pub(super) fn redo_layout(layout: RedoLayout) -> Option<redo::RedoFormat> {
    match layout {
        RedoLayout::SingleFile => Some(redo::RedoFormat::SingleFile),
        RedoLayout::TwoFilesClassic => Some(redo::RedoFormat::Classic),
        _ => None,
    }
}

impl LockWish {
    /// Whether DDL may be blocked around the snapshot.
    pub(super) fn allows_ddl_block(self) -> bool {
        self != Self::None
    }
}

/// Whether a file of this class may be cloned while the server writes to it: pages are brought up
/// to date by the redo log, definitions do not change while DDL is blocked.
pub(super) fn any_time(class: FileClass) -> bool {
    matches!(
        class,
        FileClass::InnodbData | FileClass::InnodbDoublewrite | FileClass::Definition
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn a_repository_within_what_is_backed_up_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("data/shop")).unwrap();
        std::os::unix::fs::symlink("data", top.join("link")).unwrap();
        let files = files::discover_stopped(&top.join("data"), &BTreeMap::new()).unwrap();
        let refused = |place: &str| refuse_within(&files, &top.join(place).into()).is_err();
        for within in ["data", "data/shop/not/yet", "link/repository"] {
            assert!(refused(within), "{within}");
        }
        for beside in ["repository", "data2"] {
            assert!(!refused(beside), "{beside}");
        }
    }
}
