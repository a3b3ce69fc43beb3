//! A run.

use super::report::OltpReport;
use super::session::{Common, Session};
use super::{Compat, Distribution, Mode, tables};
use evenkeel_drive::{Pace, Plan};
use evenkeel_op::{Result, Run};
use evenkeel_server::connect::{Session as Asking, quote_name};
use evenkeel_server::options::ConnectOptions;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What to run.
#[derive(Debug, Clone)]
pub struct OltpRequest {
    /// The schema with the tables.
    pub database: String,
    /// What a transaction does.
    pub mode: Mode,
    /// Whose transactions they are.
    pub compat: Compat,
    /// How many tables; `None` for all that are there.
    pub tables: Option<u32>,
    /// Rows of each; `None` for those that are there.
    pub table_size: Option<u32>,
    /// How many connections; at least 1.
    pub threads: usize,
    /// So many transactions a second; `None`: each as soon as the last of its connection has ended.
    pub rate: Option<f64>,
    /// Which rows are asked for.
    pub distribution: Distribution,
    /// Prepare statements rather than send them as text.
    pub prepared: bool,
    /// How long before anything counts.
    pub ramp_up: Duration,
    /// How long is measured.
    pub measure: Duration,
    /// How long an interval of the report is.
    pub interval: Duration,
    /// More failed transactions than this end the run.
    pub failures_allowed: Option<u64>,
    /// What transactions are drawn from.
    pub seed: u64,
}

/// Runs the workload.
///
/// Errors: `Refused` where the tables are missing or empty; those of connecting, too many connections
/// among them. Whatever happens later is in the report.
pub fn measure(
    options: &ConnectOptions,
    request: &OltpRequest,
    run: Run<'_>,
) -> Result<OltpReport> {
    let mut asking = Asking::open(options)?;
    asking.run(&format!("USE {}", quote_name(&request.database)))?;
    let shape = tables::find(&mut asking, request.tables, request.table_size)?;
    let common = Arc::new(Common {
        options: options.clone(),
        database: request.database.clone(),
        mode: request.mode,
        compat: request.compat,
        shape,
        distribution: request.distribution,
        prepared: request.prepared,
        cancel: run.cancel.clone(),
        transactions: AtomicU64::new(0),
        statements: AtomicU64::new(0),
        failures: Mutex::new(BTreeMap::new()),
    });
    let mut random = Rng::with_seed(request.seed);
    let mut sessions = Vec::new();
    for _ in 0..request.threads {
        run.cancel.check()?;
        sessions.push(Session::open(&common, random.fork())?);
    }
    let plan = Plan {
        kinds: 1,
        pace: request.rate.map_or(Pace::Closed, Pace::Rate),
        ramp_up: request.ramp_up,
        measure: request.measure,
        interval: request.interval,
        failures_allowed: request.failures_allowed,
    };
    let driven = crate::driven(sessions, &plan, |_| (), run)?;
    run.cancel.check()?;
    let is_there = Asking::open(options).is_ok();
    Ok(OltpReport::of(request, &common, &driven, is_there))
}
