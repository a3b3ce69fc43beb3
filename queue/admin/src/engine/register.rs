//! Engine and functions put in and taken out.

use super::found::Found;
use super::names::FUNCTIONS;
use super::plan::{Plan, still_used};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_plugins::functions::{create, drop_all, give_back, leave_out_of_the_binary_log};
use evenkeel_plugins::refusal::{explain, to_copy};
use evenkeel_server::connect::{ServerNumber, Session, quote, quote_name};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the server may take to let a library go that nobody uses.
const LETS_GO: Duration = Duration::from_secs(5);

/// Takes out what is to go, then puts in what is to come.
pub(super) fn perform(session: &mut Session, plan: &Plan) -> Result<()> {
    leave_out_of_the_binary_log(session)?;
    drop_all(session, &plan.drop)?;
    if !plan.found.can_call {
        forget(session, &plan.drop)?;
    }
    if let Some(library) = &plan.uninstall {
        uninstall(session, &plan.found, library)?;
    }
    if let Some(library) = &plan.install {
        install(session, &plan.found, library).map_err(|error| match ServerNumber::of(&error) {
            Some(1126) if plan.here.is_none() => {
                to_copy(&error, &plan.found.plugin_dir, library, None)
            }
            _ => explain(error),
        })?;
    }
    let Some(library) = &plan.library else {
        return Ok(());
    };
    for name in &plan.create {
        create(session, &FUNCTIONS, name, library).map_err(explain)?;
    }
    Ok(())
}

/// Takes functions from the server's list that it has not loaded: there is nothing that a statement could drop.
fn forget(session: &mut Session, names: &[String]) -> Result<()> {
    for name in names {
        let sql = format!("DELETE FROM mysql.func WHERE name = {}", quote(name));
        session.run(&sql).map_err(explain)?;
    }
    Ok(())
}

fn install(session: &mut Session, found: &Found, library: &str) -> Result<()> {
    session.run(&match found.installs_sonames {
        true => format!("INSTALL SONAME {}", quote(library)),
        false => format!("INSTALL PLUGIN QUEUE SONAME {}", quote(library)),
    })
}

fn uninstall(session: &mut Session, found: &Found, library: &str) -> Result<()> {
    if !found.engine.as_ref().is_some_and(|engine| engine.active) {
        // It stands in the list and was not loaded: there is nothing that a statement could take out.
        let sql = format!("DELETE FROM mysql.plugin WHERE dl = {}", quote(library));
        return session.run(&sql).map_err(explain);
    }
    // Tables that the server keeps open for the next who comes keep the engine, too.
    for queue in &found.queues {
        let (database, table) = (quote_name(&queue.database), quote_name(&queue.table));
        session
            .run(&format!("FLUSH TABLES {database}.{table}"))
            .map_err(explain)?;
    }
    let sql = match found.installs_sonames {
        true => format!("UNINSTALL SONAME {}", quote(library)),
        false => "UNINSTALL PLUGIN QUEUE".to_owned(),
    };
    let begun = Instant::now();
    while let Err(error) = session.run(&sql) {
        match ServerNumber::of(&error) {
            // MySQL does not begin to as long as it is used, and who has just gone may seem to be there.
            Some(1883) if begun.elapsed() > LETS_GO => return Err(still_used(library)),
            Some(1883) => sleep(Duration::from_millis(20)),
            _ => return Err(explain(error)),
        }
    }
    let sql = "SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'QUEUE'";
    while session.value(sql)?.as_deref() != Some("0") {
        if begun.elapsed() > LETS_GO {
            return Err(still_used(library));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Fails where consumers own rows or wait. Nobody can do either with a queue that cannot be opened: a newer library may
/// be what it needs.
pub(super) fn refuse_busy(session: &mut Session, found: &Found) -> Result<()> {
    if !found.works() {
        return Ok(());
    }
    for name in &found.queues {
        let stats = format!("SELECT queue_stats({})", quote(&name.to_string()));
        let text = match session.value(&stats) {
            Err(error) if error.kind() == ErrorKind::Failed => continue,
            answered => answered?.unwrap_or_default(),
        };
        let number = |what: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(what));
            line.and_then(|rest| rest.trim().parse::<u64>().ok())
                .unwrap_or(0)
        };
        let (owned, waiters) = (number("rows_owned:"), number("waiters:"));
        if owned + waiters > 0 {
            return Err(Error::refused(format!(
                "consumers are working: {name} has {owned} owned rows and {waiters} waiting consumers"
            ))
            .hint("stop the consumers, then run this again: the rows are kept"));
        }
    }
    Ok(())
}

/// Gives the server back what it had, and returns why, with what became of that.
pub(super) fn put_back(session: &mut Session, plan: &Plan, why: Error) -> Error {
    let mut back = || -> Result<()> {
        drop_all(session, &plan.create)?;
        let now = super::find(session)?;
        if let Some(library) = &plan.install
            && now
                .engine
                .as_ref()
                .is_some_and(|one| one.library == *library)
        {
            uninstall(session, &now, library)?;
        }
        let before = plan.found.engine.as_ref().filter(|engine| engine.active);
        if let Some(engine) = before
            && super::find(session)?.engine.is_none()
        {
            install(session, &plan.found, &engine.library)?;
        }
        give_back(session, &FUNCTIONS, &plan.found.functions, &plan.drop)
    };
    let is_leaving =
        |now: Result<Found>| now.is_ok_and(|now| now.engine.is_some_and(|engine| engine.leaving));
    match back() {
        Ok(()) if is_leaving(super::find(session)) => why.hint(
            "until then no session can wait on a queue, because the server has begun to uninstall the engine; the rows are kept",
        ),
        Ok(()) => why.hint("the server is unchanged"),
        Err(error) => why.hint(format!(
            "the server may have no queue engine now ({error}): see 'evenkeel plugin status \
             queue'; the rows are safe in their files"
        )),
    }
}
