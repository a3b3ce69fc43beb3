//! A thread that asks one server, on a connection that is kept. Nothing in it has a deadline: whoever gave the
//! order has, and sees by its step where it is.

use super::asked::{Asked, MOST, free_space};
use super::failure::reason_at;
use super::standing::{Outcome, Standing};
use super::step::{Step, Steps};
use super::{Checks, Observed};
use crate::ears::Ears;
use crate::reason::{Cause, Reason};
use evenkeel_op::{Context, ErrorKind, Result};
use evenkeel_server::connect::Ask;
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::BoundedSession;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Of a worker: buffers are on the heap.
const STACK_BYTES: usize = 256 << 10;

/// What a worker says: which server, which of its workers, and what it found.
pub(crate) struct Reported {
    pub(crate) server: usize,
    pub(crate) serial: u64,
    pub(crate) observed: Observed,
    /// Its session, to be asked without the thread from now on.
    pub(crate) standing: Option<Standing>,
}

/// Where workers report to. Whoever listens is woken.
#[derive(Clone)]
pub(crate) struct Tell {
    pub(crate) reports: Sender<Reported>,
    /// Without them, no session is asked without its thread.
    pub(crate) ears: Option<Arc<Ears>>,
}

impl Tell {
    /// Reports. Returns whether anyone is left to hear it.
    fn tell(&self, report: Reported) -> bool {
        let is_heard = self.reports.send(report).is_ok();
        if let Some(ears) = &self.ears {
            ears.ring();
        }
        is_heard
    }
}

/// A thread that asks one server.
pub(crate) struct Worker {
    pub(crate) serial: u64,
    checks: Arc<Checks>,
    /// A session to be ended first, that does not answer.
    orders: Option<SyncSender<Option<u64>>>,
    thread: Option<JoinHandle<()>>,
    /// Its session, while that is asked without the thread.
    standing: Option<Standing>,
    steps: Steps,
    connection: Arc<AtomicU64>,
    /// Since when it has been at work.
    busy: Option<Instant>,
}

impl Worker {
    /// Starts a thread.
    ///
    /// Errors: `Failed` where the system gives no threads.
    pub(crate) fn start(
        (server, serial): (usize, u64),
        options: ConnectOptions,
        checks: Arc<Checks>,
        tell: Tell,
    ) -> Result<Self> {
        let (orders, ordered) = sync_channel::<Option<u64>>(1);
        let steps = Steps::default();
        let connection = Arc::new(AtomicU64::new(0));
        let mut work = Work {
            options,
            checks: checks.clone(),
            steps: steps.clone(),
            connection: connection.clone(),
            asked: None,
        };
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                for kill in ordered {
                    let observed = work.probe_or_give_up(kill);
                    let is_known = observed.unknown.is_empty();
                    let ears = tell.ears.as_ref().filter(|_| is_known);
                    let standing = ears.and_then(|ears| work.lend(ears));
                    let report = Reported {
                        server,
                        serial,
                        observed,
                        standing,
                    };
                    if !tell.tell(report) {
                        return;
                    }
                }
            })
            .context(|| "failed to start a thread for a server")?;
        Ok(Self {
            serial,
            checks,
            orders: Some(orders),
            thread: Some(thread),
            standing: None,
            steps,
            connection,
            busy: None,
        })
    }

    /// Has it ask, once it is idle. A session that does not answer is ended first.
    pub(crate) fn order(&mut self, kill: Option<u64>, now: Instant) {
        if self.busy.is_some() {
            return;
        }
        if let Some(standing) = &mut self.standing {
            match standing.ask(now) {
                Ok(()) => return self.busy = Some(now),
                Err(_) => self.hang_up(),
            }
        }
        self.send(kill, now);
    }

    fn send(&mut self, kill: Option<u64>, since: Instant) {
        let orders = self.orders.as_ref();
        if orders.is_some_and(|to| to.try_send(kill).is_ok()) {
            self.busy = Some(since);
        }
    }

    /// Drops a session that is lost.
    fn hang_up(&mut self) {
        self.standing = None;
        self.connection.store(0, Ordering::Relaxed);
    }

    /// Hears what came in its session. Returns what is known now. If the session is lost, that says nothing about the
    /// server: the thread asks in a new one.
    pub(crate) fn heard(&mut self) -> Option<Observed> {
        match self.standing.as_mut()?.hear() {
            Outcome::NotYet => None,
            Outcome::Known(observed) => Some(observed),
            Outcome::Lost => {
                self.hang_up();
                if let Some(since) = self.busy {
                    self.send(None, since);
                }
                None
            }
        }
    }

    /// Notes that it has reported. Its session may be asked without it from now on.
    pub(crate) fn ended(&mut self, standing: Option<Standing>) {
        self.busy = None;
        if standing.is_some() {
            self.standing = standing;
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// Returns why the server is not up, if it was asked and has not answered.
    pub(crate) fn unanswered(&self, now: Instant) -> Option<Reason> {
        let waited = now.saturating_duration_since(self.busy?);
        Some(self.steps.get().unanswered(waited, &self.checks))
    }

    /// Returns the server's number of its session, if it has one.
    pub(crate) fn session(&self) -> Option<u64> {
        Some(self.connection.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Ends it as soon as it is idle, without waiting for that.
    pub(crate) fn dismiss(mut self) {
        self.orders = None;
    }

    /// Ends it: at once if it is idle, and otherwise as soon as the server answers or hangs up.
    pub(crate) fn retire(mut self) {
        self.orders = None;
        if let (None, Some(thread)) = (self.busy, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

struct Work {
    options: ConnectOptions,
    checks: Arc<Checks>,
    steps: Steps,
    connection: Arc<AtomicU64>,
    asked: Option<Asked>,
}

impl Work {
    /// Whatever a server sends ends no thread.
    fn probe_or_give_up(&mut self, kill: Option<u64>) -> Observed {
        let began = Instant::now();
        let probed = catch_unwind(AssertUnwindSafe(|| self.probe(kill)));
        probed.unwrap_or_else(|_| {
            self.hang_up();
            self.steps.now(Step::None);
            let text = "what listens there answers as no server does";
            Observed::failed(Reason::new(Cause::Refused, text), began.elapsed())
        })
    }

    fn probe(&mut self, kill: Option<u64>) -> Observed {
        let began = Instant::now();
        let mut seen = Observed::default();
        if let Some(datadir) = &self.checks.datadir {
            let step = self.steps.now(Step::Disk);
            if let Err(error) = free_space(datadir, &self.checks, &mut seen) {
                seen.fails(reason_at(&step, &error), &error);
            }
        }
        let was_connected = self.asked.is_some();
        let of_disk = seen.clone();
        let mut outcome = self.ask(kill, &mut seen);
        // A connection that was lost since the last time says nothing about the server: a new one does.
        let is_lost = |ended: &Result<()>| {
            ended
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::Unreachable)
        };
        if was_connected && is_lost(&outcome) {
            self.hang_up();
            seen = of_disk;
            outcome = self.ask(None, &mut seen);
        }
        if let Err(error) = outcome {
            let reason = reason_at(&self.steps.get(), &error);
            // Of an answer that was too long, it is known already.
            if seen.reasons.last() != Some(&reason) {
                if reason.cause == Cause::Stalled {
                    seen.unknown.push(reason.clone());
                }
                seen.reasons.push(reason);
            }
            self.hang_up();
        }
        self.steps.now(Step::None);
        seen.took = began.elapsed();
        seen
    }

    fn ask(&mut self, kill: Option<u64>, seen: &mut Observed) -> Result<()> {
        let asked = match &mut self.asked {
            Some(asked) => asked,
            None => {
                self.steps.now(Step::Login);
                let mut session = BoundedSession::open_patiently(&self.options, MOST)?;
                // Or what is read keeps a transaction open, and with it old rows and locks on tables.
                session.run("SET SESSION autocommit = 1")?;
                self.connection.store(session.id(), Ordering::Relaxed);
                self.asked.insert(Asked::new(session))
            }
        };
        if let Some(id) = kill {
            self.steps.now(Step::Kill);
            // It may have ended meanwhile. If it cannot be ended, it stays the only one besides this.
            match end_own(&mut asked.session, id) {
                Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
                _ => {}
            }
        }
        asked.look(&self.checks, &self.steps, seen)
    }

    /// Hands its session over, if it can be asked without a thread.
    fn lend(&mut self, ears: &Arc<Ears>) -> Option<Standing> {
        if !self.checks.are_plain() || !self.asked.as_ref().is_some_and(Asked::stands) {
            return None;
        }
        let standing = Standing::of(self.asked.take()?, &self.checks, &self.steps, ears).ok();
        if standing.is_none() {
            self.hang_up();
        }
        standing
    }

    fn hang_up(&mut self) {
        self.asked = None;
        self.connection.store(0, Ordering::Relaxed);
    }
}

/// Ends a session of this account. A server that was restarted gives numbers again: then it is somebody else's.
fn end_own(session: &mut BoundedSession, id: u64) -> Result<()> {
    let own = session.value(&format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
    ))?;
    match own.as_deref() {
        Some("1") => session.run(&format!("KILL {id}")),
        _ => Ok(()),
    }
}

/// How long a TCP connection may take: what takes longer never reached the server.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Returns options whose attempts end by themselves where no server was reached, and whose answers are not long.
pub(crate) fn bounded(mut options: ConnectOptions) -> ConnectOptions {
    options.connect_timeout = options.connect_timeout.min(CONNECT_MAX);
    options.packet_max = Some(MOST.bytes);
    options
}
