//! What became of a backup: nobody trusts one that was not seen restored.

use super::able::quietly;
use super::load::BACKUP;
use super::method::{Leaves, Method, Words};
use super::report::Restored;
use super::request::DATABASE;
use super::stage::Stage;
use super::{process, serve};
use crate::tpcc;
use evenkeel_op::{Context, Error, Result, Run};
use std::path::Path;
use std::time::Instant;

/// Restores the backup at `output`, starts a server on it, and checks the tables.
///
/// Rows are put into an empty server that runs already, the time of which does not count. With files, the
/// time ends when the server that was started on them greets a client.
pub(super) fn of(
    method: &Method,
    output: &Path,
    stage: &Stage<'_>,
    run: Run<'_>,
) -> Result<Option<Restored>> {
    let Some(restore) = &method.restore else {
        return Ok(None);
    };
    stage.run_directory.renew()?;
    let target = stage.run_directory.round("restored");
    let empty = match method.leaves {
        Leaves::Rows => {
            stage.baseline.empty(&target, run.cancel)?;
            Some(serve::start(stage, &target, 3, run)?)
        }
        Leaves::Files | Leaves::Nothing => None,
    };
    let request = stage.request;
    let words = Words {
        evenkeel: &request.evenkeel,
        bin: request.server.path.parent().unwrap_or(Path::new("/")),
        database: DATABASE,
        threads: request.threads,
        socket: empty.as_ref().map_or(output, |server| server.socket()),
        datadir: &target,
        output,
        target: &target,
    };
    let line = words.fill(restore);
    let log = stage.run_directory.run_dir().join("restore");
    let begun = Instant::now();
    let ended = process::run(&line, &log, BACKUP, &mut || run.cancel.check())?;
    if let Some(why) = ended.failure {
        return Err(Error::failed(format!("the restore failed: {why}")));
    }
    let server = match empty {
        Some(server) => server,
        None => serve::start(stage, &target, 3, run)
            .context(|| "no server starts on what was restored")?,
    };
    let seconds = begun.elapsed().as_secs_f64();
    let conditions = tpcc::check(&mut server.session()?, DATABASE, quietly(run))
        .context(|| "what was restored could not be checked")?;
    let broken = conditions.iter().filter(|one| one.broken > 0);
    let broken: Vec<u8> = broken.map(|one| one.number).collect();
    server.kill();
    Ok(Some(Restored {
        command: line,
        seconds,
        command_seconds: ended.wall.as_secs_f64(),
        cpu_seconds: ended.cpu_seconds,
        is_sound: broken.is_empty(),
        broken,
    }))
}
