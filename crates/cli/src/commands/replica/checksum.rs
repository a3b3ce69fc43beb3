//! `replica checksum`.

use super::named::comparison;
use crate::args::ReplicaChecksum;
use crate::show::Ui;
use crate::show::answers::ReplicaChecksumAnswer;
use evenkeel_op::{Result, Run, exit};
use evenkeel_replica::checksum::{ChecksumRequest, TableVerdict, checksum};

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
    let mut request = comparison(&args.comparison, "checksum", ui)?;
    request.limits.chunk_time = args.chunk_time;
    request.limits.snapshot = args.max_snapshot;
    request.state.clone_from(&args.state);
    request.named_rows = args.rows;
    Ok(request)
}
