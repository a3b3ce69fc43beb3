//! What is looked at after a repair: that the failure is gone, and that the rows are the source's.

use super::HealRequest;
use super::journal::HealOutcome;
use crate::checksum::{
    ChecksumLimits, ChecksumReport, ChecksumRequest, ChecksumSelection, TableVerdict, checksum,
};
use crate::diagnose::{Finding, Request, diagnose};
use crate::survey::Target;
use evenkeel_op::{ErrorKind, Result, Run, units};
use evenkeel_server::replication::ThreadState;
use std::time::{Duration, Instant};

/// How gently rows are compared.
const THREADS: usize = 2;
const CHUNK_TIME: Duration = Duration::from_millis(500);
const LAG: Duration = Duration::from_secs(5);
const SNAPSHOT: Duration = Duration::from_secs(600);
const DEADLINE: Duration = Duration::from_secs(60);
/// So many rows are named of each table that differs.
const NAMED: usize = 10;

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    pub(super) outcome: HealOutcome,
    pub(super) why: String,
}

impl Proof {
    pub(super) fn new(outcome: HealOutcome, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { outcome, why }
    }
}

/// Waits until nothing is wrong with a channel any more; returns what is, if that takes too long.
///
/// Errors: those of [`diagnose`].
pub(super) fn wait_until_well(
    targets: &[Target],
    finding: &Finding,
    request: &HealRequest,
    run: Run<'_>,
) -> Result<Option<String>> {
    let until = Instant::now() + request.settle;
    let asks = Request {
        timeout: request.timeout,
        check_tables: Vec::new(),
    };
    loop {
        let seen = diagnose(targets, &asks, run.cancel)?;
        let is_own = |one: &&Finding| {
            one.server == finding.server
                && (one.channel.is_none() || one.channel == finding.channel)
        };
        let facts = seen.servers[finding.server].facts.as_ref();
        let runs = facts.is_ok_and(|facts| {
            let mut each = facts.channels.iter();
            let own = each.find(|one| Some(&one.name) == finding.channel.as_ref());
            own.is_some_and(|one| {
                one.receiver == ThreadState::Running && one.applier == ThreadState::Running
            })
        });
        let left = match (seen.findings.iter().find(is_own), runs) {
            (None, true) => return Ok(None),
            (Some(left), _) => format!(
                "{} after {}: {}",
                left.failure.name(),
                units::duration(request.settle),
                left.evidence.join("; ")
            ),
            (None, false) => "its threads do not run".to_owned(),
        };
        if Instant::now() >= until {
            return Ok(Some(left));
        }
    }
}

/// Returns the comparison of a replica with its source.
pub(super) fn comparison(
    replica: &Target,
    source: &Target,
    channel: &str,
    request: &HealRequest,
) -> ChecksumRequest {
    ChecksumRequest {
        replica: replica.options.clone(),
        source: Some(source.options.clone()),
        channel: Some(channel.to_owned()),
        selection: ChecksumSelection::default(),
        limits: ChecksumLimits {
            threads: THREADS,
            chunk_time: CHUNK_TIME,
            lag: Some(LAG),
            other_replicas: Vec::new(),
            threads_running: None,
            snapshot: SNAPSHOT,
            deadline: DEADLINE,
        },
        watchdog: request.watchdog.clone(),
        state: None,
        named_rows: NAMED,
    }
}

/// Compares all rows of a replica with its source's.
///
/// Errors: those of [`checksum`].
pub(super) fn compare(
    replica: &Target,
    source: &Target,
    channel: &str,
    request: &HealRequest,
    run: Run<'_>,
) -> Result<Proof> {
    let report = checksum(&comparison(replica, source, channel, request), run)?;
    Ok(verdict(&report))
}

/// Says what a comparison means.
pub(super) fn verdict(report: &ChecksumReport) -> Proof {
    let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
    let tables = report.tables.len();
    let names = |verdict: TableVerdict| {
        let those = report
            .tables
            .iter()
            .filter(|table| table.verdict == verdict);
        let named = those.map(|table| match table.different() {
            0 => format!("{}.{}", table.database, table.table),
            rows => format!("{}.{} ({rows} rows)", table.database, table.table),
        });
        named.collect::<Vec<_>>().join(", ")
    };
    match report.verdict() {
        TableVerdict::Equal | TableVerdict::LeftOut => {
            let what = format!(
                "equal to its source: {}, {}",
                units::count(tables, "table"),
                units::count(usize::try_from(rows).unwrap_or(usize::MAX), "row")
            );
            Proof::new(HealOutcome::Repaired, what)
        }
        TableVerdict::Differs => {
            let what = format!("rows differ: {}", names(TableVerdict::Differs));
            Proof::new(HealOutcome::Differs, what)
        }
        TableVerdict::NotCompared => {
            let what = match names(TableVerdict::NotCompared).as_str() {
                "" => "nothing could be compared".to_owned(),
                names => format!("not compared: {names}"),
            };
            Proof::new(HealOutcome::NotCompared, what)
        }
    }
}

/// Whether it was asked to stop.
pub(super) fn is_stop(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::Terminated)
}
