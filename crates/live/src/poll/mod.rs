//! Many servers asked at the same times. Each has a thread and a connection of its own, so that one that is slow,
//! frozen or gone delays no other.
//!
//! A server is not asked again before it has answered: at most one statement of ours runs there, however long it
//! takes. That wait has no deadline of its own. A new connection would be one more beside a statement that may
//! still run, and the system ends connections whose other end is gone.

mod worker;

pub use worker::Extent;

use crate::rates::{Change, Counts, Sample, between};
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result};
use evenkeel_server::options::ConnectOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::{Report, Worker};

/// How often a request to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Answers are waited for no longer than this, so that lines come in time.
const GRACE_MAX: Duration = Duration::from_millis(500);
/// Of a worker: the driver's buffers are on the heap.
const STACK_BYTES: usize = 512 << 10;

/// A server to be asked.
#[derive(Debug, Clone)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// How to reach it.
    pub options: ConnectOptions,
}

/// How a server is.
#[derive(Debug, Clone)]
pub enum PollState {
    /// Nothing is known yet.
    Starting,
    /// It answers; there is nothing yet to compare the answer with.
    Answers,
    /// It answers, and did this since the answer before.
    Counted(Counts),
    /// It has not answered in time. Since it was asked, so much time has passed.
    Slow(Duration),
    /// It was started again since the answer before.
    Restarted,
    /// It cannot be asked.
    Failed(Arc<Error>),
}

/// A server as it is seen at one time.
#[derive(Debug, Clone)]
pub struct Server {
    /// What it is called.
    pub name: String,
    /// How it is.
    pub state: PollState,
    /// Its last answer, of whatever age.
    pub last: Option<Arc<Sample>>,
    /// The answer that the last one is compared with.
    pub base: Option<Arc<Sample>>,
    /// Its first failure, while it has never answered.
    pub never: Option<Option<Arc<Error>>>,
}

impl Server {
    /// Returns what it did, if that is known of this interval.
    #[must_use]
    pub fn counts(&self) -> Option<&Counts> {
        match &self.state {
            PollState::Counted(counts) => Some(counts),
            _ => None,
        }
    }

    /// Returns its last answer, unless that is an old one.
    #[must_use]
    pub fn answer(&self) -> Option<&Sample> {
        match self.state {
            PollState::Answers | PollState::Counted(_) | PollState::Restarted => {
                self.last.as_deref()
            }
            PollState::Starting | PollState::Slow(_) | PollState::Failed(_) => None,
        }
    }
}

/// Which server is asked for classes of statements: the costliest question.
#[derive(Debug, Clone)]
pub struct Focus {
    server: usize,
    /// The one that is looked at; `ALL`, as long as none was chosen.
    on: Arc<AtomicUsize>,
}

const ALL: usize = usize::MAX;

impl Focus {
    /// Chooses a server.
    pub fn set(&self, server: usize) {
        self.on.store(server, Ordering::Relaxed);
    }

    fn of(&self, server: usize) -> Self {
        let on = self.on.clone();
        Self { server, on }
    }

    fn is_on(&self) -> bool {
        let on = self.on.load(Ordering::Relaxed);
        on == ALL || on == self.server
    }
}

/// Servers that are asked at intervals.
pub struct Poll {
    focus: Focus,
    seats: Vec<Seat>,
    reports: Receiver<(usize, Report)>,
    interval: Duration,
    next: Instant,
}

/// The place of a server here.
struct Seat {
    server: Server,
    orders: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// When it was asked what it has not answered yet.
    asked: Option<Instant>,
    /// It reported since the last frame.
    is_fresh: bool,
    /// Its last answer in the last frame that had a new one. A frame counts from there, also when a late answer and
    /// one in time come before it.
    base: Option<Arc<Sample>>,
}

impl Poll {
    /// Starts a thread for each server. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// `Failed` where the system gives no threads.
    pub fn start(targets: Vec<Target>, interval: Duration, extent: Extent) -> Result<Self> {
        // One report of each may wait; none of them blocks.
        let (tell, reports) = sync_channel(targets.len());
        let mut seats = Vec::with_capacity(targets.len());
        let focus = Focus {
            server: ALL,
            on: Arc::new(AtomicUsize::new(ALL)),
        };
        for (index, target) in targets.into_iter().enumerate() {
            let (orders, ordered) = sync_channel(1);
            let tell = tell.clone();
            let server = Server {
                name: target.name.clone(),
                state: PollState::Starting,
                last: None,
                base: None,
                never: Some(None),
            };
            let mut worker = Worker::new(target.options, extent, focus.of(index));
            let thread = std::thread::Builder::new()
                .name("ask".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    for () in ordered {
                        if tell.send((index, worker.answer_or_give_up())).is_err() {
                            return;
                        }
                    }
                })
                .context(|| "failed to start a thread for each server")?;
            seats.push(Seat {
                server,
                orders: Some(orders),
                thread: Some(thread),
                asked: None,
                is_fresh: false,
                base: None,
            });
        }
        Ok(Self {
            focus,
            seats,
            reports,
            interval,
            next: Instant::now(),
        })
    }

    /// Returns what chooses the server that is looked at.
    #[must_use]
    pub fn focus(&self) -> Focus {
        self.focus.clone()
    }

    /// Waits until it is time, asks every server that does not owe an answer, waits a moment for answers, and
    /// returns how the servers are.
    ///
    /// # Errors
    ///
    /// `Interrupted` or `Terminated` once a stop was asked for.
    pub fn round(&mut self, cancel: &Cancel) -> Result<Vec<Server>> {
        self.wait(cancel)?;
        let now = Instant::now();
        while self.next <= now {
            self.next += self.interval;
        }
        for seat in &mut self.seats {
            seat.ask(now);
        }
        let until = now + (self.interval / 2).min(GRACE_MAX);
        while self.owing() {
            cancel.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.hear(left.min(LOOK)) {
                break;
            }
        }
        Ok(self.seats.iter_mut().map(|seat| seat.look()).collect())
    }

    /// Waits for the next time, and takes what comes meanwhile: it is late.
    fn wait(&mut self, cancel: &Cancel) -> Result<()> {
        loop {
            cancel.check()?;
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if !self.hear(left.min(LOOK)) {
                std::thread::sleep(left.min(LOOK));
            }
        }
    }

    fn owing(&self) -> bool {
        self.seats.iter().any(|seat| seat.asked.is_some())
    }

    /// Takes a report, if one comes; returns whether more may come.
    fn hear(&mut self, wait: Duration) -> bool {
        match self.reports.recv_timeout(wait) {
            Ok((index, report)) => {
                self.seats[index].take(report);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        for seat in &mut self.seats {
            seat.orders = None;
        }
        for seat in &mut self.seats {
            // Those that owe nothing say goodbye to their servers at once; the others may never end.
            if let (None, Some(thread)) = (seat.asked, seat.thread.take()) {
                let _ = thread.join();
            }
        }
    }
}

impl Seat {
    fn ask(&mut self, now: Instant) {
        let is_idle = self.asked.is_none();
        if is_idle
            && self
                .orders
                .as_ref()
                .is_some_and(|to| to.try_send(()).is_ok())
        {
            self.asked = Some(now);
        }
    }

    fn take(&mut self, report: Report) {
        self.asked = None;
        let server = &mut self.server;
        match report {
            // What it was is what it still is.
            Report::Waits => {}
            Report::Failed(error) => {
                let error = Arc::new(error);
                if let Some(never @ None) = &mut server.never {
                    *never = Some(error.clone());
                }
                server.state = PollState::Failed(error);
            }
            Report::Sampled(mut sample) => {
                let unseen = server.last.as_ref().filter(|_| self.is_fresh);
                let unseen = unseen.and_then(|last| last.details.as_ref());
                if let Some((before, now)) = unseen.zip(sample.details.as_mut()) {
                    now.digests.add(&before.digests);
                }
                server.state = match self.base.as_deref().map(|base| between(base, &sample)) {
                    None | Some(Change::Reconnected) => PollState::Answers,
                    Some(Change::Restarted) => PollState::Restarted,
                    Some(Change::Counted(counts)) => PollState::Counted(counts),
                };
                server.base.clone_from(&self.base);
                server.last = Some(Arc::new(*sample));
                server.never = None;
            }
        }
        self.is_fresh = true;
    }

    /// Returns how the server is. One that failed stays so while it is tried again.
    fn look(&mut self) -> Server {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        if is_fresh {
            self.base = self.server.last.clone();
        }
        if let (false, Some(asked)) = (is_fresh, self.asked)
            && !matches!(self.server.state, PollState::Failed(_))
        {
            self.server.state = match self.server.last {
                Some(_) => PollState::Slow(asked.elapsed()),
                None => PollState::Starting,
            };
        }
        self.server.clone()
    }
}

impl PollState {
    /// Returns the word for it, which is a contract of JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Answers => "first",
            Self::Counted(_) => "up",
            Self::Slow(_) => "slow",
            Self::Restarted => "restart",
            Self::Failed(error) => match error.kind() {
                ErrorKind::Unreachable => "down",
                ErrorKind::Refused => "refused",
                _ => "failed",
            },
        }
    }
}
