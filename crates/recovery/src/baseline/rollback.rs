//! `rollback`: the data directory becomes what it was.

use super::find::{Begun, Live, Subject, begin};
use super::heal::{Done, Healed, complete};
use super::journal::{Journal, Phase, Server};
use super::plan::{self, RollbackPlan};
use super::store::{Baseline, FILES, Store};
use super::tree::Making;
use super::user::layout;
use super::{Method, RollbackRequest, Run, inside, swap, tree};
use evenkeel_op::{Cancel, Context, Error, Result, Unit};
use evenkeel_server::files::refuse_strangers;
use evenkeel_server::service::{Process, Service};
use evenkeel_snapshot::Settings;
use evenkeel_snapshot::btrfs::snapshot_subvolume;
use evenkeel_snapshot::holding::{Holding, is_ours, places};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a rollback did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RollbackReport {
    /// What it was to do.
    #[serde(flatten)]
    pub plan: RollbackPlan,
    /// How long the clone of the baseline took; the server was still there.
    pub prepare_s: f64,
    /// How long the server took to end.
    pub stop_s: f64,
    /// How long the data directory was neither in use nor what it is now.
    pub swap_s: f64,
    /// How long the server took to answer.
    pub start_s: f64,
    /// How long it took to throw away what was replaced; the server was there again.
    pub tidy_s: f64,
    /// All of it.
    pub seconds: f64,
    /// Bytes that were compared, where files cannot be cloned.
    pub bytes_compared: u64,
    /// Bytes that were written, where files cannot be cloned.
    pub bytes_written: u64,
    /// What was repaired before.
    pub healed: Option<String>,
}

/// One rollback on its way to the swap.
struct Way<'a> {
    request: &'a RollbackRequest,
    store: &'a Store,
    baseline: &'a Baseline,
    subject: Subject,
    service: Option<Service>,
    run: Run<'a>,
    prepare: Duration,
    stop: Duration,
    stopped: bool,
}

/// Rolls a data directory back to a baseline, which stays. Stops the server and starts it again.
///
/// When it fails before the swap, what was there is there still, and the server runs again; after it,
/// the next command that changes anything continues.
pub fn rollback(request: &RollbackRequest, run: Run) -> Result<RollbackReport> {
    let begun = Instant::now();
    let Begun {
        store,
        subject,
        healed,
    } = begin(&request.whose, run)?;
    let mut subject = match (subject, &healed) {
        (Ok(subject), _) => subject,
        // The same command again, whose server runs now.
        (Err(_), Some(healed)) if healed.finished.as_ref() == Some(&request.name) => {
            return finished(&store, request, healed, begun);
        }
        (Err(error), _) => return Err(error),
    };
    let _alone = keep_backups_away(&store)?;
    let (mut plan, service) = plan::prepare(request, &store.place, &mut subject)?;
    let mut way = Way {
        request,
        store: &store,
        baseline: &plan.baseline,
        subject,
        service,
        run,
        prepare: Duration::ZERO,
        stop: Duration::ZERO,
        stopped: false,
    };
    let mut journal = way.journal();
    journal.write(&store.place)?;
    fail::fail_point!("baseline::rollback::begun");
    if let Err(error) = way.up_to_swap(&mut journal) {
        return Err(way.give_up(error));
    }
    let (prepare, stop) = (way.prepare, way.stop);
    fail::fail_point!("baseline::rollback::swapping");
    let done = complete(&store, &mut journal, run)?;
    plan.executed = true;
    let healed = healed.map(|healed| healed.reported);
    Ok(report(plan, prepare, stop, done, begun.elapsed(), healed))
}

/// All that was asked for was left to do of an interrupted run.
fn finished(
    store: &Store,
    request: &RollbackRequest,
    healed: &Healed,
    begun: Instant,
) -> Result<RollbackReport> {
    let plan = RollbackPlan {
        executed: true,
        datadir: store.datadir.clone(),
        baseline: store.place.find(&request.name)?,
        server: None,
        starts: true,
        keeps_replaced_as: None,
        interrupted: None,
        notes: Vec::new(),
    };
    let (none, reported) = (Duration::ZERO, Some(healed.reported.clone()));
    Ok(report(
        plan,
        none,
        none,
        Done::default(),
        begun.elapsed(),
        reported,
    ))
}

fn report(
    plan: RollbackPlan,
    prepare: Duration,
    stop: Duration,
    done: Done,
    all: Duration,
    healed: Option<String>,
) -> RollbackReport {
    RollbackReport {
        plan,
        prepare_s: prepare.as_secs_f64(),
        stop_s: stop.as_secs_f64(),
        swap_s: done.swap.as_secs_f64(),
        start_s: done.start.as_secs_f64(),
        tidy_s: done.tidy.as_secs_f64(),
        seconds: all.as_secs_f64(),
        bytes_compared: done.patched.bytes_compared,
        bytes_written: done.patched.bytes_written,
        healed,
    }
}

/// Takes the lock of this data directory's snapshots, if it has any: `Busy` while a backup runs.
fn keep_backups_away(store: &Store) -> Result<Option<Holding>> {
    let Ok(places) = places(&layout(&store.datadir), &Settings::default()) else {
        return Ok(None);
    };
    places
        .first()
        .filter(|place| is_ours(&place.holding))
        .map(|place| Holding::open(&place.holding, ""))
        .transpose()
}

impl Way<'_> {
    fn journal(&self) -> Journal {
        let server = self.subject.server.as_ref().zip(self.service.clone());
        let now = jiff::Timestamp::now().to_string();
        Journal {
            phase: Phase::Preparing,
            name: self.baseline.name.clone(),
            method: self.baseline.method,
            token: format!("{now} {}", std::process::id()),
            server: server.map(|(live, service)| {
                let request = self.request;
                Server::new(
                    service,
                    request.start,
                    request.start_deadline,
                    &live.options,
                )
            }),
            keep_replaced: self.request.keep_replaced.clone(),
            logs: self
                .subject
                .logs()
                .into_iter()
                .map(PathBuf::into_os_string)
                .collect(),
            leaving: Vec::new(),
        }
    }

    /// Prepares, stops the server, and notes that the swap may begin.
    fn up_to_swap(&mut self, journal: &mut Journal) -> Result<()> {
        // Inside a data directory nothing may lie that a running server could take for its own.
        let early = self.baseline.method != Method::Copy && !self.store.place.inside;
        if early {
            self.prepare(&journal.token)?;
        }
        self.stop()?;
        fail::fail_point!("baseline::rollback::stopped");
        swap::refuse_if_used(&self.store.datadir)?;
        if self.baseline.method == Method::Copy {
            self.refuse_if_full()?;
        } else if early {
            swap::carry_logs(self.store, &self.subject.logs())?;
        } else {
            self.prepare(&journal.token)?;
            journal.leaving = inside::leaving(self.store, &self.subject.logs())?;
        }
        tree::sync(&self.store.place.dir())?;
        self.run.cancel.check()?;
        journal.enter(Phase::Swapping, &self.store.place)
    }

    /// Makes a clone of the baseline beside the data directory.
    fn prepare(&mut self, token: &str) -> Result<()> {
        let begun = Instant::now();
        self.run
            .progress
            .phase("cloning the baseline", None, Unit::Items);
        let from = self.store.place.kept(&self.baseline.name).join(FILES);
        let to = swap::coming(self.store);
        if self.baseline.method == Method::Btrfs {
            snapshot_subvolume(&from, &to, false)?;
            self.remove_what_is_no_part()?;
        } else {
            let making = Making {
                shares: true,
                from_marked: self.baseline.marked,
                to_marked: false,
                leave_out: &HashSet::new(),
                cancel: self.run.cancel,
            };
            making.make(&from, &to, |_, _| Ok(()))?;
        }
        if !self.store.place.inside {
            swap::mark(self.store, token)?;
        }
        tree::sync(&self.store.place.dir())?;
        self.run.progress.end();
        self.prepare = begun.elapsed();
        fail::fail_point!("baseline::rollback::prepared");
        Ok(())
    }

    /// A snapshot has all that was there: sockets, the pid file, temporary tables.
    fn remove_what_is_no_part(&self) -> Result<()> {
        let coming = swap::coming(self.store);
        for (path, _) in &self.subject.files.excluded {
            if let Ok(inside) = path.strip_prefix(&self.store.datadir)
                && !inside.as_os_str().is_empty()
            {
                empty(&coming.join(inside))?;
            }
        }
        for entry in tree::entries(&coming)? {
            if entry.file_type().is_ok_and(tree::is_made_anew) {
                tree::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        let (Some(server), Some(service)) = (&mut self.subject.server, &self.service) else {
            return Ok(());
        };
        let begun = Instant::now();
        self.run
            .progress
            .phase("stopping the server", None, Unit::Items);
        let process = Process::now(server.pid)?;
        refuse_strangers(server.pid, &self.store.datadir)?;
        if !server.session.is_alive() {
            return Err(Error::failed("the server ended meanwhile"));
        }
        hurry(server);
        self.stopped = true;
        service.stop(&process, self.request.stop_deadline, self.run.cancel)?;
        self.run.progress.end();
        self.stop = begun.elapsed();
        Ok(())
    }

    /// What was dropped since the save has to be written again.
    fn refuse_if_full(&self) -> Result<()> {
        let room = rustix::fs::statvfs(&self.store.datadir)
            .context(|| format!("failed to examine {}", self.store.datadir.display()))?;
        let free = room.f_bavail * room.f_frsize;
        let there = self.subject.bytes();
        let needed = self.baseline.bytes.saturating_sub(there);
        if needed <= free {
            return Ok(());
        }
        Err(Error::refused(format!(
            "the baseline needs {} more than the data directory, but only {} are free",
            evenkeel_op::units::bytes(needed),
            evenkeel_op::units::bytes(free)
        ))
        .hint("free some space first"))
    }

    /// Undoes what was done before the swap.
    fn give_up(&self, error: Error) -> Error {
        let undo = || -> Result<()> {
            // The journal may say that the swap begins: that is undone first.
            if let Some(mut journal) = Journal::read(&self.store.place)?
                && journal.phase == Phase::Swapping
            {
                journal.enter(Phase::Preparing, &self.store.place)?;
            }
            self.store.clear_work()?;
            if let (true, Some(server), Some(service)) =
                (self.stopped, &self.subject.server, &self.service)
                && super::user::user_of_datadir(&self.store.datadir)?.is_none()
            {
                // Also when this run is interrupted: it is the one that stopped it.
                service.start(&server.options, self.request.start_deadline, &Cancel::new())?;
            }
            Journal::end(&self.store.place)
        };
        match undo() {
            Ok(()) => error,
            Err(other) => error.hint(format!("the next run repairs this: {}", other.chain())),
        }
    }
}

/// What is thrown away need not be written out first. The logs are: should it be kept, or the
/// rollback be given up, the server recovers from them.
fn hurry(server: &mut Live) {
    // An account that may not do this stops the server the usual way.
    let _ = server.session.run("SET GLOBAL innodb_fast_shutdown = 2");
}

/// Deletes a file, or what is in a directory.
fn empty(path: &PathBuf) -> Result<()> {
    if path.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
        return tree::entries(path)?
            .iter()
            .try_for_each(|entry| tree::remove(&entry.path()));
    }
    match fs::symlink_metadata(path) {
        Ok(_) => tree::remove(path),
        Err(_) => Ok(()),
    }
}
