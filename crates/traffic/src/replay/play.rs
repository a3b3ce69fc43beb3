//! The plan is played: each session on a connection and a thread of its own.

use super::gate::Gates;
use super::plan::{Plan, Session};
use super::spool::Window;
use super::step::{Step, What};
use super::tally::{Outcome, Tally};
use evenkeel_op::progress::Unit;
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::{Connection, Played, PlayedStatement};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

/// A session's thread needs little.
const STACK: usize = 512 << 10;
/// How often a wait looks whether there is an end to it.
const LOOK: Duration = Duration::from_millis(100);
/// A session that sends its first statement later than planned has no chance: it connects this much before.
const AHEAD: Duration = Duration::from_millis(20);
/// After so many statements progress is told.
const TELL_EVERY: u64 = 64;

/// How fast to play.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// So many times as fast as it was.
    Times(f64),
    /// Each session as fast as the server answers it, no more of them at a time than there were.
    Max,
}

/// How to play.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How fast.
    pub speed: Speed,
    /// Statements of this long from the beginning warm the server up; they are not counted.
    pub warm_up: Duration,
    /// Statements wait for those of other sessions whose result they had seen.
    pub keep_commit_order: bool,
    /// The server refuses whatever writes.
    pub read_only: bool,
    /// A lost session ends all.
    pub stop_on_loss: bool,
}

/// A session's prepared statements by their captured numbers; of those that the server refused, with which error.
type Prepared = HashMap<u32, std::result::Result<PlayedStatement, u16>>;

/// What the threads share.
struct Stage<'a> {
    plan: &'a Plan,
    options: &'a Options,
    connect: &'a ConnectOptions,
    run: Run<'a>,
    gates: Gates,
    tally: Tally,
    begun: Instant,
    /// How many sessions run, and the signal that one ended.
    running: AtomicUsize,
    mutex: Mutex<()>,
    ended: Condvar,
    lost_sessions: AtomicUsize,
    loss: Mutex<Option<Error>>,
    is_stopped: AtomicBool,
}

/// Plays a plan on a server.
///
/// # Errors
///
/// `Unreachable` or `Refused` if no session at all could connect; `Interrupted`.
pub fn play(
    plan: &Plan,
    connect: &ConnectOptions,
    options: &Options,
    run: Run<'_>,
) -> Result<Outcome> {
    run.progress
        .phase("replaying statements", Some(plan.statements), Unit::Items);
    let stage = Stage {
        plan,
        options,
        connect,
        run,
        gates: Gates::new(plan.sessions.len(), plan.is_exact),
        tally: Tally::new(&plan.original, plan.mode),
        begun: Instant::now(),
        running: AtomicUsize::new(0),
        mutex: Mutex::new(()),
        ended: Condvar::new(),
        lost_sessions: AtomicUsize::new(0),
        loss: Mutex::new(None),
        is_stopped: AtomicBool::new(false),
    };
    std::thread::scope(|scope| stage.start_all(scope));
    let seconds = stage.begun.elapsed().as_secs_f64();
    run.progress.event(evenkeel_op::progress::Event::PhaseEnded);
    run.cancel.check()?;
    let loss = stage
        .loss
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let mut outcome = stage.tally.end(&plan.original);
    outcome.seconds = seconds;
    outcome.lost_sessions = stage.lost_sessions.into_inner() as u64;
    if let Some(error) = loss {
        if outcome.statements + outcome.warm_up == 0 {
            return Err(error);
        }
        outcome.loss = Some(error.chain());
    }
    Ok(outcome)
}

impl Stage<'_> {
    fn start_all<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut order: Vec<u32> = (0..self.plan.sessions.len() as u32).collect();
        order.sort_by_key(|number| self.plan.sessions[*number as usize].window.0);
        // When those that began before this one ended, the earliest first.
        let mut ends = std::collections::BinaryHeap::new();
        for number in order {
            let session = &self.plan.sessions[number as usize];
            while ends
                .peek()
                .is_some_and(|std::cmp::Reverse(end)| *end <= session.window.0)
            {
                ends.pop();
            }
            let at_a_time = ends.len();
            ends.push(std::cmp::Reverse(session.window.1));
            if !self.wait_for_turn(session, at_a_time) {
                self.gates.ended(number);
                self.lose(session.statements);
                continue;
            }
            self.running.fetch_add(1, Ordering::SeqCst);
            let thread = Builder::new().stack_size(STACK);
            let started = thread.spawn_scoped(scope, move || self.session(number));
            if let Err(error) = started {
                let error = Error::failed("failed to start a session's thread").because(error);
                self.session_ended(number, session.statements, Err(error));
            }
        }
    }

    /// Waits until a session may begin; false when it is not to.
    fn wait_for_turn(&self, session: &Session, at_a_time: usize) -> bool {
        if self.options.speed != Speed::Max {
            let due = self.due(session.from_ns).saturating_sub(AHEAD);
            self.sleep_until(self.begun + due);
        }
        // A slower server must not get more sessions at a time than there were.
        let mut held = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while self.running.load(Ordering::SeqCst) > at_a_time && !self.is_over() {
            held = self
                .ended
                .wait_timeout(held, LOOK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        drop(held);
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.run.cancel.is_cancelled() || self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns when after the beginning something is due that was captured then.
    fn due(&self, at_ns: i64) -> Duration {
        let after = at_ns.saturating_sub(self.plan.from_ns).max(0) as f64;
        match self.options.speed {
            Speed::Times(times) => Duration::from_nanos((after / times) as u64),
            Speed::Max => Duration::ZERO,
        }
    }

    fn sleep_until(&self, due: Instant) {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_over() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn lose(&self, statements: u64) {
        self.tally.lost.fetch_add(statements, Ordering::Relaxed);
    }

    fn session(&self, number: u32) {
        let mut done = 0;
        let ended = self.steps(number, &mut done);
        let statements = self.plan.sessions[number as usize].statements;
        self.session_ended(number, statements - done, ended);
    }

    fn session_ended(&self, number: u32, left: u64, ended: Result<()>) {
        if let Err(error) = ended {
            self.lose(left);
            if !matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Terminated) {
                self.lost_sessions.fetch_add(1, Ordering::SeqCst);
                let mut loss = self.loss.lock().unwrap_or_else(PoisonError::into_inner);
                loss.get_or_insert(error);
                if self.options.stop_on_loss {
                    self.is_stopped.store(true, Ordering::Relaxed);
                }
            }
        }
        self.gates.ended(number);
        let _held = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_all();
    }

    /// Does a session's steps.
    fn steps(&self, number: u32, done: &mut u64) -> Result<()> {
        let session = &self.plan.sessions[number as usize];
        let mut connection = self.open()?;
        let (mut step, mut window) = (Step::default(), Window::default());
        let mut prepared = Prepared::new();
        let mut next = Some(session.first);
        let (mut untold, mut steps) = (0, 0);
        while let Some(place) = next {
            if self.is_over() {
                self.tell(untold);
                return Err(Error::new(ErrorKind::Interrupted, "stopped"));
            }
            next = self.plan.steps.read(place, &mut step, &mut window)?;
            if step.what == What::Quit {
                break;
            }
            if self.plan.is_concurrent(number, steps) {
                step.did.returns = step.did.returns.beside_a_change();
            }
            self.step(&mut connection, &mut prepared, &step)?;
            steps += 1;
            self.gates.done(number, steps);
            let is_statement = u64::from(step.what.is_statement());
            *done += is_statement;
            untold += is_statement;
            if untold >= TELL_EVERY {
                self.tell(std::mem::take(&mut untold));
            }
        }
        self.tell(untold);
        Ok(())
    }

    fn tell(&self, by: u64) {
        let progress = self.run.progress;
        progress.event(evenkeel_op::progress::Event::Advanced { by });
    }

    fn open(&self) -> Result<Connection> {
        let mut connection = Connection::open(self.connect, self.run.cancel)?;
        // As the clients that sent several statements in one had it.
        connection.allow_several()?;
        if self.options.read_only {
            connection.run("SET SESSION TRANSACTION READ ONLY")?;
        }
        Ok(connection)
    }

    fn step(
        &self,
        connection: &mut Connection,
        prepared: &mut Prepared,
        step: &Step,
    ) -> Result<()> {
        let due = self.begun + self.due(step.at_ns);
        let is_paced = self.options.speed != Speed::Max;
        if is_paced {
            self.sleep_until(due);
        }
        let gates = &self.gates;
        let after = match self.options.keep_commit_order {
            true => &step.after[..],
            false => &[],
        };
        let waits = u64::from(!after.is_empty());
        self.tally.waits.fetch_add(waits, Ordering::Relaxed);
        if !gates.wait(after, step.in_transaction, self.run.cancel)? {
            self.tally.gave_up.fetch_add(1, Ordering::Relaxed);
        }
        let sent = Instant::now();
        let played = self.play(connection, prepared, step)?;
        if !step.what.is_statement() {
            return Ok(());
        }
        // What could not be prepared is not sent: it took no time that would say anything.
        let is_refused = matches!(prepared.get(&step.statement), Some(Err(_)));
        let is_sent = step.what != What::Execute || !is_refused;
        let took = is_sent.then(|| sent.elapsed());
        if self.is_warm_up(step) {
            self.tally.warm_up.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if is_paced {
            self.tally.late(sent.saturating_duration_since(due));
        }
        let place = self.plan.classes.get(step.class as usize);
        let place = place.copied().flatten();
        self.tally.add(place, step, &played, took);
        Ok(())
    }

    fn play(
        &self,
        connection: &mut Connection,
        prepared: &mut Prepared,
        step: &Step,
    ) -> Result<Played> {
        match step.what {
            What::Statement => return connection.play(&step.text),
            What::Execute => return execute(connection, prepared, step),
            What::Schema => return schema(connection.play_default_schema(&step.text)?, step),
            What::Prepare => {
                let known = connection.play_prepare(&step.text)?;
                prepared.insert(step.statement, known);
            }
            What::Close => {
                if let Some(Ok(known)) = prepared.remove(&step.statement) {
                    connection.play_close(known)?;
                }
            }
            What::Reset => {
                prepared.clear();
                return self.reset(connection);
            }
            What::Quit => {}
        }
        Ok(Played::default())
    }

    fn reset(&self, connection: &mut Connection) -> Result<Played> {
        let played = connection.play_reset()?;
        if self.options.read_only {
            connection.run("SET SESSION TRANSACTION READ ONLY")?;
        }
        Ok(played)
    }

    fn is_warm_up(&self, step: &Step) -> bool {
        let after = step.at_ns.saturating_sub(self.plan.from_ns).max(0) as u64;
        Duration::from_nanos(after) < self.options.warm_up
    }
}

/// Runs a prepared statement; one that the server did not prepare fails as that did.
fn execute(connection: &mut Connection, prepared: &Prepared, step: &Step) -> Result<Played> {
    match prepared.get(&step.statement) {
        Some(Ok(known)) => connection.play_execute(known, &step.values),
        Some(Err(error)) => Ok(Played {
            error: Some(*error),
            ..Played::default()
        }),
        None => Err(Error::failed(
            "a captured statement runs that was never prepared",
        )),
    }
}

/// In another schema, statements would reach other tables.
fn schema(played: Played, step: &Step) -> Result<Played> {
    let Some(number) = played.error else {
        return Ok(played);
    };
    let name = String::from_utf8_lossy(&step.text);
    Err(
        Error::failed(format!("failed to use the database {name}: error {number}"))
            .hint("create it, or name another one with --map-database"),
    )
}
