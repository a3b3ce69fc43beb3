//! The loop of `evenkeel health run`: probes, verdicts, and everyone who hears of them. Nothing in it waits for a disk,
//! for a reader or for a program: that is done aside.

use crate::action::Actor;
use crate::block::Blocker;
use crate::board::{Board, Shown};
use crate::machine::{Glance, HealthState};
use crate::notify::Notify;
use crate::reason::Cause;
use crate::saver::Saver;
use crate::watch::Watch;
use evenkeel_op::{Cancel, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often requests to stop, orders, and verdicts that grew old are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// In the end, how long the disk is waited for.
const LAST_SAVE: Duration = Duration::from_secs(5);

/// What is told of.
#[derive(Debug)]
pub enum Told<'a> {
    /// A server has another state, or another first cause.
    Changed(&'a Shown),
    /// The operator's program failed for a server, or its port could not be blocked or opened.
    ActionFailed(&'a str, String),
    /// What should outlast this process could not be written.
    NotKept(evenkeel_op::Error),
    /// It could be written again.
    KeptAgain,
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
    pub saver: Option<Saver>,
    /// The operator's program.
    pub actor: Option<Actor>,
    /// The port of the only server.
    pub blocker: Option<Blocker>,
    /// The service manager.
    pub notify: Notify,
    /// It ends when each server has been probed so often.
    pub count: Option<u64>,
}

impl Daemon {
    /// Probes until a stop is asked for, or the count is reached. `tell` hears of changes, and must not wait.
    ///
    /// # Errors
    ///
    /// `Interrupted` or `Terminated`; once the count is reached, why something could not be kept.
    pub fn run(&mut self, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Result<()> {
        let mut last: Vec<Option<Glance>> = vec![None; self.board.len()];
        let mut is_ready = false;
        let mut swept = Instant::now();
        loop {
            if let Err(stopped) = cancel.check() {
                self.notify.stopping();
                // How long ago failures were is known by when this was written.
                if let Err(error) = self.keep_last() {
                    tell(Told::NotKept(error));
                }
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
                self.changed();
            }
            match self.saver.as_ref().and_then(Saver::news) {
                Some(Err(error)) => tell(Told::NotKept(error)),
                Some(Ok(())) => tell(Told::KeptAgain),
                None => {}
            }
            if self.is_over() {
                return self.keep_last();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.count.is_some_and(|count| {
            (0..self.board.len()).all(|server| self.board.probes(server) >= count)
        })
    }

    /// Has everyone hear of a server's change. Returns whether something has to be kept.
    fn follow(
        &mut self,
        server: usize,
        last: &mut Option<Glance>,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> bool {
        let now = self.board.glance(server);
        // That this process was away, or lacks something, says nothing about the server: what was done for it stays.
        let state = match now.cause {
            Some(Cause::Stalled) => HealthState::Starting,
            _ => now.state,
        };
        if let Some(actor) = &mut self.actor
            && let Some(why) = actor.step(server, || self.board.shown(server), state)
        {
            tell(Told::ActionFailed(self.board.name(server), why));
        }
        if let Some(blocker) = &mut self.blocker {
            let failed = blocker.step(state);
            self.board
                .blocked(server, blocker.is_closed(), blocker.failures());
            if let Some(why) = failed {
                tell(Told::ActionFailed(self.board.name(server), why));
            }
        }
        if *last == Some(now) {
            return false;
        }
        if last.is_none_or(|last| (now.state, now.cause) != (last.state, last.cause)) {
            tell(Told::Changed(&self.board.shown(server)));
        }
        *last = Some(now);
        true
    }

    /// Has everything kept that is known now, and waits for it.
    fn keep_last(&mut self) -> Result<()> {
        match self.saver.take() {
            Some(saver) => saver.finish(LAST_SAVE),
            None => Ok(()),
        }
    }

    fn changed(&self) {
        if let Some(saver) = &self.saver {
            saver.want();
        }
        let count = self.board.len();
        let states = (0..count).map(|server| self.board.glance(server).state);
        let up = states.filter(|state| *state == HealthState::Up).count();
        self.notify
            .status(&format!("{up} of {count} servers are up"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::machine::{Remembered, Rules};
    use crate::probe::Observed;
    use crate::watch::Timing;
    use evenkeel_testkit::{Scratch, until};
    use std::os::unix::fs::PermissionsExt;

    const STALE: Duration = Duration::from_millis(300);

    #[test]
    fn a_prober_that_was_away_acts_on_nothing() {
        let room = Scratch::new();
        let (program, log) = (room.join("action"), room.join("log"));
        let body = format!("#!/bin/sh\necho $EVENKEEL_STATE >> {}\n", log.display());
        std::fs::write(&program, body).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let rules = Rules {
            fall: 1,
            rise: 1,
            min_down: Duration::ZERO,
            hold: Duration::ZERO,
            hold_max: Duration::ZERO,
            flaps_max: 0,
            flap_window: Duration::ZERO,
            stale: STALE,
        };
        let action = Action {
            program,
            account: None,
            timeout: Duration::from_secs(20),
        };
        let servers = [("db1".to_owned(), Remembered::default())];
        let timing = Timing {
            interval: STALE,
            timeout: STALE,
        };
        let mut daemon = Daemon {
            watch: Watch::new(Vec::new(), timing),
            board: Arc::new(Board::new(servers, rules)),
            saver: None,
            actor: Some(Actor::new(action, 1)),
            blocker: None,
            notify: Notify::default(),
            count: None,
        };
        let done = || std::fs::read_to_string(&log).unwrap_or_default();
        let mut last = None;
        let mut told = Vec::new();
        let mut follow = |daemon: &mut Daemon| {
            daemon.follow(0, &mut last, &mut |it| {
                if let Told::Changed(shown) = it {
                    told.push(shown.state);
                }
            });
        };
        until("it ran for up", || {
            daemon.board.probed(0, Observed::default());
            follow(&mut daemon);
            done() == "up\n"
        });
        std::thread::sleep(STALE * 2);
        assert_eq!(daemon.board.glance(0).state, HealthState::Down);
        for _ in 0..50 {
            follow(&mut daemon);
            std::thread::sleep(Duration::from_millis(5));
        }
        daemon.board.probed(0, Observed::default());
        follow(&mut daemon);
        // Load balancers are told, for nobody knows.
        assert_eq!(told, [HealthState::Up, HealthState::Down, HealthState::Up]);
        assert_eq!(done(), "up\n");
    }
}
