//! Routines and tables made and dropped.

use super::plan::Plan;
use super::refusal::explain;
use super::routines::{ROUTINES, TABLES};
use evenkeel_op::Result;
use evenkeel_server::connect::{Session, quote, quote_name};

/// What the routines run under, whatever the caller's is: a queue is of InnoDB or not at all, and a
/// backslash is what QUOTE() takes it for.
const SQL_MODE: &str = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION";

/// Drops what is to go, then makes what is to come.
pub(crate) fn perform(session: &mut Session, plan: &Plan) -> Result<()> {
    let before = session.value("SELECT @@SESSION.sql_mode")?;
    session.run(&format!("SET SESSION sql_mode = '{SQL_MODE}'"))?;
    let changed = change(session, plan);
    let back = quote(&before.unwrap_or_default());
    let restored = session.run(&format!("SET SESSION sql_mode = {back}"));
    changed.map_err(explain)?;
    restored
}

fn change(session: &mut Session, plan: &Plan) -> Result<()> {
    let found = &plan.found;
    let database = quote_name(&found.database);
    for (name, columns) in &TABLES {
        if plan.create_tables.iter().any(|one| one == name) {
            session.run(&format!("CREATE TABLE {database}.{name} {columns}"))?;
        }
    }
    for one in &plan.drop {
        // Somebody else may have been quicker.
        let (kind, name) = (one.kind.word(), quote_name(&one.name));
        session.run(&format!("DROP {kind} IF EXISTS {database}.{name}"))?;
    }
    for routine in &ROUTINES {
        if plan.create.iter().any(|name| name == routine.name) {
            session.run(&routine.statement(&found.abilities, &found.database, &found.stamp))?;
        }
    }
    if !plan.create.is_empty() {
        show_again(session, plan)?;
    }
    for name in &plan.drop_tables {
        session.run(&format!("DROP TABLE IF EXISTS {database}.{name}"))?;
    }
    Ok(())
}

/// The views of queues that were made by another version.
fn show_again(session: &mut Session, plan: &Plan) -> Result<()> {
    if plan.found.queues.is_empty() {
        return Ok(());
    }
    let database = quote_name(&plan.found.database);
    let queues = session.rows(&format!(
        "SELECT name, base, tag FROM {database}.evenkeel_queues"
    ))?;
    for queue in &queues {
        let [name, base, tag] = [0, 1, 2].map(|at| quote(queue.at(at).unwrap_or_default()));
        session.run(&format!(
            "CALL {database}.evenkeel_queue_show('CREATE OR REPLACE', {name}, {base}, {tag})"
        ))?;
    }
    Ok(())
}
