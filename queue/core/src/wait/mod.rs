//! Sessions: what a connection owns, and how it waits.

pub(crate) mod token;

use crate::error::{Error, Result};
use crate::table::{Condition, Queue, Waiter};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use token::{Outcome, Token};

/// The longest wait, where a longer one is asked for than clocks can tell.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// One of the tables that a session waits for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The table.
    pub table: Arc<Queue>,
    /// Which of its rows; none is any.
    pub condition: Option<Condition>,
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// This of the tables, counted from 0, gave these rows. They are the session's.
    Rows(usize, Vec<u64>),
    /// The time is over.
    TimedOut,
    /// Somebody ended it.
    Killed,
    /// This of the tables was dropped.
    Dropped(usize),
}

/// What one connection has to do with queues. When it goes its rows go back.
#[derive(Debug)]
pub struct Session {
    owner: u64,
    held: Option<(Arc<Queue>, Vec<u64>)>,
    waiting: Arc<Mutex<Option<Arc<Token>>>>,
}

/// Ends a session's wait from another thread.
#[derive(Debug, Clone)]
pub struct Killer(Arc<Mutex<Option<Arc<Token>>>>);

impl Killer {
    /// Ends the wait there is, if there is one.
    pub fn kill(&self) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = waiting.as_ref() {
            token.settle(Outcome::Killed);
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A session that owns nothing.
    #[must_use]
    pub fn new() -> Self {
        static OWNERS: AtomicU64 = AtomicU64::new(1);
        Self {
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
            held: None,
            waiting: Arc::default(),
        }
    }

    /// As whom it owns rows.
    #[must_use]
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// What it owns: the table and the ids.
    #[must_use]
    pub fn held(&self) -> Option<(&Arc<Queue>, &[u64])> {
        self.held
            .as_ref()
            .map(|(table, ids)| (table, ids.as_slice()))
    }

    /// What ends its waits.
    #[must_use]
    pub fn killer(&self) -> Killer {
        Killer(self.waiting.clone())
    }

    /// Removes the rows that the session owns for good.
    ///
    /// # Errors
    ///
    /// It cannot be written: the session owns them still.
    pub fn end(&mut self) -> Result<()> {
        if let Some((table, ids)) = &self.held {
            match table.remove(self.owner, ids) {
                // With the table its rows are gone.
                Ok(()) | Err(Error::Dropped) => {}
                Err(error) => return Err(error),
            }
        }
        self.held = None;
        Ok(())
    }

    /// Removes some of the rows that the session owns for good; the others stay its own.
    ///
    /// # Errors
    ///
    /// It cannot be written: all are its own still.
    pub fn consume(&mut self, some: &[u64]) -> Result<()> {
        let Some((table, ids)) = &mut self.held else {
            return Ok(());
        };
        let some: HashSet<u64> = some.iter().copied().collect();
        let (gone, kept): (Vec<u64>, Vec<u64>) = ids.iter().partition(|id| some.contains(id));
        match table.remove(self.owner, &gone) {
            Ok(()) | Err(Error::Dropped) => *ids = kept,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Puts the rows that the session owns back, because whoever had it has gone.
    pub fn leave(&mut self) {
        if let Some((table, ids)) = self.held.take() {
            let back = table.give_back(self.owner, &ids);
            table.counters.back_by_close.add(back as u64);
        }
    }

    /// Puts the rows that the session owns back where they were.
    pub fn abort(&mut self) {
        if let Some((table, ids)) = self.held.take() {
            let back = table.give_back(self.owner, &ids);
            table.counters.back_by_abort.add(back as u64);
        }
    }

    /// Removes the rows that the session owns, then waits for up to `most` rows of the first of these
    /// tables that has one. `is_killed` is asked when a [`Killer`] can end the wait, and each second.
    ///
    /// # Errors
    ///
    /// What it owned cannot be removed, and is still its own; or a table cannot be read or is gone.
    pub fn wait(
        &mut self,
        wanted: &[Wanted],
        most: usize,
        timeout: Duration,
        is_killed: &dyn Fn() -> bool,
    ) -> Result<Waited> {
        self.end()?;
        let now = Instant::now();
        let until = now.checked_add(timeout).unwrap_or(now + LONGEST);
        let token = Arc::new(Token::new(self.owner));
        self.publish(Some(token.clone()));
        if is_killed() {
            token.settle(Outcome::Killed);
        }
        let asked = ask(wanted, &token);
        let had_at_once = token.outcome().is_some();
        let outcome = match &asked {
            Ok(()) => token.wait(until, is_killed),
            Err(_) => {
                token.settle(Outcome::Killed);
                token.outcome().expect("it is settled")
            }
        };
        self.publish(None);
        // Where one table gave a row it has forgotten the waiter.
        if wanted.len() > 1 || !matches!(outcome, Outcome::Granted(_)) {
            for one in wanted {
                one.table.forget_waiter(&token);
            }
        }
        if let Outcome::Granted(place) = outcome {
            let counters = &wanted[place as usize].table.counters;
            match had_at_once {
                true => counters.at_once.add(1),
                false => counters.later.add(1),
            }
            return self.granted(wanted, place as usize, most);
        }
        asked?;
        if outcome == Outcome::TimedOut {
            wanted
                .iter()
                .for_each(|one| one.table.counters.timed_out.add(1));
        }
        Ok(match outcome {
            Outcome::Granted(_) | Outcome::TimedOut => Waited::TimedOut,
            Outcome::Killed => Waited::Killed,
            Outcome::Dropped(place) => Waited::Dropped(place as usize),
        })
    }

    fn granted(&mut self, wanted: &[Wanted], place: usize, most: usize) -> Result<Waited> {
        let Wanted { table, condition } = &wanted[place];
        let more = most.saturating_sub(1);
        // The first is there; if there are no others to be had that is no error.
        let _ = table.take(self.owner, condition.as_ref(), more);
        let ids = table.owned_by(self.owner);
        self.held = Some((table.clone(), ids.clone()));
        Ok(Waited::Rows(place, ids))
    }

    fn publish(&self, token: Option<Arc<Token>>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = token;
    }
}

/// Asks each table in turn, and leaves the token with those that have nothing.
fn ask(wanted: &[Wanted], token: &Arc<Token>) -> Result<()> {
    for (place, one) in wanted.iter().enumerate() {
        if token.outcome().is_some() {
            return Ok(());
        }
        let waiter = Waiter {
            token: token.clone(),
            place: place as u32,
            condition: one.condition.clone(),
        };
        if one.table.take_or_wait(waiter)? {
            return Ok(());
        }
    }
    Ok(())
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave();
    }
}
