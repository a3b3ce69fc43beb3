//! Stops the appliers of a replica for a moment, cleanly, and lets them continue.

use super::note::{self, Note, Noted, ServerRun, Standing, Stands, Threads};
use super::seed::SourceCoordinates;
use super::statements::{self, Order};
use super::status::{Channel, Positioning, Replication, ThreadState, temporary_tables};
use super::watchdog::{Ending, Order as Watch, Program, Watchdog};
use crate::abilities::Abilities;
use crate::connect::Session;
use crate::options::ConnectOptions;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result, units};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How often the status is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(50);
/// More than it takes to say the next thing.
const IDLE: Duration = Duration::from_secs(60);
/// How long an applier that was started may take until it runs.
const START_WAIT: Duration = Duration::from_secs(10);

/// How long appliers may be waited for, and stand.
#[derive(Debug, Clone)]
pub struct StopLimits {
    /// Until they stand: they end the transaction that they are at, and have no temporary tables.
    pub deadline: Duration,
    /// From then on; afterwards the watchdog starts them.
    pub hold: Duration,
}

/// Appliers that stand. Dropping it starts them again.
#[derive(Debug)]
pub struct Stopped {
    options: ConnectOptions,
    session: Session,
    abilities: Abilities,
    process: ServerRun,
    /// All channels, as they stand.
    stands: Vec<Channel>,
    gtid: Option<String>,
    workers: u64,
    /// What ran before: to be started. `None` when nothing did, or it is done.
    guarded: Option<Guarded>,
    since: Instant,
}

#[derive(Debug)]
struct Guarded {
    channels: Vec<String>,
    note: Note,
    watchdog: Watchdog,
}

impl Guarded {
    /// Notes what is about to be stopped, and starts the watchdog.
    fn new(
        options: &ConnectOptions,
        noted: Noted,
        program: &Program,
        limits: &StopLimits,
    ) -> Result<Self> {
        let note = Note::write(&noted)?;
        fail::fail_point!("applier::noted");
        let whole = limits.deadline + limits.hold;
        let watch = Watch::new((options, None), &noted, note.path(), whole);
        match Watchdog::start(program, &watch) {
            Ok(watchdog) => Ok(Self {
                channels: noted.channels,
                note,
                watchdog,
            }),
            Err(error) => {
                note.remove();
                Err(error)
            }
        }
    }
}

impl Stopped {
    /// Stops every applier that runs on the server; `None` when the server replicates from nobody. `pid` is the
    /// server's process, if it is on this host. To be called before any lock is taken: an applier that waits for
    /// one cannot stop.
    ///
    /// One run at a time: the server itself keeps others out, wherever they run. When this host dies with the
    /// watchdog, appliers of a server elsewhere stand until somebody starts them.
    ///
    /// Errors: `LockTimeout` when they could not be stopped in time, or have temporary tables all
    /// the time; they then run on. `Refused` without the privilege, `Busy` beside another run.
    pub fn stop(
        options: &ConnectOptions,
        pid: Option<i32>,
        program: &Program,
        limits: &StopLimits,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Option<Self>> {
        let mut session = Session::open(options)?;
        let process = ServerRun::of(&mut session, pid)?;
        // It says nothing for no longer than the SQL thread may stand. A host that has lost power keeps its lock so long.
        let idle = limits.deadline + limits.hold + IDLE;
        session.run(&format!("SET SESSION wait_timeout = {}", idle.as_secs()))?;
        let abilities = Abilities::probe(&mut session)?;
        let before = Replication::read(&mut session, &abilities)?;
        if before.channels.is_empty() {
            return Ok(None);
        }
        be_alone(&mut session)?;
        let running = running(&before)?;
        for channel in &running {
            // Does nothing, but needs what the start will need: better refused now than then.
            session.run(&statements::applier(Order::Start, channel, &abilities))?;
        }
        let until = Instant::now() + limits.deadline;
        let guarded = if running.is_empty() {
            None
        } else {
            let noted = Noted {
                process: process.clone(),
                server: note::identity(&mut session)?,
                channels: running,
                threads: Threads::Applier,
                from: None,
                time_s: note::now_s(),
            };
            Some(Guarded::new(options, noted, program, limits)?)
        };
        fail::fail_point!("applier::guarded");
        let mut stopped = Self {
            options: options.clone(),
            session,
            abilities,
            process,
            stands: before.channels,
            gtid: before.gtid,
            workers: before.workers,
            guarded,
            since: Instant::now(),
        };
        stopped.stop_cleanly(until, progress, cancel)?;
        Ok(Some(stopped))
    }

    /// Returns where the appliers stand in their sources' binary logs. One that did not run before
    /// may have gaps if it worked in parallel: its place is not said.
    #[must_use]
    pub fn coordinates(&self) -> Vec<SourceCoordinates> {
        let without_gaps = self.workers == 0 || !self.abilities.parallel_gaps;
        let stopped = self.guarded.as_ref().map(|guarded| &guarded.channels);
        let known = |name: &String| without_gaps || stopped.is_some_and(|all| all.contains(name));
        self.stands
            .iter()
            .map(|channel| {
                let place = channel.executed.clone();
                SourceCoordinates::of(channel)
                    .at(place.filter(|_| known(&channel.name)))
                    .with_gtid(self.gtid.as_deref(), &self.abilities)
            })
            .collect()
    }

    pub(super) fn has_stopped(&self, channel: &str) -> bool {
        let guarded = self.guarded.as_ref();
        guarded.is_some_and(|guarded| guarded.channels.iter().any(|one| one == channel))
    }

    pub(super) fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    pub(super) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// They are on their way: what the watchdog waits for begins now.
    pub(super) fn put_watchdog_off(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            guarded.watchdog.put_off();
        }
    }

    /// From here on a later run can only go by that they stand.
    pub(super) fn forget_where_they_stand(&self) -> std::io::Result<()> {
        self.guarded
            .as_ref()
            .map_or(Ok(()), |guarded| guarded.note.moves())
    }

    /// Returns for how long they have stood.
    #[must_use]
    pub fn stood(&self) -> Duration {
        self.since.elapsed()
    }

    /// Fails when an applier is not where it stood: somebody else started it, or the watchdog did.
    ///
    /// Errors: `Failed` then; those of asking.
    pub fn still_stands(&mut self) -> Result<()> {
        match self.moved()? {
            None => Ok(()),
            Some(channel) => Err(ran_meanwhile(&channel)),
        }
    }

    /// Lets the appliers continue. Fails when one was not where it stood, or was started by
    /// somebody else or the watchdog meanwhile: then what was done while they stood is not of one
    /// place. They run again in any case, or the watchdog starts them.
    pub fn start(mut self) -> Result<()> {
        let moved = self.moved();
        let ending = self.resume()?;
        let moved = moved?;
        if ending == Some(Ending::Deadline) {
            return Err(Error::failed(format!(
                "the SQL thread was stopped for too long ({}), so the watchdog started it",
                units::duration(self.since.elapsed())
            ))
            .hint("raise --lock-hold-limit, or find out what took so long"));
        }
        match moved {
            None => Ok(()),
            Some(channel) => Err(ran_meanwhile(&channel)),
        }
    }

    /// Returns a channel whose applier is not where it stood.
    fn moved(&mut self) -> Result<Option<String>> {
        let lasts = self.reconnect()?;
        let now = Replication::read(&mut self.session, &self.abilities)?;
        let same = |then: &Channel| {
            now.channels.iter().any(|channel| {
                channel.name == then.name
                    && channel.executed == then.executed
                    && channel.applier == then.applier
            })
        };
        let moved = self.stands.iter().find(|then| !same(then));
        Ok(moved
            .map(|channel| channel.name.clone())
            .or_else(|| (!lasts).then(String::new)))
    }

    /// Starts what ran before and waits until it runs; `None` when nothing did.
    fn resume(&mut self) -> Result<Option<Ending>> {
        let Some(guarded) = self.guarded.take() else {
            return Ok(None);
        };
        fail::fail_point!("applier::starting");
        if !self.process.may_last() {
            // Its appliers started with it, or are not meant to run.
            let ending = guarded.watchdog.dismiss();
            guarded.note.remove();
            return Ok(Some(ending));
        }
        // On an error the watchdog is dropped untold, and does it.
        if !self.reconnect()? {
            let ending = guarded.watchdog.dismiss();
            guarded.note.remove();
            return Ok(Some(ending));
        }
        let standing = Standing {
            channels: &guarded.channels,
            threads: Threads::Applier,
            from: None,
            source: None,
        };
        note::start_standing(&mut self.session, &self.abilities, &standing, None)?;
        self.wait_until_they_run(&guarded.channels)?;
        fail::fail_point!("applier::started");
        let ending = guarded.watchdog.dismiss();
        guarded.note.remove();
        Ok(Some(ending))
    }

    /// Connects again where the session was lost. Returns whether the server is the one that it was.
    fn reconnect(&mut self) -> Result<bool> {
        if self.session.is_alive() {
            return Ok(self.process.may_last());
        }
        self.session = Session::open(&self.options)?;
        self.process.lasts(&mut self.session)
    }

    fn wait_until_they_run(&mut self, channels: &[String]) -> Result<()> {
        let until = Instant::now() + START_WAIT;
        loop {
            let now = Replication::read(&mut self.session, &self.abilities)?;
            // One that meets an error was started all the same.
            let waiting = now.channels.iter().find(|channel| {
                channels.contains(&channel.name)
                    && channel.applier != ThreadState::Running
                    && channel.applier_error.is_none()
            });
            match waiting {
                None => return Ok(()),
                Some(channel) if Instant::now() >= until => {
                    return Err(Error::failed(format!(
                        "the SQL thread of channel '{}' was started, and does not run",
                        channel.name
                    ))
                    .hint("look into the server's error log"));
                }
                Some(_) => std::thread::sleep(POLL),
            }
        }
    }

    /// Stops until the appliers stand with nothing open: no temporary tables, no gaps.
    fn stop_cleanly(
        &mut self,
        until: Instant,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<()> {
        let channels = match &self.guarded {
            Some(guarded) => guarded.channels.clone(),
            None => return self.has_no_tables(),
        };
        let mut reported = false;
        loop {
            self.wait_for_tables(until, cancel, || {
                if !std::mem::replace(&mut reported, true) {
                    progress.note(
                        "the SQL thread has temporary tables: waiting until they are dropped"
                            .into(),
                    );
                }
            })?;
            self.run_until(self.orders(Order::Stop, &channels), until)?;
            self.wait_until_they_stand(&channels, until, cancel)?;
            if self.workers > 0 && self.abilities.parallel_gaps {
                self.close_gaps(&channels, until, cancel)?;
            }
            fail::fail_point!("applier::stopped");
            if temporary_tables(&mut self.session)? == 0 {
                break;
            }
            self.run_until(self.orders(Order::Start, &channels), until)?;
        }
        self.since = Instant::now();
        self.note_where_they_stand()?;
        fail::fail_point!("applier::stands");
        Ok(())
    }

    pub(super) fn note_where_they_stand(&mut self) -> Result<()> {
        let now = Replication::read(&mut self.session, &self.abilities)?;
        (self.stands, self.gtid) = (now.channels, now.gtid);
        if let Some(guarded) = &self.guarded {
            let stands: Stands = self
                .stands
                .iter()
                .map(|channel| (channel.name.clone(), channel.executed.clone()))
                .collect();
            guarded.note.stands(&stands);
        }
        Ok(())
    }

    fn orders(&self, order: Order, channels: &[String]) -> Vec<String> {
        let statement = |name: &String| statements::applier(order, name, &self.abilities);
        channels.iter().map(statement).collect()
    }

    /// For appliers that did not run anyway.
    fn has_no_tables(&mut self) -> Result<()> {
        match temporary_tables(&mut self.session)? {
            0 => Ok(()),
            some => Err(gave_up(&format!(
                "the SQL thread was stopped with {some} temporary tables, which no image contains"
            ))
            .hint("start it, and let the backup stop it")),
        }
    }

    fn wait_for_tables(
        &mut self,
        until: Instant,
        cancel: &Cancel,
        mut tell: impl FnMut(),
    ) -> Result<()> {
        loop {
            cancel.check()?;
            let some = temporary_tables(&mut self.session)?;
            if some == 0 {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(gave_up(&format!(
                    "the SQL thread had {some} temporary tables all the time: no image contains \
                     them, and later statements would fail on a server without them"
                ))
                .hint("allow more time with --lock-deadline")
                .hint("or set binlog_format=ROW on the source, which needs no such tables")
                .hint("or back up without --stop-applier"));
            }
            tell();
            std::thread::sleep(POLL);
        }
    }

    fn wait_until_they_stand(
        &mut self,
        channels: &[String],
        until: Instant,
        cancel: &Cancel,
    ) -> Result<()> {
        loop {
            cancel.check()?;
            let now = Replication::read(&mut self.session, &self.abilities)?;
            let running = now.channels.iter().any(|channel| {
                channels.contains(&channel.name) && channel.applier == ThreadState::Running
            });
            if !running {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(gave_up("the SQL thread did not stop in time"));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Has the workers do what is missing between the transactions that are done. A replica that
    /// goes by GTIDs needs none of that: its source sends what is missing.
    fn close_gaps(&mut self, channels: &[String], until: Instant, cancel: &Cancel) -> Result<()> {
        let now = Replication::read(&mut self.session, &self.abilities)?;
        let by_place = now.channels.iter().filter(|channel| {
            channels.contains(&channel.name) && channel.positioning == Positioning::File
        });
        let orders = by_place
            .map(|one| statements::applier(Order::CloseGaps, &one.name, &self.abilities))
            .collect();
        self.run_until(orders, until)?;
        fail::fail_point!("applier::closing_gaps");
        self.wait_until_they_stand(channels, until, cancel)
    }

    /// Runs statements on a connection of their own, for no longer than `until`: a stop waits for
    /// the end of the transaction that the applier is at.
    pub(super) fn run_until(&mut self, statements: Vec<String>, until: Instant) -> Result<()> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut session = Session::open(&self.options)?;
        let (sender, done) = sync_channel(1);
        std::thread::Builder::new()
            .name("applier".to_owned())
            .spawn(move || {
                let all = statements.iter().try_for_each(|sql| session.run(sql));
                let _ = sender.send(all);
            })
            .map_err(|e| Error::failed("failed to start a thread").because(e))?;
        match done.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(Error::failed("a thread died")),
            Err(RecvTimeoutError::Timeout) => {
                // The stop still comes about, when the transaction ends. Only the watchdog can wait
                // for that: it is dropped untold.
                self.guarded = None;
                Err(gave_up(
                    "the SQL thread is in the middle of a long transaction and did not stop in time",
                )
                .hint("it will run again by itself; allow more time with --lock-deadline"))
            }
        }
    }
}

/// Keeps other runs out for as long as the session lasts, wherever they run.
pub(super) fn be_alone(session: &mut Session) -> Result<()> {
    // A session that has just ended may have it for a moment.
    let got = session.value("SELECT GET_LOCK('evenkeel: applier', 2)")?;
    match got.as_deref() {
        Some("1") => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Busy,
            "another run of evenkeel has stopped this server's SQL thread",
        )
        .hint("wait until it is done")),
    }
}

/// Returns the channels whose appliers run, and may be stopped.
fn running(replication: &Replication) -> Result<Vec<String>> {
    let running = replication
        .channels
        .iter()
        .filter(|channel| channel.applier == ThreadState::Running);
    running
        .map(|channel| match channel.until {
            false => Ok(channel.name.clone()),
            true => Err(Error::refused(format!(
                "the SQL thread of channel '{}' was started with UNTIL; a stop would lose that \
                 position",
                channel.name
            ))
            .hint("wait until it has, or back up without --stop-applier")),
        })
        .collect()
}

fn ran_meanwhile(channel: &str) -> Error {
    Error::failed(format!(
        "the SQL thread of channel '{channel}' ran although it was stopped"
    ))
    .hint("another session started it: run again")
}

fn gave_up(message: &str) -> Error {
    Error::new(ErrorKind::LockTimeout, message)
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // What fails here is left to the watchdog.
        let _ = self.resume();
    }
}
