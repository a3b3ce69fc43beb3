//! That rows go through a queue.

use evenkeel_op::{Error, Result};
use evenkeel_plugins::refusal::explain;
use evenkeel_server::connect::{Session, quote, quote_name};

/// Sends two rows through a queue in a database of its own, which is removed again.
///
/// Errors: `Failed` where they do not come out as they should; those of the session.
pub(super) fn prove(session: &mut Session) -> Result<()> {
    let database = format!("evenkeel_queue_proof_{}", session.id());
    let name = quote_name(&database);
    session
        .run(&format!("CREATE DATABASE {name}"))
        .map_err(explain)?;
    let proven = through(session, &database);
    let removed = session
        .run(&format!("DROP DATABASE {name}"))
        .map_err(explain);
    proven.and(removed)
}

fn through(session: &mut Session, database: &str) -> Result<()> {
    let table = format!("{}.q", quote_name(database));
    let create = format!("CREATE TABLE {table} (id INT NOT NULL) ENGINE=QUEUE");
    session.run(&create).map_err(explain)?;
    let insert = format!("INSERT INTO {table} VALUES (7), (8)");
    session.run(&insert).map_err(explain)?;
    let wait = format!("SELECT queue_wait({}, 5)", quote(&format!("{database}.q")));
    let (rows, end) = (format!("SELECT id FROM {table}"), "SELECT queue_end()");
    for (sql, wanted) in [(&*wait, "1"), (&*rows, "7"), (end, "1"), (&*rows, "8")] {
        let found = session.rows(sql).map_err(explain)?;
        let values: Vec<&str> = found.iter().filter_map(|row| row.at(0)).collect();
        if values != [wanted] {
            return Err(Error::failed(format!(
                "a test queue does not work: {sql} gives {} instead of {wanted}",
                values.join(", ")
            ))
            .hint(
                "see the server's error log; build the library for exactly this server version",
            ));
        }
    }
    Ok(())
}
