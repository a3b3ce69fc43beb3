//! `mount`.

use super::waiting;
use crate::args::{Mount, MountedGeneration};
use crate::settings;
use crate::show::Ui;
use evenkeel_backup::mount::{self, MountRequest, ScratchRequest};
use evenkeel_op::{Result, Run, exit};

/// Runs the command.
pub fn run(args: &Mount, ui: &Ui) -> Result<u8> {
    let place = settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "mount",
        ui.cancel(),
    )?;
    let mut request = MountRequest::new(place, &args.mountpoint);
    request.source.clone_from(&args.source);
    match args.generation {
        Some(MountedGeneration::Number(number)) => request.generation = Some(number),
        Some(MountedGeneration::Latest) => request.latest = true,
        None => {}
    }
    request.cache_bytes = usize::try_from(args.cache).unwrap_or(usize::MAX);
    if let Some(dir) = &args.writable_scratch {
        let mut scratch = ScratchRequest::new(dir);
        (scratch.fill, scratch.keep) = (args.fill, args.keep);
        scratch.rate_bytes_per_s = args.rate.unwrap_or(0);
        scratch.owner = args.owner.as_deref().map(settings::owner).transpose()?;
        scratch.engine_tool.clone_from(&args.engine_tool);
        request.scratch = Some(scratch);
    }
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let mounted = waiting::for_others(&args.waiting, ui, || mount::mount(&request, run))?;
    if mounted.report().healed {
        ui.note("removed a dead mount from this directory");
    }
    ui.tell(mounted.report());
    let end = mounted.serve(run, &mut |filled| ui.tell(filled))?;
    ui.tell(&end);
    Ok(match end.complete {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}
