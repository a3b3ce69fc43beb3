//! What every command that talks to a server does first: a server that a killed run left stopped
//! could not answer, and an applier that one left standing falls behind.

use crate::show::Ui;
use evenkeel_server::connect::server_behind;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication;
use evenkeel_snapshot::pause;
use std::cell::LazyCell;

/// Lets the server run on if a run of evenkeel that was killed left it stopped, and says so. Where
/// the server's process is not known before it answers, any of this host that was left so.
pub(super) fn resume(options: &ConnectOptions, ui: &Ui) {
    // Asked only if there is something to resume: a server may log who comes without a word.
    let server = LazyCell::new(|| server_behind(options));
    for left in pause::heal(|pid| server.is_none_or(|server| server == pid)) {
        let pid = left.pid;
        match left.resumed {
            Ok(()) => ui.warn(&format!(
                "a killed run of evenkeel had left the server's process {pid} stopped; it runs again"
            )),
            Err(error) => ui.warn(&format!(
                "a killed run of evenkeel left the server's process {pid} stopped: {}; resume it \
                 with: kill -CONT {pid}",
                error.chain()
            )),
        }
    }
    start_appliers(options, ui);
}

fn start_appliers(options: &ConnectOptions, ui: &Ui) {
    let Some(left) = replication::heal(options) else {
        return;
    };
    match left.started {
        Ok(()) => {
            ui.warn("a killed run of evenkeel had left the SQL thread stopped; it runs again")
        }
        Err(error) => ui.warn(&format!(
            "a killed run of evenkeel left the SQL thread stopped: {}; start it with: {}",
            error.chain(),
            left.statements.join("; ")
        )),
    }
}
