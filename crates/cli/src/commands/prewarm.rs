//! `prewarm`.

use crate::args::{self, Prewarm};
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Result, Run, exit};
use evenkeel_recovery::prewarm::{self, PrewarmRequest, Reader};

/// Runs the command.
pub fn run(args: &Prewarm, ui: &Ui) -> Result<u8> {
    let mut request = PrewarmRequest::new(settings::stopped_server(&args.place, ui)?);
    request.buffer_pool = args.pages == Some(args::Pages::BufferPool);
    request.limits.memory_bytes = args.memory;
    request.limits.deadline = args.max_seconds;
    request.limits.depth = args.iodepth.map(usize::from);
    request.limits.reader = match args.reader {
        args::Reader::Auto => Reader::Auto,
        args::Reader::IoUring => Reader::IoUring,
        args::Reader::Threads => Reader::Threads,
    };
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let report = prewarm::prewarm(&request, run)?;
    ui.answer(&report);
    Ok(match report.is_complete() {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}
