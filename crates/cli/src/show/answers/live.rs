//! What servers do right now, as documents.

use super::Failure;
use evenkeel_live::poll::{Server, State};
use evenkeel_live::rates::{Counts, total_per_s};
use serde::Serialize;

/// An interval of `qps`.
#[derive(Debug, Serialize)]
pub struct QpsDocument<'a> {
    schema: &'static str,
    /// When the interval ended.
    time: String,
    servers: Vec<WatchedServer<'a>>,
    total: Total,
}

/// One server in an interval.
#[derive(Debug, Serialize)]
pub(super) struct WatchedServer<'a> {
    server: &'a str,
    /// `starting`, `first`, `up`, `slow`, `restart`, `down`, `refused` or `failed`.
    state: &'static str,
    /// Between its two answers; null, as all below, where there are no rates.
    seconds: Option<f64>,
    #[serde(flatten)]
    counts: KindCounts,
    #[serde(flatten)]
    rates: Rates,
    /// Since it was asked, when it has not answered.
    waiting_seconds: Option<f64>,
    failure: Option<Failure>,
}

/// Statements in the interval.
#[derive(Debug, Default, Serialize)]
struct KindCounts {
    queries: Option<u64>,
    selects: Option<u64>,
    inserts: Option<u64>,
    updates: Option<u64>,
    deletes: Option<u64>,
    commits: Option<u64>,
}

/// Statements per second.
#[derive(Debug, Default, Serialize)]
struct Rates {
    queries_per_s: Option<f64>,
    selects_per_s: Option<f64>,
    inserts_per_s: Option<f64>,
    updates_per_s: Option<f64>,
    deletes_per_s: Option<f64>,
    commits_per_s: Option<f64>,
}

/// All servers that have rates.
#[derive(Debug, Serialize)]
struct Total {
    /// How many have rates.
    servers: usize,
    #[serde(flatten)]
    rates: Rates,
}

impl<'a> QpsDocument<'a> {
    /// Describes an interval.
    #[must_use]
    pub fn new(time: String, servers: &'a [Server]) -> Self {
        Self {
            schema: "evenkeel/qps/1",
            time,
            servers: servers.iter().map(WatchedServer::of).collect(),
            total: Total::of(servers),
        }
    }

    /// Returns it as a line.
    #[must_use]
    pub fn line(&self) -> String {
        // A plain struct: it cannot fail to serialise.
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }
}

impl<'a> WatchedServer<'a> {
    pub(super) fn of(server: &'a Server) -> Self {
        let counts = server.counts();
        Self {
            server: &server.name,
            state: server.state.word(),
            seconds: counts.map(|counts| counts.seconds),
            counts: counts.map(KindCounts::of).unwrap_or_default(),
            rates: counts
                .map(|counts| Rates::of(&[counts]))
                .unwrap_or_default(),
            waiting_seconds: match &server.state {
                State::Slow(waiting) => Some(waiting.as_secs_f64()),
                _ => None,
            },
            failure: match &server.state {
                State::Failed(error) => Some(Failure::of(error)),
                _ => None,
            },
        }
    }
}

impl KindCounts {
    fn of(counts: &Counts) -> Self {
        Self {
            queries: counts.queries,
            selects: counts.selects,
            inserts: counts.inserts,
            updates: counts.updates,
            deletes: counts.deletes,
            commits: counts.commits,
        }
    }
}

impl Rates {
    fn of(all: &[&Counts]) -> Self {
        let of = |which: fn(&Counts) -> Option<u64>| total_per_s(all.iter().copied(), which);
        Self {
            queries_per_s: of(|counts| counts.queries),
            selects_per_s: of(|counts| counts.selects),
            inserts_per_s: of(|counts| counts.inserts),
            updates_per_s: of(|counts| counts.updates),
            deletes_per_s: of(|counts| counts.deletes),
            commits_per_s: of(|counts| counts.commits),
        }
    }
}

impl Total {
    fn of(servers: &[Server]) -> Self {
        let counted: Vec<&Counts> = servers.iter().filter_map(Server::counts).collect();
        Self {
            servers: counted.len(),
            rates: Rates::of(&counted),
        }
    }
}
