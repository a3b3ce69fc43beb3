//! Whether everything held: a pure function of what was seen.

use super::bank::{self, Diary, Holdings};
use evenkeel_backup::backup::Done;
use evenkeel_backup::report::GenerationReport;
use evenkeel_drive::Interval;
use serde::Serialize;

/// One row of the demo's table.
#[derive(Debug, Clone, Serialize)]
pub struct DemoGeneration {
    /// The generation as `backup` reports it.
    #[serde(flatten)]
    pub report: GenerationReport,
    /// Transfers per second in the calm before.
    pub transfers_per_s_before: f64,
    /// Transfers per second while the backup ran.
    pub transfers_per_s_during: f64,
    /// Transfers that the backup cost: what would have been done while it ran, less what was. Below 0 where by
    /// chance more were done.
    pub transfers_lost: f64,
}

impl DemoGeneration {
    pub(super) fn new(report: &GenerationReport, before: f64, during: Interval) -> Self {
        Self {
            report: report.clone(),
            transfers_per_s_before: before,
            transfers_per_s_during: during.per_s(),
            transfers_lost: before * during.seconds - during.done as f64,
        }
    }
}

/// What the demo found.
#[derive(Debug, Clone, Serialize)]
pub struct DemoReport {
    /// Whether everything held.
    pub held: bool,
    /// What did not hold, a sentence each.
    pub broken: Vec<String>,
    /// The file system it ran on.
    pub directory: String,
    /// The server's version.
    pub server: String,
    /// Transfers acknowledged before the last snapshot; all are in the restored bank.
    pub transfers_expected: u64,
    /// Transfers in the restored bank.
    pub transfers_restored: u64,
    /// Transfers acknowledged after the last snapshot; none is in the restored bank.
    pub transfers_after: u64,
    /// The generations, oldest first.
    pub generations: Vec<DemoGeneration>,
}

/// What was seen.
pub(super) struct Evidence<'a> {
    pub(super) directory: String,
    pub(super) server: String,
    pub(super) generations: Vec<DemoGeneration>,
    pub(super) last: &'a Done,
    pub(super) holdings: &'a Holdings,
    pub(super) restored_gtid: Option<String>,
    pub(super) diaries: &'a [Diary],
    pub(super) findings: Vec<String>,
}

pub(super) fn judge(seen: Evidence<'_>) -> DemoReport {
    let mut broken = seen.findings.clone();
    if seen.holdings.total != bank::TOTAL {
        broken.push(format!(
            "the total is {}, not {}",
            seen.holdings.total,
            bank::TOTAL
        ));
    }
    if seen.holdings.unexplained > 0 {
        broken.push(format!(
            "{} balances differ from the ledger",
            seen.holdings.unexplained
        ));
    }
    if seen.restored_gtid != seen.last.report.coordinates.gtid {
        broken.push(format!(
            "the restored server is at GTID {:?}, the generation says {:?}",
            seen.restored_gtid, seen.last.report.coordinates.gtid
        ));
    }
    let (mut expected, mut restored, mut after) = (0, 0, 0);
    for (client, diary) in (0u32..).zip(seen.diaries) {
        let held = seen
            .holdings
            .transfers
            .iter()
            .find(|(number, ..)| *number == client);
        let (last, count) = held.map_or((0, 0), |&(_, last, count)| (last, count));
        if last != count {
            broken.push(format!(
                "client {client}: {count} of {last} transfers are there"
            ));
        }
        let committed = diary
            .committed
            .partition_point(|at| *at < seen.last.instant.begin) as u64;
        let begun = diary
            .begun
            .partition_point(|at| *at <= seen.last.instant.end) as u64;
        if last < committed {
            broken.push(format!(
                "client {client}: transfer {committed} was committed before the snapshot, the last there is {last}"
            ));
        }
        if last > begun {
            broken.push(format!(
                "client {client}: transfer {last} is there, but started after the snapshot"
            ));
        }
        expected += committed;
        restored += count;
        after += (diary.committed.len() as u64).saturating_sub(last);
    }
    if expected == 0 || after == 0 {
        broken.push(
            "no transfer ran before or after the last snapshot: the demo proved nothing".into(),
        );
    }
    DemoReport {
        held: broken.is_empty(),
        broken,
        directory: seen.directory,
        server: seen.server,
        transfers_expected: expected,
        transfers_restored: restored,
        transfers_after: after,
        generations: seen.generations,
    }
}
