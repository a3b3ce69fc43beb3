//! `save`: takes the state of a data directory, of a running server at one point in time.

use super::find::{Begun, Live, Subject, begin};
use super::stamps::Stamps;
use super::store::{Baseline, FILES, Store, check_name};
use super::tree::{Amount, Making};
use super::user::user_of_datadir;
use super::{Method, Run, Whose, method, patch, tree};
use evenkeel_op::{Context, Error, ErrorKind, Result, Unit, units};
use evenkeel_server::files::{ServerFiles, refuse_strangers};
use evenkeel_server::tables::tablespaces;
use evenkeel_snapshot::btrfs::snapshot_subvolume;
use evenkeel_snapshot::pause::{self, Target};
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What should be saved, under which name.
#[derive(Debug, Clone)]
pub struct SaveRequest {
    /// Whose data directory.
    pub whose: Whose,
    /// The name.
    pub name: String,
    /// Put it in the place of one that has the name.
    pub replace: bool,
    /// How long a running server may be paused.
    pub pause_limit: Duration,
}

impl SaveRequest {
    /// Plans a save under a new name; a running server is paused for ten seconds at most.
    pub fn new(whose: Whose, name: impl Into<String>) -> Self {
        Self {
            whose,
            name: name.into(),
            replace: false,
            pause_limit: Duration::from_secs(10),
        }
    }
}

/// What was saved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SaveReport {
    /// The data directory.
    pub datadir: PathBuf,
    /// What is kept now.
    pub baseline: Baseline,
    /// How long the server was paused, in milliseconds; none when it did not run.
    pub pause_ms: Option<u64>,
    /// How long all of it took.
    pub seconds: f64,
    /// What was repaired before.
    pub healed: Option<String>,
    /// What should be known of it.
    pub notes: Vec<String>,
}

/// Saves the state of a data directory.
pub fn save(request: &SaveRequest, run: Run) -> Result<SaveReport> {
    let begun = Instant::now();
    check_name(&request.name)?;
    let Begun {
        store,
        subject,
        healed,
    } = begin(&request.whose, run)?;
    let mut subject = subject?;
    if !request.replace && store.place.find(&request.name).is_ok() {
        return Err(
            Error::refused(format!("there is a baseline '{}'", request.name))
                .hint("replace it: --replace")
                .hint("or choose another name"),
        );
    }
    let way = method::choose(&subject.files, &store.place.work(""), store.place.inside)?;
    refuse_copy_of_running(way, &subject)?;
    let notes = notes(&mut subject)?;
    let made = store.place.work("new");
    fs::create_dir(&made).context(|| format!("failed to create {}", made.display()))?;
    fail::fail_point!("baseline::save::begun");
    let taken = take(&store, &mut subject, way, &made, request, run);
    let (baseline, pause) = match taken {
        Ok(taken) => taken,
        Err(error) => {
            // The failure says more than that this could not be tidied up either.
            let _ = store.clear_work();
            return Err(error);
        }
    };
    store.name(&made, &request.name)?;
    Ok(SaveReport {
        datadir: store.datadir.clone(),
        baseline,
        pause_ms: pause.map(|pause| pause.as_millis() as u64),
        seconds: begun.elapsed().as_secs_f64(),
        healed: healed.map(|healed| healed.reported),
        notes,
    })
}

fn refuse_copy_of_running(way: Method, subject: &Subject) -> Result<()> {
    if way != Method::Copy || subject.server.is_none() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "the filesystem of {} can neither clone nor snapshot files, and copying a running server \
         does not give a valid baseline",
        subject.datadir().display()
    ))
    .hint("stop the server, and name the data directory: --datadir DIR")
    .hint("or move the data directory to XFS or btrfs"))
}

/// Makes the baseline in `made`, up to its name.
fn take(
    store: &Store,
    subject: &mut Subject,
    way: Method,
    made: &Path,
    request: &SaveRequest,
    run: Run,
) -> Result<(Baseline, Option<Duration>)> {
    let mut baseline = Baseline::now(&request.name, way, store.place.inside);
    let leave_out: HashSet<PathBuf> = subject
        .files
        .excluded
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    run.progress.phase("saving", None, Unit::Items);
    let datadir = subject.datadir().to_owned();
    let work = || freeze(store, way, &datadir, &made.join(FILES), &leave_out, run);
    let (amount, pause) = match &mut subject.server {
        Some(server) => {
            baseline.hot = true;
            baseline.server_version = Some(server.abilities.version_text.clone());
            let paused = still(server, &datadir, request.pause_limit, work)?;
            (paused.value, Some(paused.lasted))
        }
        None => {
            let amount = work()?;
            if let Some(user) = user_of_datadir(&datadir)? {
                return Err(Error::failed(format!(
                    "{user} started to use {} meanwhile",
                    datadir.display()
                )));
            }
            (amount, None)
        }
    };
    fail::fail_point!("baseline::save::taken");
    tree::sync(&store.place.dir())?;
    (baseline.files, baseline.bytes) = match way {
        Method::Btrfs => (subject.files.files.len() as u64, subject.bytes()),
        _ => (amount.files, amount.bytes),
    };
    if way == Method::Copy {
        let mut stamps = Stamps::default();
        patch::note(&datadir, &datadir, &mut stamps)?;
        stamps.write(made)?;
    }
    store.write_facts(made, &baseline)?;
    fail::fail_point!("baseline::save::facts_written");
    run.progress.end();
    Ok((baseline, pause))
}

/// Does the work while the server is paused.
fn still<T>(
    server: &mut Live,
    datadir: &Path,
    limit: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<pause::Paused<T>> {
    let target = Target::now(server.pid)?;
    refuse_strangers(server.pid, datadir)?;
    // Asked after the process was taken hold of: it is the one that answers.
    if !server.session.is_alive() {
        return Err(Error::failed("the server ended meanwhile"));
    }
    // What is on disk already is not waited for in the pause.
    tree::sync(datadir)?;
    pause::paused(&target, limit, work).map_err(|error| {
        error.hint(format!(
            "the server may be paused for {} at most: --pause-limit TIME",
            units::duration(limit)
        ))
    })
}

/// Takes the files as they are at this moment.
fn freeze(
    store: &Store,
    way: Method,
    datadir: &Path,
    to: &Path,
    leave_out: &HashSet<PathBuf>,
    run: Run,
) -> Result<Amount> {
    if way == Method::Btrfs {
        // A snapshot of btrfs contains only what was synced.
        tree::sync(datadir)?;
        snapshot_subvolume(datadir, to, true)?;
        return Ok(Amount::default());
    }
    let making = Making {
        shares: way == Method::Reflink,
        from_marked: false,
        to_marked: store.place.inside,
        leave_out,
        cancel: run.cancel,
    };
    making.make(datadir, to, |_, _| Ok(()))
}

/// Looks at what the server has and what is left out, and says what should be known of it.
fn notes(subject: &mut Subject) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let Some(server) = &mut subject.server else {
        return Ok(notes);
    };
    if subject.files.has_nontransactional_user_tables() {
        notes.push(
            "some tables have no transactions: after a rollback they may need a repair, as after \
             a crash; a save with the server stopped avoids that"
                .to_owned(),
        );
    }
    match tablespaces(&mut server.session, &server.abilities) {
        Ok(listed) => refuse_lacking(&listed, &subject.files)?,
        Err(error) if error.kind() == ErrorKind::Refused => notes.push(
            "the account cannot see InnoDB's list of tablespaces (it needs PROCESS), so nothing \
             was compared with it"
                .to_owned(),
        ),
        Err(error) => return Err(error),
    }
    Ok(notes)
}

/// Refuses to leave out what the server says that it has: after a rollback it would be gone for good.
fn refuse_lacking(listed: &BTreeSet<PathBuf>, files: &ServerFiles) -> Result<()> {
    for tablespace in listed {
        let plain = tablespace.strip_prefix(".").unwrap_or(tablespace);
        let path = files.datadir.join(plain);
        let left_out = files.excluded.iter();
        if let Some((_, why)) = left_out.into_iter().find(|(out, _)| path.starts_with(out)) {
            return Err(Error::refused(format!(
                "the server's tablespace {} would not be in the baseline: it looks like {why}",
                path.display()
            ))
            .hint("rename or move it, or use evenkeel backup"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_lists_is_not_left_out() {
        let data = Path::new("/data");
        let mut files = ServerFiles::of_no_server("data", data, Vec::new()).unwrap();
        files.excluded = vec![
            (data.join("odd.ibd"), "a core dump"),
            (data.join("tmp"), "temporary files"),
        ];
        let listed = |path: &str| BTreeSet::from([PathBuf::from(path)]);
        for path in ["./odd.ibd", "odd.ibd", "/data/odd.ibd", "./tmp/t.ibd"] {
            let error = refuse_lacking(&listed(path), &files).unwrap_err();
            assert!(error.to_string().contains("looks like"), "{error}");
        }
        refuse_lacking(&listed("./shop/odd.ibd"), &files).unwrap();
    }
}
