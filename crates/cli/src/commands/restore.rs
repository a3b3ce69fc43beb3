//! `restore`.

use crate::args::Restore;
use crate::settings;
use crate::show::Face;
use evenkeel_backup::Run;
use evenkeel_backup::restore::{self, RestoreRequest};
use evenkeel_op::{Result, exit};

/// Runs the command.
pub fn run(args: &Restore, face: &Face) -> Result<u8> {
    let mut request = RestoreRequest::new(
        face.repository(&args.repository),
        args.generation,
        &args.target,
    );
    for root in &args.map_root {
        request.map_roots.insert(root.id.clone(), root.dir.clone());
    }
    if let Some(workers) = args.workers {
        request.workers = usize::from(workers);
    }
    request.owner = args.owner.as_deref().map(settings::user).transpose()?;
    let run = Run {
        progress: face.progress(),
        cancel: face.cancel(),
    };
    face.answer(&restore::restore(&request, run)?);
    Ok(exit::DONE)
}
