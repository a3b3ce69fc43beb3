//! A run: conditions checked, sessions driven, conditions checked again.

use super::like::{self, Faults};
use super::random::Constants;
use super::report::TpccReport;
use super::terminal::{Reported, Terminal};
use super::transactions::Draw;
use super::{Scale, TransactionKind, consistency, schema};
use evenkeel_drive::{Pace, Plan};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use fastrand::Rng;
use std::sync::Arc;
use std::time::Duration;

/// When transactions begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keying {
    /// Each as soon as the last one of its connection has ended, as tpcc-mysql does it. The warehouse
    /// is another one for each.
    None,
    /// So many a second from all connections together, whether the server keeps up or not.
    Rate(f64),
    /// With the specification's times for typing and thinking, by terminals at home in a warehouse.
    Specified,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct TpccRequest {
    /// The schema with the tables.
    pub database: String,
    /// Only so many warehouses, from the first on; all that were loaded where it is none.
    pub warehouses: Option<u32>,
    /// How many connections; at least 1.
    pub connections: usize,
    /// When transactions begin.
    pub keying: Keying,
    /// How long before anything counts.
    pub ramp_up: Duration,
    /// How long is measured.
    pub measure: Duration,
    /// How long an interval of the report is.
    pub interval: Duration,
    /// More failed transactions than this end the run.
    pub failures_allowed: Option<u64>,
    /// Check the specification's conditions before and after.
    pub check: bool,
    /// Whether a run has just checked them, so that only those after it are left.
    pub is_checked: bool,
    /// Repeat the faults of tpcc-mysql.
    pub like_tpcc_mysql: bool,
    /// What transactions are drawn from.
    pub seed: u64,
}

/// Runs the workload.
///
/// Errors: `Refused` where the tables are empty, have too few warehouses or break a condition before the run; those of
/// connecting, too many connections among them. Whatever happens later is in the report.
pub fn measure(
    options: &ConnectOptions,
    request: &TpccRequest,
    run: Run<'_>,
) -> Result<TpccReport> {
    let mut session = Session::open(options)?;
    session.run(&format!("USE {}", quote_name(&request.database)))?;
    let loaded = schema::scale(&mut session)?;
    let scale = used(loaded, request)?;
    if !request.is_checked {
        refuse_broken(&conditions(&mut session, request, run)?)?;
    }
    let faults = match request.like_tpcc_mysql {
        true => Some(Faults::of(&mut session)?),
        false => None,
    };
    let reports = Arc::new(Reported::default());
    let mut random = Rng::with_seed(request.seed);
    let constants = match faults {
        Some(_) => Constants::at_any_distance(&mut random),
        None => Constants::of_run(&mut random),
    };
    let mut terminals = Vec::new();
    for number in 0..request.connections {
        run.cancel.check()?;
        let home = number as u32 % scale.warehouses + 1;
        let draw = Draw {
            random: random.fork(),
            constants,
            scale,
            faults,
            home: (request.keying == Keying::Specified).then_some(home),
        };
        let keyed = request.keying == Keying::Specified;
        let reports = Arc::clone(&reports);
        let terminal = Terminal::new(options, &request.database, draw, reports, keyed)?;
        terminals.push(terminal);
    }
    let plan = Plan {
        kinds: TransactionKind::ALL.len(),
        pace: match request.keying {
            Keying::Rate(per_s) => Pace::Rate(per_s),
            Keying::None | Keying::Specified => Pace::Closed,
        },
        ramp_up: request.ramp_up,
        measure: request.measure,
        interval: request.interval,
        failures_allowed: request.failures_allowed,
    };
    let mut stall = Duration::ZERO;
    let stalls = Arc::clone(&reports);
    let watch = |sample: &evenkeel_drive::Sample| match sample.at_s > sample.seconds / 2.0 {
        true => stall = stalls.stall.longest(),
        false => stalls.stall.restart(),
    };
    let driven = crate::driven(terminals, &plan, watch, run)?.run;
    run.cancel.check()?;
    let after = match Session::open(options) {
        Ok(mut session) => Some(conditions(&mut session, request, run)?),
        Err(_) => None,
    };
    Ok(TpccReport {
        longest_stall_ms: stall.as_secs_f64() * 1000.0,
        ..TpccReport::of(request, (scale, loaded), &driven, &reports, (after, faults))
    })
}

/// Returns how much of the tables is used.
fn used(loaded: Scale, request: &TpccRequest) -> Result<Scale> {
    let warehouses = request.warehouses.unwrap_or(loaded.warehouses);
    if warehouses > loaded.warehouses {
        let (wanted, database) = (warehouses, &request.database);
        let reported = format!(
            "{wanted} warehouses are requested, and '{database}' has {}",
            loaded.warehouses
        );
        return Err(Error::refused(reported).hint(format!(
            "load the others: evenkeel bench tpcc load -w {wanted} --database {database}"
        )));
    }
    Ok(Scale {
        warehouses,
        ..loaded
    })
}

fn refuse_broken(conditions: &[consistency::Condition]) -> Result<()> {
    let broken = conditions.iter().find(|condition| condition.is_broken());
    broken.map_or(Ok(()), |broken| {
        let reported = format!(
            "the tables break condition {}: {}",
            broken.number, broken.says
        );
        let refused = Error::refused(reported)
            .hint("load new ones into another schema: evenkeel bench tpcc load --database NEW");
        Err(match broken.number == like::BROKEN {
            true => refused.hint(
                "after a run of tpcc-mysql or --like-tpcc-mysql, only --like-tpcc-mysql \
                     can use them",
            ),
            false => refused,
        })
    })
}

fn conditions(
    session: &mut Session,
    request: &TpccRequest,
    run: Run<'_>,
) -> Result<Vec<consistency::Condition>> {
    if !request.check {
        return Ok(Vec::new());
    }
    let mut found = consistency::check(session, &request.database, run)?;
    for one in &mut found {
        one.is_by_design = request.like_tpcc_mysql && one.number == like::BROKEN;
    }
    Ok(found)
}
