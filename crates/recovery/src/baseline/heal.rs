//! What is common to a rollback and to whoever finds one that was interrupted: from the moment on
//! at which there is only one way to go.

use super::journal::{Journal, Phase, Server};
use super::patch::{self, Patched};
use super::store::{Baseline, FILES, Store, sync_directory};
use super::user::user_of_datadir;
use super::{Method, Run, inside, swap, tree};
use evenkeel_op::{Context, Error, ErrorKind, Result, Unit};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the second half of a rollback did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) patched: Patched,
    pub(super) swap: Duration,
    pub(super) start: Duration,
    pub(super) tidy: Duration,
}

/// What was repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Healed {
    /// In words.
    pub(super) reported: String,
    /// The baseline whose state the data directory has now.
    pub(super) finished: Option<String>,
}

/// Repairs what a killed run left, and says what it was. The caller has the lock.
pub(super) fn heal(store: &Store, run: Run) -> Result<Option<Healed>> {
    let Some(mut journal) = Journal::read(&store.place)? else {
        store.clear_work()?;
        return Ok(None);
    };
    let found = journal.describe();
    run.progress.warn(format!("{found}; repairing it"));
    if journal.phase == Phase::Preparing {
        store.clear_work()?;
        start_again(store, &journal, run)?;
        Journal::end(&store.place)?;
        return Ok(Some(Healed {
            reported: format!("{found}: it was abandoned"),
            finished: None,
        }));
    }
    // A server that runs on the baseline's files may have changed them since.
    let runs_already =
        journal.phase == Phase::Swapped && user_of_datadir(&store.datadir)?.is_some();
    complete(store, &mut journal, run)?;
    Ok(Some(Healed {
        reported: format!("{found}: it was finished"),
        finished: (!runs_already).then_some(journal.name),
    }))
}

/// Starts the server of a rollback that was given up, unless it runs.
fn start_again(store: &Store, journal: &Journal, run: Run) -> Result<()> {
    match &journal.server {
        Some(server) if user_of_datadir(&store.datadir)?.is_none() => start(server, run),
        _ => Ok(()),
    }
}

fn start(server: &Server, run: Run) -> Result<()> {
    run.progress.phase("starting the server", None, Unit::Items);
    let started = server
        .service
        .start(&server.options(), server.start_deadline, run.cancel);
    run.progress.end();
    started
}

/// Does all that is left to do of a rollback whose swap may begin, or has begun.
pub(super) fn complete(store: &Store, journal: &mut Journal, run: Run) -> Result<Done> {
    let mut done = Done::default();
    let begun = Instant::now();
    if journal.phase == Phase::Swapping {
        // Where it was exchanged already, somebody may have started a server on it.
        if store.place.inside || !swap::is_exchanged(store, &journal.token) {
            swap::refuse_if_used(&store.datadir)?;
        }
        done.patched = put_in_place(store, journal, run)?;
        fail::fail_point!("baseline::swap::in_place");
        journal.enter(Phase::Swapped, &store.place)?;
        fail::fail_point!("baseline::swap::swapped");
    }
    swap::unmark(store)?;
    if store.place.inside && swap::replaced(store).exists() {
        // Before any server looks in there.
        tree::mark_all(&swap::replaced(store))?;
    }
    done.swap = begun.elapsed();
    let begun = Instant::now();
    let wanted = journal.server.as_ref().filter(|server| server.start);
    if let Some(server) = wanted
        && user_of_datadir(&store.datadir)?.is_none()
        && let Err(error) = start(server, run)
    {
        return Err(not_started(store, journal, error));
    }
    fail::fail_point!("baseline::started");
    done.start = begun.elapsed();
    let begun = Instant::now();
    if let Some(name) = journal.keep_replaced.clone() {
        keep(store, journal, &name)?;
    }
    store.clear_work()?;
    fail::fail_point!("baseline::tidied");
    Journal::end(&store.place)?;
    done.tidy = begun.elapsed();
    Ok(done)
}

fn put_in_place(store: &Store, journal: &Journal, run: Run) -> Result<Patched> {
    match (journal.method, store.place.inside) {
        (Method::Copy, _) => {
            let logs: Vec<PathBuf> = journal.logs.iter().map(PathBuf::from).collect();
            return patch::patch(store, &journal.name, &logs, run);
        }
        (_, true) => inside::move_all(store, &journal.leaving)?,
        (_, false) => swap::exchange(store, &journal.token)?,
    }
    Ok(Patched::default())
}

/// The baseline is in its place, and no server starts on it: what was replaced is not thrown away.
fn not_started(store: &Store, journal: &Journal, error: Error) -> Error {
    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Terminated) {
        return error;
    }
    let name = journal
        .keep_replaced
        .clone()
        .unwrap_or_else(|| free_name(store));
    let shown = name.clone();
    let error = error.hint(format!(
        "the files are those of '{}', and the server is stopped",
        journal.name
    ));
    if journal.method == Method::Copy {
        let _ = Journal::end(&store.place);
        return error;
    }
    let kept = keep(store, journal, &name)
        .and_then(|()| store.clear_work())
        .and_then(|()| Journal::end(&store.place));
    match kept {
        Ok(()) => error.hint(format!(
            "the replaced state is kept: evenkeel baseline rollback {shown}"
        )),
        Err(other) => error.hint(format!(
            "the replaced state is in {}: {}",
            swap::replaced(store).display(),
            other.chain()
        )),
    }
}

fn free_name(store: &Store) -> String {
    (1..)
        .map(|number| match number {
            1 => "replaced".to_owned(),
            _ => format!("replaced-{number}"),
        })
        .find(|name| !store.place.kept(name).exists())
        .unwrap_or_default()
}

/// Makes a baseline of what was replaced.
fn keep(store: &Store, journal: &Journal, name: &str) -> Result<()> {
    let (replaced, made) = (swap::replaced(store), store.place.work("keeping"));
    if !replaced.exists() && !made.exists() {
        return Ok(());
    }
    let failed = || format!("failed to keep the replaced state as '{name}'");
    if !made.exists() {
        fs::create_dir(&made).context(failed)?;
    }
    if replaced.exists() {
        fs::rename(&replaced, made.join(FILES)).context(failed)?;
    }
    let mut facts = Baseline::now(name, journal.method, store.place.inside);
    // Stopped in a hurry: see `rollback`.
    facts.hot = journal.server.is_some();
    (facts.files, facts.bytes) = count(&made.join(FILES))?;
    store.write_facts(&made, &facts)?;
    sync_directory(&made)?;
    store.name(&made, name)
}

/// Counts files and their bytes.
pub(super) fn count(top: &std::path::Path) -> Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in tree::entries(top)? {
        let path = entry.path();
        let facts = entry
            .metadata()
            .context(|| format!("failed to look at {}", path.display()))?;
        if facts.is_dir() {
            let (more, larger) = count(&path)?;
            files += more;
            bytes += larger;
        } else if facts.is_file() {
            files += 1;
            bytes += facts.len();
        }
    }
    Ok((files, bytes))
}
