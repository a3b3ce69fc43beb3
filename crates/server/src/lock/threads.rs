//! Who runs which statement, out of the server's list of threads.

use crate::connect::Session;
use evenkeel_op::Result;

/// The user that the list names for the threads of replication.
const REPLICATION: &str = "system user";
/// The state of a statement that waits until a flushed table is closed.
const AWAITS_FLUSH: &str = "Waiting for table flush";

/// A statement that another session runs.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) id: u64,
    pub(super) user: String,
    /// How long it has been running.
    pub(super) seconds: u64,
    pub(super) text: String,
    /// Others still use a table that was flushed, and it waits until they have closed it.
    pub(super) awaits_flush: bool,
}

impl Statement {
    /// Says who has been running what for how long, without its text.
    pub(super) fn describe(&self) -> String {
        let Self {
            id, user, seconds, ..
        } = self;
        format!("query {id} of {user} has been running for {seconds} s")
    }
}

/// Returns what other sessions run: clients (prepared statements, too) and events. Without the privilege PROCESS, the
/// server lists only those of the own account.
///
/// Threads of replication are left out. Their time is not how long they have been running: MySQL 8 and later list an
/// idle SQL thread as a query without a text that gets older, and one that applies has the time of its event. Whoever
/// kills what they run stops the replication.
pub(super) fn running(session: &mut Session) -> Result<Vec<Statement>> {
    let own = session.id();
    // Not information_schema.processlist: MySQL is about to remove it.
    let rows = session.rows("SHOW FULL PROCESSLIST")?;
    let rows = rows
        .iter()
        // Execute: a prepared statement. Connect: an event.
        .filter(|row| matches!(row.get("Command"), Some("Query" | "Execute" | "Connect")))
        .filter(|row| row.get("User") != Some(REPLICATION) && row.get("Info").is_some());
    let number = |text: Option<&str>| text.and_then(|t| t.parse().ok()).unwrap_or(0);
    let all = rows.map(|row| Statement {
        id: number(row.get("Id")),
        user: row.get("User").unwrap_or_default().to_owned(),
        seconds: number(row.get("Time")),
        text: row.get("Info").unwrap_or_default().to_owned(),
        awaits_flush: row.get("State") == Some(AWAITS_FLUSH),
    });
    Ok(all.filter(|query| query.id != own).collect())
}
