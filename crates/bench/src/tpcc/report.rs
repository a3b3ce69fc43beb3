//! What a run came to.

use super::consistency::Condition;
use super::like::{Faults, TPCC_MYSQL};
use super::measure::{Keying, TpccRequest};
use super::terminal::Reported;
use super::{Scale, TransactionKind};
use crate::repeated::{Repeatable, Value};
use evenkeel_drive::{Ended, KindTally, Run as Driven, Sample};
use evenkeel_op::units;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most New-Orders a minute that a warehouse's ten terminals can type (clause 4.2 and its times).
const CEILING_PER_WAREHOUSE: f64 = 12.86;
/// The share of transactions that has to be within the limit, in percent.
const WITHIN_PERCENT: f64 = 90.0;

/// What a run came to.
#[derive(Debug, Clone, Serialize)]
pub struct TpccReport {
    /// Whose faults are repeated; none: nobody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<&'static str>,
    /// How large the tables were, as far as they were used.
    pub scale: Scale,
    /// Connections.
    pub connections: usize,
    /// New-Order transactions per minute. Not audited.
    pub tpmc: f64,
    /// How long was measured, in seconds.
    pub seconds: f64,
    /// How the run ended: `time`, `failures` (too many), `signal`, `server` (gone at the end).
    pub ended: &'static str,
    /// The kinds of transactions, in the specification's order.
    pub kinds: Vec<KindReport>,
    /// The intervals, those of the ramp-up first.
    pub intervals: Vec<SampleReport>,
    /// How often a session was lost.
    pub sessions_lost: u64,
    /// Failures, in the server's words, and how often each.
    pub failures: BTreeMap<String, u64>,
    /// The longest time without a commit of a transaction that writes, in milliseconds.
    pub longest_stall_ms: f64,
    /// Statements sent per transaction, COMMIT among them.
    pub statements_per_transaction: f64,
    /// The conditions after the run; none when they were not checked.
    pub conditions: Vec<Condition>,
    /// What differs from the specification.
    pub deviations: Vec<String>,
    /// What the transactions were drawn from.
    pub seed: u64,
}

/// One kind of transaction.
#[derive(Debug, Clone, Serialize)]
pub struct KindReport {
    /// Its name.
    pub name: &'static str,
    /// Done.
    pub done: u64,
    /// Of those, within the limit.
    pub in_time: u64,
    /// Of those, later.
    pub late: u64,
    /// How often one was retried.
    pub retries: u64,
    /// Failed.
    pub failed: u64,
    /// Its share of all, in percent.
    pub share_percent: f64,
    /// The share that it has to have at least.
    pub least_percent: Option<f64>,
    /// What 90 % have to keep below, in seconds.
    pub limit_s: f64,
    /// Mean response time.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile, which the limit is for.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

/// One interval.
#[derive(Debug, Clone, Serialize)]
pub struct SampleReport {
    /// When it ended, from the start of the measured time; negative in the ramp-up.
    pub at_s: f64,
    /// How long it was.
    pub seconds: f64,
    /// New-Orders done.
    pub new_orders: u64,
    /// Transactions of all kinds done.
    pub done: u64,
    /// Transactions failed.
    pub failed: u64,
    /// 95th percentile of New-Order's response time.
    pub p95_ms: f64,
    /// 99th percentile of New-Order's response time.
    pub p99_ms: f64,
    /// Slowest of each kind.
    pub max_ms: Vec<f64>,
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

impl KindReport {
    fn of(kind: TransactionKind, tally: &KindTally, all: u64, limit_s: f64) -> Self {
        let latency = tally.latency();
        let in_time = tally.within(Duration::from_secs_f64(limit_s));
        Self {
            name: kind.name(),
            done: tally.done,
            in_time,
            late: tally.done - in_time,
            retries: tally.retries,
            failed: tally.failed,
            share_percent: percent(tally.done, all),
            least_percent: kind.least_percent(),
            limit_s,
            mean_ms: latency.mean_us / 1000.0,
            p50_ms: ms(latency.p50_us),
            p90_ms: ms(tally.quantile_us(0.90)),
            p95_ms: ms(latency.p95_us),
            p99_ms: ms(latency.p99_us),
            max_ms: ms(latency.max_us),
        }
    }

    /// Returns whether it has the share of all that is demanded.
    #[must_use]
    pub fn has_its_share(&self) -> bool {
        self.least_percent
            .is_none_or(|least| self.share_percent >= least)
    }

    /// Returns the limit, for people.
    #[must_use]
    pub fn limit(&self) -> String {
        match self.limit_s < 1.0 {
            true => format!("{:.0} ms", self.limit_s * 1000.0),
            false => format!("{:.0} s", self.limit_s),
        }
    }

    /// Returns how many were within the limit, in percent.
    #[must_use]
    pub fn in_time_percent(&self) -> f64 {
        percent(self.in_time, self.done)
    }

    /// Returns whether enough were within the limit.
    #[must_use]
    pub fn is_in_time(&self) -> bool {
        self.in_time_percent() >= WITHIN_PERCENT
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => 100.0 * part as f64 / whole as f64,
    }
}

impl SampleReport {
    fn of(sample: &Sample) -> Self {
        let kinds = &sample.tally.kinds;
        let new_orders = &kinds[TransactionKind::NewOrder as usize];
        let latency = new_orders.latency();
        Self {
            at_s: sample.at_s,
            seconds: sample.seconds,
            new_orders: new_orders.done,
            done: sample.tally.done(),
            failed: sample.tally.failed(),
            p95_ms: ms(latency.p95_us),
            p99_ms: ms(latency.p99_us),
            max_ms: kinds.iter().map(|kind| ms(kind.latency().max_us)).collect(),
        }
    }
}

impl TpccReport {
    /// `scale` is what was used of what was `loaded`; `conditions` are `None` when nobody could be asked after the run.
    pub(super) fn of(
        request: &TpccRequest,
        (scale, loaded): (Scale, Scale),
        driven: &Driven,
        reported: &Reported,
        (conditions, faults): (Option<Vec<Condition>>, Option<Faults>),
    ) -> Self {
        let total = &driven.total;
        let all = total.done();
        let new_orders = total.kinds[TransactionKind::NewOrder as usize].done;
        let tpmc = match driven.seconds {
            some if some > 0.0 => new_orders as f64 * 60.0 / some,
            _ => 0.0,
        };
        let ever: u64 = driven
            .samples
            .iter()
            .map(|sample| sample.tally.done())
            .sum();
        let statements = reported.statements.load(Ordering::Relaxed);
        let failures = reported.failures.lock().unwrap_or_else(|e| e.into_inner());
        let kinds = TransactionKind::ALL.iter().zip(&total.kinds);
        let limit_s =
            |kind: TransactionKind| faults.map_or(kind.limit_s(), |_| Faults::limit_s(kind));
        Self {
            like: faults.map(|_| TPCC_MYSQL),
            scale,
            connections: request.connections,
            tpmc,
            seconds: driven.seconds,
            ended: match driven.ended {
                Ended::TooManyFailures => "failures",
                Ended::Interrupted => "signal",
                _ if conditions.is_none() => "server",
                Ended::TimeUp | Ended::AllLost => "time",
            },
            kinds: kinds
                .map(|(kind, tally)| KindReport::of(*kind, tally, all, limit_s(*kind)))
                .collect(),
            intervals: driven.samples.iter().map(SampleReport::of).collect(),
            sessions_lost: total.lost,
            failures: failures.clone(),
            longest_stall_ms: 0.0,
            statements_per_transaction: match ever {
                0 => 0.0,
                some => statements as f64 / some as f64,
            },
            conditions: conditions.unwrap_or_default(),
            deviations: deviations(request, faults, (scale, loaded), tpmc, driven.seconds),
            seed: request.seed,
        }
    }

    /// Returns whether the result counts: it ran to its end, and the tables are sound.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.ended == "time"
            && self
                .conditions
                .iter()
                .all(|condition| !condition.is_broken())
    }
}

impl Repeatable for TpccReport {
    fn values(&self) -> Vec<Value> {
        let new_order = |of: fn(&KindReport) -> f64| self.kinds.first().map_or(0.0, of);
        let value = |name, says, value| Value { name, says, value };
        vec![
            value("tpmc", "TpmC", self.tpmc),
            value(
                "p95_ms",
                "New-Order 95 %, ms",
                new_order(|kind| kind.p95_ms),
            ),
            value(
                "max_ms",
                "New-Order slowest, ms",
                new_order(|kind| kind.max_ms),
            ),
        ]
    }

    fn counts(&self) -> bool {
        self.counts()
    }
}

fn deviations(
    request: &TpccRequest,
    faults: Option<Faults>,
    (scale, loaded): (Scale, Scale),
    tpmc: f64,
    seconds: f64,
) -> Vec<String> {
    let mut all = faults.map_or(Vec::new(), Faults::reported);
    all.extend([
        "not audited".to_owned(),
        "deliveries are executed at once, not deferred".to_owned(),
    ]);
    if request.keying != Keying::Specified {
        all.push("no keying or think times, and each transaction uses any warehouse".to_owned());
    } else if request.connections != scale.warehouses as usize * 10 {
        all.push(format!(
            "{}, not ten for each of {}",
            units::count(request.connections, "terminal"),
            units::count(scale.warehouses, "warehouse")
        ));
    }
    if scale != loaded {
        all.push(format!(
            "only the first {} of {} in the tables are used",
            scale.warehouses,
            units::count(loaded.warehouses, "warehouse")
        ));
    }
    let ceiling = CEILING_PER_WAREHOUSE * f64::from(scale.warehouses);
    if tpmc > ceiling {
        all.push(format!(
            "{:.0} times what ten people at each warehouse could type",
            tpmc / ceiling
        ));
    }
    if !scale.is_specified() {
        all.push(format!(
            "{} items and {} customers a district: this shows only that it works, and is not a measurement",
            scale.items, scale.customers
        ));
    }
    if seconds < 7200.0 {
        all.push("measured for less than two hours".to_owned());
    }
    if !request.check {
        all.push("the tables' conditions were not checked".to_owned());
    }
    all
}
