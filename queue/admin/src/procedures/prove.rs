//! That a database's verbs do what they should.

use super::refusal::explain;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Session, quote, quote_name};

/// Makes a queue of a name that nobody else has, takes rows out of it in each way, and drops it.
///
/// Errors: `Failed` where an answer is another one; those of the session.
pub fn prove(session: &mut Session, database: &str) -> Result<()> {
    let name = format!("evenkeel proof `{}`", session.id());
    let place = quote_name(database);
    session
        .run(&format!(
            "CALL {place}.queue_create({}, 'id INT NOT NULL, what TEXT')",
            quote(&name)
        ))
        .map_err(explain)?;
    let proved = steps(session, &place, &name);
    let dropped = session.run(&format!("CALL {place}.queue_drop({})", quote(&name)));
    proved?;
    dropped.map_err(explain)
}

fn steps(session: &mut Session, place: &str, name: &str) -> Result<()> {
    let view = format!("{place}.{}", quote_name(name));
    let any = quote(name);
    let second = quote(&format!("{name}:id > 1 AND what <> ''"));
    let count = format!("SELECT COUNT(*) FROM {view}");
    let first = format!("SELECT id FROM {view} ORDER BY id LIMIT 1");
    session
        .run(&format!(
            "INSERT INTO {view} VALUES (1, 'one'), (2, 'two'), (3, 'three')"
        ))
        .map_err(explain)?;
    let steps = [
        (count.clone(), "3"),
        (format!("CALL {place}.queue_wait({any}, 0)"), "1"),
        (first.clone(), "1"),
        (count.clone(), "1"),
        // It consumes the first.
        (format!("CALL {place}.queue_wait({second}, 0)"), "1"),
        (first.clone(), "2"),
        (format!("CALL {place}.queue_abort()"), "1"),
        (count.clone(), "2"),
        (format!("CALL {place}.queue_wait_n({any}, 5, 0)"), "1"),
        (count.clone(), "2"),
        (format!("CALL {place}.queue_end()"), "1"),
        (count, "0"),
    ];
    for (sql, wanted) in steps {
        let answer = session.value(&sql).map_err(explain)?;
        if answer.as_deref() != Some(wanted) {
            let answer = answer.as_deref().unwrap_or("NULL").to_owned();
            return Err(
                Error::failed(format!("{sql} answers {answer}, not {wanted}")).hint(
                    "make sure the account has SELECT, INSERT, UPDATE, DELETE and EXECUTE on the database; if it has, this server differs from those that the procedures are made for",
                ),
            );
        }
    }
    Ok(())
}
