//! `prune`.

use super::waiting;
use crate::args::Prune as Typed;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::PruneAnswer;
use evenkeel_backup::archive;
use evenkeel_op::{Result, exit, units};
use evenkeel_repository::{Prune, Repository};
use std::time::Duration;

/// Runs the command.
pub fn run(args: &Typed, ui: &Ui) -> Result<u8> {
    waiting::for_others(&args.waiting, ui, || prune(args, ui))
}

fn prune(args: &Typed, ui: &Ui) -> Result<u8> {
    let repository = Repository::open(settings::unlock(
        ui.repository_in(&args.repository, args.storage_class.as_deref())?,
        &args.keys,
        "prune",
        ui.cancel(),
    )?)?;
    let how = Prune {
        live_share_min: f64::from(args.min_live) / 100.0,
        ..Prune::default()
    };
    let plan = repository.plan_prune(&how, ui.cancel())?;
    let logs = archive::plan_forget(&repository)?;
    let freed = match args.execute {
        true => {
            // First: what is pruned changes what the other plan was made for.
            let logs = repository.perform_forget_logs(&logs, Duration::ZERO, ui.cancel())?;
            Some(logs + repository.perform_prune(&plan, Duration::ZERO, ui.cancel())?)
        }
        false => None,
    };
    if plan.unreadable > 0 {
        ui.warn(&format!(
            "rewriting packs takes a reader's key: {} left unchanged",
            units::count(plan.unreadable, "pack")
        ));
    }
    ui.answer(&PruneAnswer::new(&plan, &logs, freed));
    Ok(exit::DONE)
}
