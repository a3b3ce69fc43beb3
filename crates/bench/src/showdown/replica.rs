//! A replica of the server under load, on the same machine.

use super::account::Account;
use super::serve;
use super::stage::Stage;
use evenkeel_op::{Context, Error, Result, Run};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::launch::Running;
use evenkeel_server::replication::{Replication, ThreadState};
use std::time::{Duration, Instant};

/// How long a replica may take to begin.
const BEGIN: Duration = Duration::from_secs(60);

/// Starts one that follows from now on.
pub(super) fn follow(stage: &Stage<'_>, source: &Running, run: Run<'_>) -> Result<Running> {
    let datadir = stage.run_directory.round("replica");
    stage.baseline.loaded(&datadir, run.cancel)?;
    let replica = serve::start(stage, &datadir, 2, run)?;
    let mut session = source.session()?;
    let abilities = Abilities::probe(&mut session)?;
    let at = Coordinates::read(&mut session, &abilities)?;
    let (Some(file), Some(position), Some(port)) =
        (at.binlog_file, at.binlog_position, source.port())
    else {
        return Err(Error::refused("a replica needs the source's binary log"));
    };
    let name = Account::NAME;
    let by_place = match abilities.master_use_gtid {
        true => ", MASTER_USE_GTID=no",
        false => "",
    };
    let change = format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{name}', \
         MASTER_PASSWORD='{name}', MASTER_CONNECT_RETRY=1, MASTER_LOG_FILE='{file}', \
         MASTER_LOG_POS={position}{by_place}"
    );
    let (change, start) = match abilities.change_replication_source {
        true => {
            let change = change.replace("CHANGE MASTER", "CHANGE REPLICATION SOURCE");
            let change = change.replace("MASTER_", "SOURCE_");
            (
                format!("{change}, GET_SOURCE_PUBLIC_KEY=1"),
                "START REPLICA",
            )
        }
        false => (change, "START SLAVE"),
    };
    let mut session = replica.session()?;
    session.run(&change)?;
    session.run(start)?;
    wait(&mut session, &abilities, run).context(|| "the replica does not replicate")?;
    Ok(replica)
}

/// Waits until both of its threads run.
fn wait(session: &mut Session, abilities: &Abilities, run: Run<'_>) -> Result<()> {
    let until = Instant::now() + BEGIN;
    loop {
        run.cancel.check()?;
        let status = Replication::read(session, abilities)?;
        let channel = status.channels.first();
        let is_on = |state: ThreadState| state == ThreadState::Running;
        if channel.is_some_and(|channel| is_on(channel.receiver) && is_on(channel.applier)) {
            return Ok(());
        }
        if Instant::now() >= until {
            let reported = channel.and_then(|channel| {
                let reported = channel.receiver_error.as_ref();
                reported
                    .or(channel.applier_error.as_ref())
                    .map(|(number, text)| format!("{number}: {text}"))
            });
            return Err(Error::failed(
                reported.unwrap_or_else(|| "the replica reports no error".to_owned()),
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
