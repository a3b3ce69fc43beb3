//! The loop of `evenkeel health run`: probes, verdicts, and everyone who hears of them.

use crate::action::Actor;
use crate::block::Blocker;
use crate::board::{Board, Shown};
use crate::keep::Keep;
use crate::machine::{HealthOrder, HealthState};
use crate::notify::Notify;
use crate::watch::Watch;
use evenkeel_op::{Cancel, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often requests to stop, orders, and verdicts that grew old are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What is told of.
#[derive(Debug)]
pub enum Told<'a> {
    /// A server has another state, or another first cause.
    Changed(&'a Shown),
    /// The operator's program failed for a server, or its port could not be blocked or opened.
    ActionFailed(&'a str, String),
    /// What should outlast this process could not be written.
    NotKept(evenkeel_op::Error),
    /// Each server has been probed.
    Ready,
}

/// Everything that the loop needs.
pub struct Daemon {
    /// The servers that are asked.
    pub watch: Watch,
    /// Where answers come from.
    pub board: Arc<Board>,
    /// What outlasts this process.
    pub keep: Option<Arc<Keep>>,
    /// The operator's program.
    pub actor: Option<Actor>,
    /// The port of the only server.
    pub blocker: Option<Blocker>,
    /// The service manager.
    pub notify: Notify,
    /// It ends when each server has been probed so often.
    pub count: Option<u64>,
}

/// What was told of a server last.
#[derive(Debug, Clone, PartialEq, Default)]
struct Last {
    state: Option<HealthState>,
    cause: Option<crate::reason::Cause>,
    order: Option<HealthOrder>,
    is_locked: bool,
}

impl Daemon {
    /// Probes until a stop is asked for, or the count is reached. `tell` hears of changes.
    ///
    /// # Errors
    ///
    /// `Interrupted` or `Terminated`.
    pub fn run(&mut self, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Result<()> {
        let mut last = vec![Last::default(); self.board.len()];
        let mut is_ready = false;
        let mut swept = Instant::now();
        loop {
            if let Err(stopped) = cancel.check() {
                self.notify.stopping();
                // How long ago failures were is known by when this was written.
                self.keep_now(tell);
                return Err(stopped);
            }
            let known = self.watch.next(LOOK);
            let mut touched: Vec<usize> = Vec::with_capacity(known.len());
            for (server, observed) in known {
                self.board.probed(server, observed);
                touched.push(server);
            }
            let now = Instant::now();
            self.notify.alive(now);
            if now - swept >= LOOK {
                swept = now;
                touched = (0..self.board.len()).collect();
            }
            let mut is_changed = false;
            for server in touched {
                is_changed |= self.follow(server, &mut last[server], tell);
            }
            if !is_ready && self.board.is_complete() {
                is_ready = true;
                self.notify.ready();
                tell(Told::Ready);
            }
            if is_changed {
                self.changed(tell);
            }
            if self.is_over() {
                return Ok(());
            }
        }
    }

    fn is_over(&self) -> bool {
        self.count.is_some_and(|count| {
            (0..self.board.len()).all(|server| self.board.shown(server).counts.probes >= count)
        })
    }

    /// Has everyone hear of a server's change. Returns whether something has to be kept.
    fn follow(&mut self, server: usize, last: &mut Last, tell: &mut dyn FnMut(Told<'_>)) -> bool {
        let verdict = self.board.verdict(server);
        let remembered = self.board.remembered(server);
        let now = Last {
            state: Some(verdict.state),
            cause: verdict.reasons.first().map(|reason| reason.cause),
            order: remembered.order,
            is_locked: remembered.is_locked,
        };
        if let Some(actor) = &mut self.actor
            && let Some(why) = actor.step(server, || self.board.shown(server), verdict.state)
        {
            tell(Told::ActionFailed(self.board.name(server), why));
        }
        if let Some(blocker) = &mut self.blocker {
            let failed = blocker.step(verdict.state);
            self.board
                .blocked(server, blocker.is_closed(), blocker.failures());
            if let Some(why) = failed {
                tell(Told::ActionFailed(self.board.name(server), why));
            }
        }
        if now == *last {
            return false;
        }
        if (now.state, now.cause) != (last.state, last.cause) {
            tell(Told::Changed(&self.board.shown(server)));
        }
        *last = now;
        true
    }

    fn keep_now(&self, tell: &mut dyn FnMut(Told<'_>)) {
        if let Some(keep) = &self.keep
            && let Err(error) = keep.save(&self.board)
        {
            tell(Told::NotKept(error));
        }
    }

    fn changed(&self, tell: &mut dyn FnMut(Told<'_>)) {
        self.keep_now(tell);
        let count = self.board.len();
        let states = (0..count).map(|server| self.board.verdict(server).state);
        let up = states.filter(|state| *state == HealthState::Up).count();
        self.notify
            .status(&format!("{up} of {count} servers are up"));
    }
}
