//! What every command that talks to a server does first: a server that a killed run left stopped
//! could not answer, and an applier that one left standing falls behind.

use crate::show::Face;
use evenkeel_server::connect::server_behind;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication;
use evenkeel_snapshot::pause;
use std::cell::LazyCell;

/// Lets the server run on if a run of evenkeel that was killed left it stopped, and says so. Where
/// the server's process is not known before it answers, any of this host that was left so.
pub(super) fn resume(options: &ConnectOptions, face: &Face) {
    // Asked only if there is something to resume: a server may log who comes without a word.
    let server = LazyCell::new(|| server_behind(options));
    for left in pause::heal(|pid| server.is_none_or(|server| server == pid)) {
        let pid = left.pid;
        match left.resumed {
            Ok(()) => face.warn(&format!(
                "the server's process {pid} was still stopped by a run of evenkeel that was \
                 killed; it runs again"
            )),
            Err(error) => face.warn(&format!(
                "the server's process {pid} is still stopped by a run of evenkeel that was \
                 killed: {}; let it run on with: kill -CONT {pid}",
                error.chain()
            )),
        }
    }
    start_appliers(options, face);
}

fn start_appliers(options: &ConnectOptions, face: &Face) {
    let Some(left) = replication::heal(options) else {
        return;
    };
    match left.started {
        Ok(()) => face.warn(
            "the applier was still stopped by a run of evenkeel that was killed; it runs again",
        ),
        Err(error) => face.warn(&format!(
            "the applier is still stopped by a run of evenkeel that was killed: {}; start it with: \
             {}",
            error.chain(),
            left.statements.join("; ")
        )),
    }
}
