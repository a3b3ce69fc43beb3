//! What is known about every server, in memory: one thread writes it, others answer from it.

use crate::machine::{Glance, HealthOrder, HealthState, Machine, Remembered, Rules, Verdict};
use crate::probe::Observed;
use crate::reason::{Cause, Reason};
use serde::Serialize;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Servers, by their places.
#[derive(Debug)]
pub struct Board {
    servers: Vec<Posted>,
    began: Instant,
    /// What the clock of the machines said when it began: failures of earlier processes are before that.
    offset: Duration,
}

/// A server here.
#[derive(Debug)]
struct Posted {
    name: String,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    machine: Machine,
    observed: Observed,
    counts: Counts,
    /// Its port is closed to new clients; `None` if nobody closes it.
    is_blocked: Option<bool>,
}

/// What has been counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Probes that ended.
    pub probes: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// How often its port could not be blocked or opened.
    pub block_failures: u64,
}

/// A server as it is now. Its serialised form is a contract of the HTTP answers.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// What it is called.
    pub server: String,
    /// What it is to its clients.
    pub state: HealthState,
    /// For how long.
    pub for_s: f64,
    /// Why it is not up.
    pub reasons: Vec<Reason>,
    /// What a person wants of it, in one word, also while something else keeps it out of use; null for nothing.
    pub order: Option<&'static str>,
    /// Clients can write; null if that is not known.
    pub writable: Option<bool>,
    /// All its sources are replicated from; null if nobody asked.
    pub replicating: Option<bool>,
    /// How far behind; null if that is not known.
    pub lag_s: Option<u64>,
    /// Connections in use.
    pub connections: Option<u64>,
    /// Connections that are allowed.
    pub connections_max: Option<u64>,
    /// Threads that run a statement.
    pub threads_running: Option<u64>,
    /// Free bytes below its data directory; null if nobody asked.
    pub disk_free: Option<u64>,
    /// Its port is blocked, as far as is known; null without a port to block.
    pub blocked: Option<bool>,
    /// How long the last probe took.
    pub probe_s: f64,
    /// How long ago it ended; null if none has.
    pub probe_age_s: Option<f64>,
    /// How often it failed within the window.
    pub flaps: usize,
    /// What has been counted since the start.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Board {
    /// Makes the board of these servers, each with what an earlier process knew of it.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = (String, Remembered)>, rules: Rules) -> Self {
        let offset = rules.flap_window.saturating_add(rules.hold_max);
        let servers = servers.into_iter().map(|(name, before)| Posted {
            name,
            known: Mutex::new(Known {
                machine: Machine::resumed(rules, &before, offset),
                observed: Observed::default(),
                counts: Counts::default(),
                is_blocked: None,
            }),
        });
        Self {
            servers: servers.collect(),
            began: Instant::now(),
            offset,
        }
    }

    fn now(&self) -> Duration {
        self.offset + self.began.elapsed()
    }

    fn known(&self, server: usize) -> MutexGuard<'_, Known> {
        let known = &self.servers[server].known;
        known.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns how many servers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Returns a server's name.
    #[must_use]
    pub fn name(&self, server: usize) -> &str {
        &self.servers[server].name
    }

    /// Returns the server of a name; the only one for an empty name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        if name.is_empty() {
            return (self.servers.len() == 1).then_some(0);
        }
        self.servers.iter().position(|server| server.name == name)
    }

    /// Takes what a probe found.
    pub fn probed(&self, server: usize, observed: Observed) {
        let now = self.now();
        let mut known = self.known(server);
        known.counts.probes += 1;
        known.counts.failures += u64::from(!observed.reasons.is_empty());
        known.machine.probed(now, observed.reasons.clone());
        let before = std::mem::replace(&mut known.observed, observed);
        // While single failures are borne, so is what they leave unknown.
        if known.machine.glance(now).state == HealthState::Up {
            let seen = &mut known.observed;
            seen.is_writable = seen.is_writable.or(before.is_writable);
            seen.replicates = seen.replicates.or(before.replicates);
            seen.lag_s = seen.lag_s.or(before.lag_s);
        }
    }

    /// Takes a person's order, unless a stricter one holds. Returns whether it did.
    pub fn order(&self, server: usize, order: HealthOrder) -> bool {
        let now = self.now();
        self.known(server).machine.order(order, now)
    }

    /// Ends a person's order, and what only a person ends.
    pub fn release(&self, server: usize) {
        let now = self.now();
        self.known(server).machine.release(now);
    }

    /// Notes whether a server's port is blocked, and how often that could not be done.
    pub fn blocked(&self, server: usize, is_blocked: bool, failures: u64) {
        let mut known = self.known(server);
        known.is_blocked = Some(is_blocked);
        known.counts.block_failures = failures;
    }

    /// Returns what a server is.
    #[must_use]
    pub fn verdict(&self, server: usize) -> Verdict {
        let now = self.now();
        self.known(server).machine.verdict(now)
    }

    /// Returns what tells whether anyone has to hear of a server.
    #[must_use]
    pub fn glance(&self, server: usize) -> Glance {
        let now = self.now();
        self.known(server).machine.glance(now)
    }

    /// Returns how many probes have ended.
    #[must_use]
    pub fn probes(&self, server: usize) -> u64 {
        self.known(server).counts.probes
    }

    /// Returns what outlasts this process.
    #[must_use]
    pub fn remembered(&self, server: usize) -> Remembered {
        let now = self.now();
        self.known(server).machine.remembered(now)
    }

    /// Returns whether every server has been probed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        (0..self.len()).all(|server| self.known(server).machine.finished().is_some())
    }

    /// Returns everything about a server.
    #[must_use]
    pub fn shown(&self, server: usize) -> Shown {
        let now = self.now();
        let known = self.known(server);
        let verdict = known.machine.verdict(now);
        let finished = known.machine.finished();
        let seen = &known.observed;
        Shown {
            server: self.servers[server].name.clone(),
            state: verdict.state,
            for_s: now.saturating_sub(verdict.since).as_secs_f64(),
            reasons: verdict.reasons,
            order: known.machine.wanted().map(HealthOrder::word),
            writable: seen.is_writable,
            replicating: seen.replicates,
            lag_s: seen.lag_s,
            connections: seen.connections,
            connections_max: seen.connections_max,
            threads_running: seen.running,
            disk_free: seen.disk_free,
            blocked: known.is_blocked,
            probe_s: seen.took.as_secs_f64(),
            probe_age_s: finished.map(|at| now.saturating_sub(at).as_secs_f64()),
            flaps: known.machine.flaps(now),
            counts: known.counts,
        }
    }
}

impl Shown {
    /// Returns the first reason as one word and a sentence; empty if it is up.
    #[must_use]
    pub fn why(&self) -> String {
        let first = self.reasons.first();
        first.map(ToString::to_string).unwrap_or_default()
    }

    /// Returns whether it is not up for this cause.
    #[must_use]
    pub fn is_for(&self, cause: Cause) -> bool {
        self.reasons.iter().any(|reason| reason.cause == cause)
    }
}
