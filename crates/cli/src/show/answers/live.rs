//! What servers do right now, as documents.

use super::Failure;
use evenkeel_live::details::{Digests, Ran, Source};
use evenkeel_live::gauges::{Gauges, details};
use evenkeel_live::poll::{PollState, Server};
use evenkeel_live::rates::{Counts, total_per_s};
use evenkeel_live::status::UPTIME;
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
                PollState::Slow(waiting) => Some(waiting.as_secs_f64()),
                _ => None,
            },
            failure: match &server.state {
                PollState::Failed(error) => Some(Failure::of(error)),
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

/// An interval of `top`.
#[derive(Debug, Serialize)]
pub struct TopDocument<'a> {
    schema: &'static str,
    /// When the interval ended.
    time: String,
    servers: Vec<ToppedServer<'a>>,
    total: Total,
}

/// One server in an interval of `top`.
#[derive(Debug, Serialize)]
struct ToppedServer<'a> {
    #[serde(flatten)]
    watched: WatchedServer<'a>,
    uptime_s: Option<u64>,
    threads_connected: Option<u64>,
    threads_running: Option<u64>,
    buffer_pool_hit_percent: Option<f64>,
    disk_reads_per_s: Option<f64>,
    buffer_pool_dirty_percent: Option<f64>,
    row_lock_waits_per_s: Option<f64>,
    errors_per_s: Option<f64>,
    history_list_length: Option<u64>,
    /// What it replicates from.
    sources: Vec<ShownSource<'a>>,
    /// `on`, `off`, or null where that is not known.
    performance_schema: Option<&'static str>,
    /// Classes of statements that ran in the interval.
    digests: Vec<ShownDigest<'a>>,
    /// What the server refused to say.
    not_shown: &'a [String],
}

#[derive(Debug, Serialize)]
struct ShownSource<'a> {
    name: &'a str,
    host: &'a str,
    running: bool,
    lag_s: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ShownDigest<'a> {
    database: Option<&'a str>,
    sql: &'a str,
    count: u64,
    seconds: f64,
    errors: u64,
}

impl<'a> TopDocument<'a> {
    /// Describes an interval.
    #[must_use]
    pub fn new(time: String, servers: &'a [Server]) -> Self {
        Self {
            schema: "evenkeel/top/1",
            time,
            servers: servers.iter().map(ToppedServer::of).collect(),
            total: Total::of(servers),
        }
    }

    /// Returns it as a line.
    #[must_use]
    pub fn line(&self) -> String {
        // As above.
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }
}

impl<'a> ToppedServer<'a> {
    fn of(server: &'a Server) -> Self {
        let gauges = Gauges::of(server);
        let details = details(server);
        let (performance_schema, digests) = match details.map(|details| &details.digests) {
            None | Some(Digests::Unknown) => (None, Vec::new()),
            Some(Digests::Off) => (Some("off"), Vec::new()),
            Some(Digests::Ran(ran)) => (Some("on"), ran.iter().map(ShownDigest::of).collect()),
        };
        Self {
            watched: WatchedServer::of(server),
            uptime_s: server.answer().and_then(|answer| answer.status.get(UPTIME)),
            threads_connected: gauges.threads_connected,
            threads_running: gauges.threads_running,
            buffer_pool_hit_percent: gauges.buffer_pool_hit_percent,
            disk_reads_per_s: gauges.disk_reads_per_s,
            buffer_pool_dirty_percent: gauges.dirty_percent,
            row_lock_waits_per_s: gauges.row_lock_waits_per_s,
            errors_per_s: gauges.errors_per_s,
            history_list_length: gauges.history_list_length,
            sources: details.map_or_else(Vec::new, |details| {
                details.sources.iter().map(ShownSource::of).collect()
            }),
            performance_schema,
            digests,
            not_shown: details.map_or(&[], |details| &details.refused),
        }
    }
}

impl<'a> ShownSource<'a> {
    fn of(source: &'a Source) -> Self {
        Self {
            name: &source.name,
            host: &source.host,
            running: source.is_running,
            lag_s: source.lag_s,
        }
    }
}

impl<'a> ShownDigest<'a> {
    fn of(ran: &'a Ran) -> Self {
        Self {
            database: ran.schema.as_deref(),
            sql: &ran.text,
            count: ran.count,
            seconds: ran.seconds,
            errors: ran.errors,
        }
    }
}
