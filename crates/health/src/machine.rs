//! Whether a server is up, from one probe to the next. Nothing here reads a clock: the time since some fixed moment
//! is passed in, and must never go back.
//!
//! What turns a server down is never delayed: `fall` failures in a row do, whatever else holds. What turns it up
//! is: `rise` successes in a row, the minimum time down, and the hold. The hold begins with the second failure within
//! the window and doubles with each further one; after the last one that is allowed, only a person
//! ends it ([`Machine::release`]).

use crate::reason::{Cause, Reason, few};
use evenkeel_op::units;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// When a server turns up and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// So many failures in a row turn it down.
    pub fall: u32,
    /// So many successes in a row turn it up.
    pub rise: u32,
    /// Once down, it is down for at least this long.
    pub min_down: Duration,
    /// The hold after the second failure within the window.
    pub hold: Duration,
    /// No hold is longer.
    pub hold_max: Duration,
    /// So many failures within the window, and it stays down until a person releases it; 0 for never.
    pub flaps_max: u32,
    /// How long a failure is remembered.
    pub flap_window: Duration,
    /// A last probe that ended longer ago says nothing any more.
    pub stale: Duration,
}

/// What a server is to its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// Not proven yet, which counts as down.
    Starting,
    /// For use.
    Up,
    /// Sound, but a person wants it empty: for those who are on it.
    Draining,
    /// Not for use.
    Down,
    /// Not for use, whatever probes say, because a person says so.
    Maintenance,
}

impl HealthState {
    /// Every state, for metrics.
    pub const ALL: [Self; 5] = [
        Self::Starting,
        Self::Up,
        Self::Draining,
        Self::Down,
        Self::Maintenance,
    ];

    /// Returns the word for it, which is a contract.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Down => "down",
            Self::Maintenance => "maintenance",
        }
    }
}

/// What a person wants of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "order", content = "reason")]
pub enum HealthOrder {
    /// No new clients.
    Drain(String),
    /// No clients, whatever probes say.
    Maintenance(String),
}

impl HealthOrder {
    /// Returns the word for it, which is a contract.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Drain(_) => "drain",
            Self::Maintenance(_) => "maintenance",
        }
    }

    fn is_looser_than(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Drain(_), Self::Maintenance(_)))
    }
}

/// What a server is, since when, and why it is not up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it is.
    pub state: HealthState,
    /// Since this time.
    pub since: Duration,
    /// Why it is not up; empty if it is.
    pub reasons: Vec<Reason>,
}

/// What a server is, in short: what stays the same needs nobody's attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// What it is.
    pub state: HealthState,
    /// Why it is not up: the first cause.
    pub cause: Option<Cause>,
    /// It stays down until a person releases it.
    pub is_locked: bool,
    /// So many orders were taken or ended.
    pub orders: u64,
}

/// By what a server is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecidedBy {
    /// A person.
    Order,
    /// No probe has ended for too long.
    Stalled,
    /// Probes.
    Probes,
}

/// What outlasts the process. Times are ages at the moment of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// It was up.
    pub was_up: bool,
    /// What a person wants.
    pub order: Option<HealthOrder>,
    /// It stays down until a person releases it.
    pub is_locked: bool,
    /// How long ago it failed, in milliseconds.
    pub flap_ages_ms: Vec<u64>,
}

impl Remembered {
    /// Returns what is known of a server that was taken for several: nothing that keeps it out of use is lost.
    pub(crate) fn together(all: Vec<Self>) -> Self {
        let was_up = !all.is_empty() && all.iter().all(|one| one.was_up);
        let mut together = Self {
            was_up,
            ..Self::default()
        };
        for one in all {
            let is_stricter = matches!(one.order, Some(HealthOrder::Maintenance(_)));
            if together.order.is_none() || is_stricter {
                together.order = one.order;
            }
            together.is_locked |= one.is_locked;
            together.flap_ages_ms.extend(one.flap_ages_ms);
        }
        together
    }
}

/// What probes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measured {
    Starting,
    Up,
    Down,
}

/// A server's health over time.
#[derive(Debug, Clone)]
pub struct Machine {
    rules: Rules,
    measured: Measured,
    since: Duration,
    successes: u32,
    failures: u32,
    /// When it failed, within the window.
    flaps: VecDeque<Duration>,
    /// It does not turn up before.
    held_until: Duration,
    is_locked: bool,
    order: Option<(HealthOrder, Duration)>,
    orders: u64,
    /// Of the last probe that failed.
    reasons: Vec<Reason>,
    /// When the last probe ended.
    finished: Option<Duration>,
    /// It was up when the process before this one ended: one success will do.
    was_up: bool,
}

/// Most failures that are remembered.
const FLAPS: usize = 1000;

impl Machine {
    /// Makes the machine of a server that was never probed.
    #[must_use]
    pub fn new(rules: Rules, now: Duration) -> Self {
        Self::resumed(rules, &Remembered::default(), now)
    }

    /// Continues where another process ended.
    #[must_use]
    pub fn resumed(rules: Rules, before: &Remembered, now: Duration) -> Self {
        let mut machine = Self {
            rules,
            measured: Measured::Starting,
            since: now,
            successes: 0,
            failures: 0,
            flaps: VecDeque::new(),
            held_until: now,
            is_locked: before.is_locked,
            order: before.order.clone().map(|order| (order, now)),
            orders: 0,
            reasons: Vec::new(),
            finished: None,
            was_up: before.was_up,
        };
        let mut ages: Vec<u64> = before.flap_ages_ms.clone();
        ages.sort_unstable_by(|a, b| b.cmp(a));
        // An age beyond the beginning of this process's time is as old as that: it is remembered for longer.
        let at = |age: &u64| now.saturating_sub(Duration::from_millis(*age));
        let is_new = |age: &&u64| Duration::from_millis(**age) <= rules.flap_window;
        machine.flaps = ages.iter().filter(is_new).map(at).collect();
        while machine.flaps.len() > FLAPS {
            machine.flaps.pop_front();
        }
        if let (Some(age), false) = (ages.last(), before.was_up) {
            let left = machine
                .hold_after(machine.flaps.len())
                .saturating_sub(Duration::from_millis(*age));
            machine.held_until = now + left;
        }
        // What was not to be used is not about to be.
        if machine.is_locked || machine.held_until > now {
            machine.measured = Measured::Down;
        }
        machine
    }

    /// Returns what outlasts this process.
    #[must_use]
    pub fn remembered(&self, now: Duration) -> Remembered {
        let age =
            |at: &Duration| u64::try_from(now.saturating_sub(*at).as_millis()).unwrap_or(u64::MAX);
        Remembered {
            was_up: match self.measured {
                Measured::Starting => self.was_up,
                measured => measured == Measured::Up,
            },
            order: self.order.as_ref().map(|(order, _)| order.clone()),
            is_locked: self.is_locked,
            flap_ages_ms: self.flaps.iter().map(age).collect(),
        }
    }

    /// Takes the outcome of a probe that has ended: no reason is a success.
    pub fn probed(&mut self, now: Duration, reasons: Vec<Reason>) {
        self.finished = Some(now);
        if reasons.is_empty() {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            self.reasons.clear();
            self.rise(now);
        } else {
            self.successes = 0;
            self.failures = self.failures.saturating_add(1);
            self.reasons = few(reasons);
            self.was_up = false;
            if self.failures >= self.rules.fall && self.measured != Measured::Down {
                self.fall(now);
            }
        }
    }

    fn rise(&mut self, now: Duration) {
        let wanted = if self.was_up { 1 } else { self.rules.rise };
        let may = !self.is_locked && now >= self.held_until && self.successes >= wanted;
        if may && self.measured != Measured::Up {
            (self.measured, self.since) = (Measured::Up, now);
            self.was_up = false;
        }
    }

    fn fall(&mut self, now: Duration) {
        self.held_until = self.held_until.max(now + self.rules.min_down);
        if self.measured == Measured::Up {
            self.forget_old(now);
            self.flaps.push_back(now);
            if self.flaps.len() > FLAPS {
                self.flaps.pop_front();
            }
            let flaps = self.flaps.len();
            self.held_until = self.held_until.max(now + self.hold_after(flaps));
            self.is_locked |= self.rules.flaps_max > 0
                && u32::try_from(flaps).unwrap_or(u32::MAX) >= self.rules.flaps_max;
        }
        (self.measured, self.since) = (Measured::Down, now);
    }

    fn forget_old(&mut self, now: Duration) {
        let window = self.rules.flap_window;
        while self.flaps.front().is_some_and(|at| now - *at > window) {
            self.flaps.pop_front();
        }
    }

    /// Returns the hold after so many failures.
    fn hold_after(&self, flaps: usize) -> Duration {
        let Some(doublings) = flaps.checked_sub(2) else {
            return Duration::ZERO;
        };
        let factor = 1_u32
            .checked_shl(u32::try_from(doublings).unwrap_or(u32::MAX))
            .unwrap_or(u32::MAX);
        self.rules
            .hold
            .saturating_mul(factor)
            .min(self.rules.hold_max)
    }

    /// Takes an order, unless a stricter one holds: a person ends that ([`Machine::release`]). Returns whether it did.
    pub fn order(&mut self, order: HealthOrder, now: Duration) -> bool {
        let holds = self.order.as_ref().map(|(holds, _)| holds);
        if holds.is_some_and(|holds| order.is_looser_than(holds)) {
            return false;
        }
        self.order = Some((order, now));
        self.orders += 1;
        true
    }

    /// Returns what a person wants.
    #[must_use]
    pub fn wanted(&self) -> Option<&HealthOrder> {
        self.order.as_ref().map(|(order, _)| order)
    }

    /// Ends every order, holds and locks, and forgets failures: a person says that it is well. It turns up with the
    /// next success that is enough.
    pub fn release(&mut self, now: Duration) {
        self.order = None;
        self.orders += 1;
        self.is_locked = false;
        self.flaps.clear();
        self.held_until = now;
    }

    /// Returns what the server is now.
    #[must_use]
    pub fn verdict(&self, now: Duration) -> Verdict {
        let (state, since, by) = self.stands(now);
        let mut reasons = match (by, &self.order, self.finished) {
            (DecidedBy::Order, Some((order, _)), _) => vec![ordered(order)],
            (DecidedBy::Stalled, _, Some(finished)) => {
                let age = units::duration(now.saturating_sub(finished));
                vec![Reason::new(
                    Cause::Stalled,
                    format!("the last probe ended {age} ago"),
                )]
            }
            _ if state == HealthState::Up => Vec::new(),
            _ => self.why_not(now),
        };
        if by != DecidedBy::Order
            && let Some((order, _)) = &self.order
        {
            // It will count once the server is well.
            reasons.push(ordered(order));
        }
        Verdict {
            state,
            since,
            reasons,
        }
    }

    /// Returns the same in short. It is asked for all the time, and makes nothing that has to be freed.
    #[must_use]
    pub fn glance(&self, now: Duration) -> Glance {
        let (state, _, by) = self.stands(now);
        let cause = match by {
            DecidedBy::Order => Some(Cause::Order),
            DecidedBy::Stalled => Some(Cause::Stalled),
            DecidedBy::Probes if state == HealthState::Up => None,
            DecidedBy::Probes => Some(match self.reasons.first() {
                Some(reason) => reason.cause,
                None if self.is_locked => Cause::Flapping,
                None if now < self.held_until => Cause::Held,
                None => Cause::Starting,
            }),
        };
        Glance {
            state,
            cause,
            is_locked: self.is_locked,
            orders: self.orders,
        }
    }

    fn stands(&self, now: Duration) -> (HealthState, Duration, DecidedBy) {
        if let Some((HealthOrder::Maintenance(_), since)) = &self.order {
            return (HealthState::Maintenance, *since, DecidedBy::Order);
        }
        if let Some(finished) = self.finished
            && now.saturating_sub(finished) > self.rules.stale
        {
            let since = finished + self.rules.stale;
            return (HealthState::Down, since, DecidedBy::Stalled);
        }
        // Those who are on a drained server stay there while its prober restarts: it was well a moment ago.
        let was_well = self.was_up && now.saturating_sub(self.since) <= self.rules.stale;
        match (self.measured, &self.order) {
            (Measured::Up, Some((_, since))) => (HealthState::Draining, *since, DecidedBy::Order),
            (Measured::Starting, Some((_, since))) if was_well => {
                (HealthState::Draining, *since, DecidedBy::Order)
            }
            (Measured::Up, None) => (HealthState::Up, self.since, DecidedBy::Probes),
            (Measured::Starting, _) => (HealthState::Starting, self.since, DecidedBy::Probes),
            (Measured::Down, _) => (HealthState::Down, self.since, DecidedBy::Probes),
        }
    }

    /// Returns why it is not up, although it may answer.
    fn why_not(&self, now: Duration) -> Vec<Reason> {
        let mut reasons = self.reasons.clone();
        if self.is_locked {
            let text = format!(
                "it failed {} times within {}, and stays down until 'evenkeel health undrain'",
                self.flaps.len(),
                units::duration(self.rules.flap_window)
            );
            reasons.push(Reason::new(Cause::Flapping, text));
        } else if now < self.held_until {
            let left = units::duration(self.held_until - now);
            reasons.push(Reason::new(Cause::Held, format!("for {left} more")));
        }
        if reasons.is_empty() {
            let text = match self.successes < self.rules.rise {
                true => format!("{} good probes of {}", self.successes, self.rules.rise),
                false => "the next good probe turns it up".to_owned(),
            };
            reasons.push(Reason::new(Cause::Starting, text));
        }
        reasons
    }

    /// Returns how often it failed within the window.
    #[must_use]
    pub fn flaps(&self, now: Duration) -> usize {
        let window = self.rules.flap_window;
        let is_new = |at: &&Duration| now.saturating_sub(**at) <= window;
        self.flaps.iter().filter(is_new).count()
    }

    /// Returns when the last probe ended.
    #[must_use]
    pub fn finished(&self) -> Option<Duration> {
        self.finished
    }
}

fn ordered(order: &HealthOrder) -> Reason {
    let (HealthOrder::Drain(why) | HealthOrder::Maintenance(why)) = order;
    Reason::new(Cause::Order, why)
}
