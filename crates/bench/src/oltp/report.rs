//! What a run came to.

use super::measure::OltpRequest;
use super::session::Common;
use super::{Compat, Distribution, Mode, Shape};
use crate::Driven;
use crate::repeated::{Repeatable, Value};
use evenkeel_drive::{Ended, Sample};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a run came to.
#[derive(Debug, Clone, Serialize)]
pub struct OltpReport {
    /// What a transaction did.
    pub mode: Mode,
    /// Whose transactions they were.
    pub compat: Compat,
    /// The tables.
    pub shape: Shape,
    /// Which rows were asked for.
    pub distribution: Distribution,
    /// Whether statements were prepared.
    pub prepared: bool,
    /// Connections.
    pub threads: usize,
    /// How long was measured, in seconds.
    pub seconds: f64,
    /// How the run ended: `time`, `failures` (too many), `signal`, `server` (gone at the end).
    pub ended: &'static str,
    /// Transactions done.
    pub transactions: u64,
    /// Of them, a second.
    pub transactions_per_s: f64,
    /// Statements of the transactions done, a second.
    pub statements_per_s: f64,
    /// Statements of a transaction, BEGIN and COMMIT among them.
    pub statements_per_transaction: f64,
    /// What sysbench 0.4 would call read/write requests, a second: statements but for BEGIN and COMMIT.
    pub requests_per_s: f64,
    /// Transactions retried after a deadlock or a row that was there already.
    pub retries: u64,
    /// Transactions failed.
    pub failed: u64,
    /// How often a session was lost.
    pub sessions_lost: u64,
    /// Failures, in the server's words, and how often each.
    pub failures: BTreeMap<String, u64>,
    /// Mean time of a transaction.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile, which sysbench prints.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
    /// Processor time that this program took itself, ramp-up included, in seconds.
    pub cpu_s: f64,
    /// Processor time of this program for each transaction, in microseconds.
    pub cpu_us_per_transaction: f64,
    /// The intervals, those of the ramp-up first.
    pub intervals: Vec<OltpSample>,
    /// What transactions were drawn from.
    pub seed: u64,
}

/// One interval.
#[derive(Debug, Clone, Serialize)]
pub struct OltpSample {
    /// When it ended, from the start of the measured time; negative in the ramp-up.
    pub at_s: f64,
    /// How long it was.
    pub seconds: f64,
    /// Transactions done.
    pub done: u64,
    /// Transactions failed.
    pub failed: u64,
    /// Sessions lost.
    pub lost: u64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

impl OltpSample {
    fn of(sample: &Sample) -> Self {
        let kind = &sample.tally.kinds[0];
        let latency = kind.latency();
        Self {
            at_s: sample.at_s,
            seconds: sample.seconds,
            done: kind.done,
            failed: kind.failed,
            lost: sample.tally.lost,
            p95_ms: ms(latency.p95_us),
            p99_ms: ms(latency.p99_us),
            max_ms: ms(latency.max_us),
        }
    }
}

impl OltpReport {
    pub(super) fn of(
        request: &OltpRequest,
        common: &Common,
        driven: &Driven,
        server_is_there: bool,
    ) -> Self {
        let run = &driven.run;
        let kind = &run.total.kinds[0];
        let latency = kind.latency();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let (ever, statements) = (count(&common.transactions), count(&common.statements));
        let a_second = |count: f64| match run.seconds {
            some if some > 0.0 => count / some,
            _ => 0.0,
        };
        let each = |whole: f64| if ever == 0.0 { 0.0 } else { whole / ever };
        let statements_each = each(statements);
        let around = if request.mode == Mode::PointSelect {
            0.0
        } else {
            2.0
        };
        let failures = common.failures.lock().unwrap_or_else(|e| e.into_inner());
        let done = kind.done as f64;
        Self {
            mode: request.mode,
            compat: request.compat,
            shape: common.shape,
            distribution: request.distribution,
            prepared: request.prepared,
            threads: request.threads,
            seconds: run.seconds,
            ended: match run.ended {
                Ended::TooManyFailures => "failures",
                Ended::Interrupted => "signal",
                _ if !server_is_there => "server",
                Ended::TimeUp | Ended::AllLost => "time",
            },
            transactions: kind.done,
            transactions_per_s: a_second(done),
            statements_per_s: a_second(done * statements_each),
            statements_per_transaction: statements_each,
            requests_per_s: a_second(done * (statements_each - around).max(0.0)),
            retries: kind.retries,
            failed: kind.failed,
            sessions_lost: run.total.lost,
            failures: failures.clone(),
            mean_ms: latency.mean_us / 1000.0,
            p50_ms: ms(latency.p50_us),
            p95_ms: ms(latency.p95_us),
            p99_ms: ms(latency.p99_us),
            max_ms: ms(latency.max_us),
            cpu_s: driven.cpu_s,
            cpu_us_per_transaction: each(driven.cpu_s * 1e6),
            intervals: run.samples.iter().map(OltpSample::of).collect(),
            seed: request.seed,
        }
    }

    /// Returns whether the result counts: it ran to its end.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.ended == "time" && self.transactions > 0
    }
}

impl Repeatable for OltpReport {
    fn values(&self) -> Vec<Value> {
        let value = |name, says, value| Value { name, says, value };
        let rate = self.transactions_per_s;
        vec![
            value("transactions_per_s", "transactions a second", rate),
            value("p95_ms", "95 %, ms", self.p95_ms),
            value("p99_ms", "99 %, ms", self.p99_ms),
        ]
    }

    fn counts(&self) -> bool {
        self.counts()
    }
}
