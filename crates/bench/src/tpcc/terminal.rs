//! A session that runs transactions in the specification's mix.

use super::TransactionKind;
use super::like;
use super::link::{Link, Trouble};
use super::stall::Stall;
use super::transactions::{Draw, Transaction};
use evenkeel_drive::{Outcome, Revival, Unit, Work};
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a transaction is retried after deadlocks before it counts as failed.
const RETRIES: u32 = 100;
/// Thinking takes at most this many times its mean (5.2.5.4).
const THINKING_MAX: f64 = 10.0;

/// What terminals tell beside their units.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Statements sent.
    pub(super) statements: AtomicU64,
    /// Failures and losses, in the server's words, and how often each.
    pub(super) failures: Mutex<BTreeMap<String, u64>>,
    /// Commits of transactions that write.
    pub(super) stall: Stall,
}

/// Cards of which each transaction takes the next, so that every 23 are of the mix.
#[derive(Debug, Default)]
struct Deck(Vec<TransactionKind>);

impl Deck {
    fn next(&mut self, random: &mut fastrand::Rng) -> TransactionKind {
        if self.0.is_empty() {
            let cards = TransactionKind::ALL.iter();
            self.0 = cards
                .flat_map(|kind| std::iter::repeat_n(*kind, kind.cards()))
                .collect();
            random.shuffle(&mut self.0);
        }
        self.0.pop().expect("a deck that was just filled")
    }
}

/// One terminal.
pub(super) struct Terminal {
    pub(super) options: ConnectOptions,
    pub(super) database: String,
    pub(super) link: Option<Link>,
    pub(super) draw: Draw,
    pub(super) reported: Arc<Reported>,
    /// Whether somebody sits at a keyboard.
    pub(super) keyed: bool,
    deck: Deck,
    next: Option<TransactionKind>,
    /// How long the result of the last one is thought about.
    thinking: Duration,
}

impl Terminal {
    pub(super) fn new(
        options: &ConnectOptions,
        database: &str,
        draw: Draw,
        reported: Arc<Reported>,
        keyed: bool,
    ) -> evenkeel_op::Result<Self> {
        Ok(Self {
            link: Some(Link::open(options, database, draw.faults.is_some())?),
            options: options.clone(),
            database: database.to_owned(),
            draw,
            reported,
            keyed,
            deck: Deck::default(),
            next: None,
            thinking: Duration::ZERO,
        })
    }

    fn attempt(&mut self, kind: TransactionKind) -> Unit {
        let transaction = Transaction::draw(kind, &mut self.draw);
        let retries = self.draw.faults.map_or(RETRIES, |_| like::RETRIES);
        let mut unit = Unit::done(kind as usize);
        let Some(link) = &mut self.link else {
            return Unit::ended(kind as usize, Outcome::Lost);
        };
        loop {
            let trouble = match transaction.run(link) {
                Ok(()) => return unit,
                Err(trouble) => trouble,
            };
            let lost = trouble.is_loss() || link.roll_back().is_err();
            if !lost && trouble.is_conflict() && unit.retries < retries {
                unit.retries += 1;
                continue;
            }
            note(&self.reported, &trouble);
            unit.outcome = match lost {
                true => Outcome::Lost,
                false => Outcome::Failed,
            };
            return unit;
        }
    }
}

fn note(reported: &Reported, trouble: &Trouble) {
    let mut failures = reported.failures.lock().unwrap_or_else(|e| e.into_inner());
    *failures.entry(trouble.reported()).or_default() += 1;
}

impl Work for Terminal {
    fn once(&mut self) -> Unit {
        let drawn = self.next.take();
        let kind = drawn.unwrap_or_else(|| self.deck.next(&mut self.draw.random));
        let before = self.link.as_ref().map_or(0, |link| link.sent);
        let unit = self.attempt(kind);
        let after = self.link.as_ref().map_or(0, |link| link.sent);
        self.reported
            .statements
            .fetch_add(after - before, Ordering::Relaxed);
        match unit.outcome {
            Outcome::Done if kind.writes() => self.reported.stall.committed(),
            Outcome::Lost => self.link = None,
            Outcome::Done | Outcome::Failed => (),
        }
        if self.keyed {
            let drawn = -self.draw.random.f64().max(f64::MIN_POSITIVE).ln();
            let mean = kind.thinking_s();
            self.thinking = Duration::from_secs_f64(mean * drawn.min(THINKING_MAX));
        }
        unit
    }

    fn pause(&mut self) -> Duration {
        if !self.keyed {
            return Duration::ZERO;
        }
        let kind = self.deck.next(&mut self.draw.random);
        self.next = Some(kind);
        self.thinking + Duration::from_secs_f64(kind.keying_s())
    }

    fn revive(&mut self) -> Revival {
        match Link::open(&self.options, &self.database, self.draw.faults.is_some()) {
            Ok(link) => {
                self.link = Some(link);
                Revival::Back
            }
            Err(_) => Revival::NotYet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_is_of_the_mix() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut deck = Deck::default();
        for _ in 0..10 {
            let drawn: Vec<TransactionKind> = (0..23).map(|_| deck.next(&mut random)).collect();
            let count = |kind| drawn.iter().filter(|one| **one == kind).count();
            assert_eq!(TransactionKind::ALL.map(count), [10, 10, 1, 1, 1]);
        }
    }
}
