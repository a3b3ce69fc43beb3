//! The resync itself.

use super::beside::Beside;
use super::broken::Broken;
use super::follow::{Identity, follow, replicate_again, who};
use super::journal::{Journal, Record, Step};
use super::plan::{ResyncPlan, planned, subject};
use super::prepare::{place_of, prepare};
use super::{CloneInto, CloneSibling, ResyncRequest, Sibling};
use evenkeel_op::{Cancel, Error, ErrorKind, Result, Run, Unit};
use evenkeel_server::files::{self, refuse_strangers};
use evenkeel_server::replication::Position;
use evenkeel_server::service::Process;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long is waited for a server whose command to stop has failed.
const SHORT: Duration = Duration::from_secs(5);

/// What a resync did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResyncReport {
    /// What it was to do.
    #[serde(flatten)]
    pub plan: ResyncPlan,
    /// MySQL: the server's UUID, which is its own.
    pub server_uuid: Option<String>,
    /// Bytes that were sent.
    pub bytes_sent: u64,
    /// Blocks of 64 KiB that the old files had.
    pub blocks_reused: u64,
    /// How long the sibling's SQL thread stood.
    pub applier_ms: f64,
    /// Up to where it has applied its source's binary log.
    pub executed_to: Option<Position>,
    /// Where the old files are, if they were kept.
    pub old_kept_at: Option<PathBuf>,
    /// Whether its rows were compared with the source's.
    pub checked: bool,
    /// The command that does so.
    pub check_with: String,
    /// For how long no server answered, of this run.
    pub down_s: f64,
    /// All of it.
    pub seconds: f64,
}

/// Makes the replica new. When it fails before the exchange, the old server runs again, on its old files; after it,
/// the same command does the rest.
pub fn resync(
    request: &ResyncRequest,
    clone: CloneSibling<'_>,
    run: Run<'_>,
) -> Result<ResyncReport> {
    let begun = Instant::now();
    let beside = Beside::open(&request.datadir)?;
    // Before anything is made beside it.
    let found = Journal::peek(&beside)?;
    subject(request, &beside, found.as_ref())?;
    let (journal, found) = Journal::hold(&beside)?;
    let broken = match subject(request, &beside, found.as_ref()) {
        Ok(broken) => broken,
        Err(error) => {
            if found.is_none() {
                journal.end(&beside)?;
            }
            return Err(error);
        }
    };
    let plan = planned(request, &beside, &broken, found.as_ref())?;
    let record = match found {
        Some(found) => Record { broken, ..found },
        None => Record {
            step: Step::Begun,
            datadir: beside.datadir.clone(),
            old: beside.id()?,
            new: None,
            broken,
            sibling: request.sibling.clone(),
            image: None,
        },
    };
    let mut way = Way {
        request,
        beside,
        journal,
        record,
        run,
        stopped: None,
        ending: None,
    };
    if !way.record.is_exchanged(&way.beside)?
        && let Err(error) = way.up_to_exchange(clone)
    {
        return Err(way.give_up(error));
    }
    way.down_to_the_end(plan, begun)
}

/// One resync.
struct Way<'a> {
    request: &'a ResyncRequest,
    beside: Beside,
    journal: Journal,
    record: Record,
    run: Run<'a>,
    stopped: Option<Instant>,
    /// The server's process, which may have been told to end, and how long that may take still.
    ending: Option<(Process, Duration)>,
}

/// Returns the sibling of an interrupted run that has exchanged the directories: what is left needs none.
pub fn known_sibling(datadir: &Path) -> Result<Option<Sibling>> {
    let beside = Beside::open(datadir)?;
    match Journal::peek(&beside)? {
        Some(record) if record.is_exchanged(&beside)? => Ok(Some(record.sibling)),
        _ => Ok(None),
    }
}

impl Way<'_> {
    fn enter(&mut self, step: Step) -> Result<()> {
        self.record.step = step;
        self.journal.write(&self.record)
    }

    fn up_to_exchange(&mut self, clone: CloneSibling<'_>) -> Result<()> {
        let is_another = !self.record.sibling.is(&self.request.sibling);
        if is_another && self.record.new.is_some() {
            self.forget_new()?;
        }
        // A clone that came to its end, and of which nothing was noted, is not known to be one.
        if self.record.new.is_none() || self.record.new != self.beside.other_id()? {
            self.forget_other()?;
            (self.record.new, self.record.image) = (None, None);
            self.record.step = Step::Begun;
        }
        self.record.old = self.beside.id()?;
        self.record.sibling = self.request.sibling.clone();
        self.journal.write(&self.record)?;
        fail::fail_point!("resync::noted");
        self.stop()?;
        fail::fail_point!("resync::stopped");
        if self.record.step == Step::Begun {
            let into = CloneInto {
                target: &self.beside.other(),
                like: &self.beside.datadir,
                owner: self.record.broken.owner,
            };
            let image = clone(into, self.run)?;
            self.record.image = Some(image);
            self.record.new = self.beside.other_id()?;
            self.beside.refuse_strange(self.record.broken.owner)?;
            self.enter(Step::Cloned)?;
        }
        fail::fail_point!("resync::cloned");
        let Some(image) = &self.record.image else {
            return Err(Error::failed("the journal does not say what was cloned"));
        };
        place_of(image)?;
        if self.record.step == Step::Cloned {
            prepare(
                self.request,
                &self.beside,
                &self.record.broken,
                image,
                self.run,
            )?;
            self.enter(Step::Prepared)?;
        }
        fail::fail_point!("resync::prepared");
        self.refuse_if_used()?;
        self.run.cancel.check()?;
        if Some(self.record.old) != Some(self.beside.id()?)
            || self.record.new != self.beside.other_id()?
        {
            return Err(Error::refused(format!(
                "{} is not the directory any more that it was",
                self.beside.datadir.display()
            )));
        }
        self.beside.exchange()
    }

    /// What is at the place of the new files, and not known to the journal, is there because of us: the name says so.
    fn forget_other(&self) -> Result<()> {
        let Some(id) = self.beside.other_id()? else {
            return Ok(());
        };
        let is_ours = self.record.step == Step::Begun && self.record.image.is_none();
        if is_ours && self.was_interrupted() {
            self.beside.refuse_strange(self.record.broken.owner)?;
            return self.beside.remove_other(id);
        }
        Err(Error::refused(format!(
            "{} is there already, and not known to be ours",
            self.beside.other().display()
        ))
        .hint("move it away, or remove it"))
    }

    /// Whether an earlier run has noted anything.
    fn was_interrupted(&self) -> bool {
        matches!(Journal::peek(&self.beside), Ok(Some(_)))
    }

    fn stop(&mut self) -> Result<()> {
        self.stopped = Some(Instant::now());
        let datadir = &self.beside.datadir;
        let Some(pid) = files::process_in(datadir) else {
            return Ok(());
        };
        self.run
            .progress
            .phase("stopping the server", None, Unit::Items);
        let process = Process::now(pid)?;
        refuse_strangers(pid, datadir)?;
        let service = &self.record.broken.service;
        let (deadline, cancel) = (self.request.stop_deadline, self.run.cancel);
        if let Err(error) = service.stop(&process, deadline, cancel) {
            let patience = match error.kind() {
                ErrorKind::Interrupted | ErrorKind::Terminated => deadline,
                // It had its time, or was not told.
                _ => SHORT,
            };
            self.ending = (error.kind() != ErrorKind::Refused).then_some((process, patience));
            return Err(error);
        }
        self.run.progress.end();
        self.refuse_if_used()
    }

    fn refuse_if_used(&self) -> Result<()> {
        files::refuse_running(&self.beside.datadir).map_err(|error| {
            error.hint("something starts the server again: give --stop-with and --start-with")
        })
    }

    /// Undoes what was done before the exchange.
    fn give_up(mut self, error: Error) -> Error {
        if self.record.is_exchanged(&self.beside).unwrap_or(true) {
            return error
                .hint("the new files are in place, and the old ones beside them")
                .hint("the same command again does the rest");
        }
        let mut undo = || -> Result<()> {
            self.wait_for_the_end()?;
            if self.record.new.is_some() && self.record.new == self.beside.other_id()? {
                self.forget_new()?;
            }
            let broken = &self.record.broken;
            if broken.ran && files::process_in(&self.beside.datadir).is_none() {
                let options = broken.options(self.request);
                // Also when this run is interrupted: it is the one that stopped it.
                broken
                    .service
                    .start(&options, self.request.start_deadline, &Cancel::new())?;
                replicate_again(&options, broken.receives, broken.applies)?;
            }
            Ok(())
        };
        match undo().and_then(|()| self.journal.end(&self.beside)) {
            Ok(()) => error.hint("the broken server is as it was"),
            Err(other) => error.hint(format!(
                "the broken server is not as it was, and the same command again repairs that: {}",
                other.chain()
            )),
        }
    }

    /// Removes a clone that is whole. That it is none any more is noted first.
    fn forget_new(&mut self) -> Result<()> {
        let new = self.record.new.take();
        self.record.image = None;
        self.enter(Step::Begun)?;
        new.map_or(Ok(()), |new| self.beside.remove_other(new))
    }

    /// A server that was told to end, and was not waited for, must end before it is started again.
    fn wait_for_the_end(&mut self) -> Result<()> {
        let Some((process, patience)) = self.ending.take() else {
            return Ok(());
        };
        // Also when this run is interrupted.
        match process.wait(Instant::now() + patience, &Cancel::new())? {
            true => Ok(()),
            false => Err(Error::failed(format!(
                "the server's process {} still runs, and may have been told to end",
                process.pid()
            ))),
        }
    }

    fn down_to_the_end(mut self, mut plan: ResyncPlan, begun: Instant) -> Result<ResyncReport> {
        let down = self.start()?;
        fail::fail_point!("resync::started");
        let Some(image) = self.record.image.take() else {
            return Err(Error::failed("the journal does not say what was cloned"));
        };
        let options = self.record.broken.options(self.request);
        // Before it replicates: two of one number throw each other out.
        let identity = who(&options, &self.beside.datadir)?;
        self.refuse_other_identity(&identity)?;
        let followed = follow(self.request, &options, &image, self.run).map_err(continued)?;
        let old_kept_at = self.settle_old()?;
        fail::fail_point!("resync::removed");
        let socket = self.record.broken.socket.display().to_string();
        self.journal.end(&self.beside)?;
        plan.executed = true;
        plan.runs = true;
        plan.server_id = identity.server_id;
        plan.source = followed.source;
        Ok(ResyncReport {
            plan,
            server_uuid: identity.server_uuid,
            bytes_sent: image.bytes_sent,
            blocks_reused: image.blocks_reused,
            applier_ms: image.applier_ms,
            executed_to: followed.executed,
            old_kept_at,
            checked: false,
            check_with: format!("evenkeel replica checksum --socket {socket}"),
            down_s: down,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// Starts the server on the new files; returns for how long none answered.
    fn start(&mut self) -> Result<f64> {
        let broken = &self.record.broken;
        if files::process_in(&self.beside.datadir).is_none() {
            self.run
                .progress
                .phase("starting the server", None, Unit::Items);
            let options = broken.options(self.request);
            broken
                .service
                .start(&options, self.request.start_deadline, self.run.cancel)
                .map_err(|error| {
                    error
                        .hint("the new files are in place, and the old ones beside them")
                        .hint("the same command again starts it, and does the rest")
                })?;
            self.run.progress.end();
        }
        Ok(self
            .stopped
            .map_or(0.0, |since| since.elapsed().as_secs_f64()))
    }

    /// Two servers of one number or name would throw each other out at their source.
    fn refuse_other_identity(&self, found: &Identity) -> Result<()> {
        let broken: &Broken = &self.record.broken;
        let sibling = &self.record.sibling;
        let is_theirs = found.server_id.is_some() && found.server_id == sibling.server_id
            || found.server_uuid.is_some() && found.server_uuid == sibling.server_uuid;
        let is_another = broken.server_id.is_some() && found.server_id != broken.server_id
            || broken.server_uuid.is_some() && found.server_uuid != broken.server_uuid;
        let what = match (is_theirs, is_another) {
            (false, false) => return Ok(()),
            (true, _) => "the new server has the sibling's server_id or UUID",
            (_, true) => "the new server has another server_id or UUID than the broken one had",
        };
        Err(Error::new(ErrorKind::Failed, what)
            .hint("stop it, and see its option files, its start command, and auto.cnf in its data directory")
            .hint("the same command again does the rest"))
    }

    fn settle_old(&self) -> Result<Option<PathBuf>> {
        let old = self.record.old;
        if self.request.keep_old && self.beside.other_id()?.is_some() {
            return self.beside.keep_other(old).map(Some);
        }
        self.run
            .progress
            .phase("removing the old files", None, Unit::Items);
        self.beside.remove_other(old)?;
        self.run.progress.end();
        Ok(None)
    }
}

/// After the exchange, whoever stops it should know that it is not done.
fn continued(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::Terminated => error
            .hint("the new files are in place, and the old ones beside them")
            .hint("the same command again does the rest"),
        _ => error,
    }
}
