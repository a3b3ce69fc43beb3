//! The private servers of a round.

use super::request::ServerSettings;
use super::run_directory::SERVER;
use super::stage::Stage;
use evenkeel_op::{Context, Result, Run};
use evenkeel_server::launch::{Launch, Running};
use std::path::Path;

/// Returns the options of a server.
pub(super) fn options(settings: &ServerSettings, id: u32) -> Vec<String> {
    let mut all = vec![
        format!("--innodb-buffer-pool-size={}", settings.buffer_pool),
        format!("--innodb-flush-log-at-trx-commit={}", settings.flush_log),
        // What a start had in memory before must not decide what a round finds there.
        "--innodb-buffer-pool-dump-at-shutdown=OFF".to_owned(),
        "--innodb-buffer-pool-load-at-startup=OFF".to_owned(),
    ];
    match settings.binlog {
        true => all.extend(
            ["--log-bin=binlog", "--sync-binlog=1"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("--server-id={id}")]),
        ),
        false => all.push("--skip-log-bin".to_owned()),
    }
    all.extend(settings.options.iter().cloned());
    all
}

/// Starts a server on a data directory.
pub(super) fn start(stage: &Stage<'_>, datadir: &Path, id: u32, run: Run<'_>) -> Result<Running> {
    let mut launch = Launch::new(stage.request.server.clone(), datadir).with_networking();
    launch.run_parent = stage.run_directory.run_dir();
    launch.extra_args = options(&stage.request.settings, id);
    launch
        .start(SERVER, run.cancel)
        .context(|| format!("the server on {} did not start", datadir.display()))
}
