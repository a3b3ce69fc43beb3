//! `replica checksum`.

use super::named::Typed;
use crate::args::ReplicaChecksum;
use crate::commands::watch_applier;
use crate::show::Ui;
use crate::show::answers::ReplicaChecksumAnswer;
use evenkeel_op::{Result, Run, exit};
use evenkeel_replica::checksum::{
    ChecksumLimits, ChecksumRequest, ChecksumSelection, TableVerdict, checksum,
};

/// Runs the command.
pub(super) fn run(args: &ReplicaChecksum, ui: &Ui) -> Result<u8> {
    let request = request(args, ui)?;
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let report = checksum(&request, run)?;
    let code = match report.verdict() {
        TableVerdict::Differs => exit::DIFFERS,
        TableVerdict::NotCompared => exit::PARTIAL,
        TableVerdict::Equal | TableVerdict::LeftOut => exit::DONE,
    };
    ui.answer(&ReplicaChecksumAnswer::new(report));
    Ok(code)
}

fn request(args: &ReplicaChecksum, ui: &Ui) -> Result<ChecksumRequest> {
    let typed = Typed {
        verb: "checksum",
        replica: &args.replica,
        source: &args.source,
        others: &args.lag_of,
        fleet: &args.fleet,
        connection: &args.connection,
    };
    let servers = typed.servers(ui)?;
    let tables = args.table.iter().map(|name| name.parse());
    Ok(ChecksumRequest {
        replica: servers.replica,
        source: servers.source,
        channel: args.channel.clone(),
        selection: ChecksumSelection {
            databases: args.database.clone(),
            tables: tables.collect::<Result<_>>()?,
        },
        limits: ChecksumLimits {
            threads: usize::from(args.threads),
            chunk_time: args.chunk_time,
            lag: Some(args.max_lag),
            other_replicas: servers.others,
            threads_running: args.max_load,
            snapshot: args.max_snapshot,
            deadline: args.lock_deadline,
        },
        watchdog: watch_applier::program(),
        state: args.state.clone(),
        named_rows: args.rows,
    })
}
