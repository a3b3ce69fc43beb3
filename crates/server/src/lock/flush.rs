//! What a lock that flushes tables has to wait for before it is requested: where it is not had in time, others wait on.

use super::long_queries::LongQueries;
use super::threads::{self, Statement};
use crate::abilities::{Privilege, missing_privileges};
use crate::connect::Session;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result, units};
use std::time::{Duration, Instant};

/// How often the list of threads is looked at while waiting.
const POLL: Duration = Duration::from_millis(250);
/// How often it is said for whom else we wait.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// Why a lock that flushes is not requested now.
#[derive(Debug)]
pub(super) struct InTheWay {
    /// The one of the statements that a single try would not outlast that has been running for the longest.
    longest: Option<Statement>,
    /// How many sessions wait already for tables that were flushed.
    waiting: usize,
}

impl InTheWay {
    /// Looks for statements that have been running for `seconds` and for sessions that wait for a flush. Where there are
    /// neither, nothing is in the way; nor where no table is in use, if all would be seen: a `SELECT SLEEP(…)`.
    pub(super) fn look(session: &mut Session, seconds: u64, sight: Sight) -> Result<Option<Self>> {
        let all = threads::running(session)?;
        let (waiting, running): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|query| query.awaits_flush);
        let long = running.into_iter().filter(|query| query.seconds >= seconds);
        let longest = long.max_by_key(|query| query.seconds);
        let found = Self {
            longest,
            waiting: waiting.len(),
        };
        let is_clear = found.waiting == 0
            && (found.longest.is_none() || sight.tables && no_table_is_used(session)?);
        Ok((!is_clear).then_some(found))
    }

    /// Says who is in the way, and who waits.
    pub(super) fn describe(&self) -> String {
        let waiting = match self.waiting {
            0 => None,
            1 => Some("1 session waits for a table flush".to_owned()),
            more => Some(format!("{more} sessions wait for a table flush")),
        };
        let running = self.longest.as_ref().map(Statement::describe);
        let parts: Vec<String> = [running, waiting].into_iter().flatten().collect();
        parts.join(", and ")
    }

    /// Says to the user what to do about it.
    pub(super) fn hint(&self) -> String {
        match &self.longest {
            Some(query) => format!(
                "wait until query {id} ends, or end it with KILL QUERY {id}",
                id = query.id
            ),
            None => "look for sessions that hold tables with LOCK TABLES … READ or FLUSH TABLES: others wait until they \
                     unlock them"
                .to_owned(),
        }
    }

    fn note(&self) -> String {
        let then = match self.waiting {
            0 => "waiting for it before requesting the lock",
            _ => "not requesting the lock meanwhile, as more would wait",
        };
        format!("{}: {then}", self.describe())
    }

    fn is_behind_the_same(&self, other: &Self) -> bool {
        let id = |found: &Self| found.longest.as_ref().map(|query| query.id);
        id(self) == id(other) && (self.waiting > 0) == (other.waiting > 0)
    }
}

fn no_table_is_used(session: &mut Session) -> Result<bool> {
    let used = session.rows("SHOW OPEN TABLES WHERE In_use > 0")?;
    Ok(used.is_empty())
}

/// What the account sees of others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// Every table that is in use.
    tables: bool,
}

/// Returns what the account sees, and warns one that does not see what others run.
pub(super) fn sight(session: &mut Session, progress: &dyn Progress) -> Sight {
    // Where it cannot be found out, it is not known that they are seen.
    let all = [Privilege::Process, Privilege::SelectAll];
    let missing = missing_privileges(session, &all).unwrap_or_else(|_| all.to_vec());
    if missing.contains(&Privilege::Process) {
        progress.warn(
            "without the privilege PROCESS, queries of other accounts are not seen: if one runs for long, others may \
             wait for the tables that it uses until it ends"
                .to_owned(),
        );
    }
    Sight {
        tables: !missing.contains(&Privilege::SelectAll),
    }
}

/// Waits until no statement runs that has been running for `seconds`, and no session waits for a flush: at most until
/// `until`, and then returns what is in the way. Queries that have become long are treated as `long_queries` says.
pub(super) fn wait_until_clear(
    session: &mut Session,
    (seconds, sight): (u64, Sight),
    long_queries: &LongQueries,
    until: Instant,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Option<InTheWay>> {
    let mut said: Option<(InTheWay, Instant)> = None;
    loop {
        long_queries.wait(session, until, progress, cancel)?;
        let Some(found) = InTheWay::look(session, seconds, sight)? else {
            return Ok(None);
        };
        if Instant::now() >= until {
            return Ok(Some(found));
        }
        let is_new = said.as_ref().is_none_or(|(before, at)| {
            !found.is_behind_the_same(before) && at.elapsed() >= NOTE_EVERY
        });
        if is_new {
            progress.note(found.note());
            said = Some((found, Instant::now()));
        }
        std::thread::sleep(POLL);
    }
}

/// Makes the error for a lock that was not had within a time.
pub(super) fn gave_up(statement: &str, after: Duration, found: Option<&InTheWay>) -> Error {
    let mut message = format!(
        "gave up on {statement} after {} rather than block queries",
        units::duration(after)
    );
    let mut hint =
        "look for long transactions, LOCK TABLES and DDL with SHOW FULL PROCESSLIST".to_owned();
    if let Some(found) = found {
        message.push_str(&format!(": {}", found.describe()));
        hint = found.hint();
    }
    Error::new(ErrorKind::LockTimeout, message)
        .hint(hint)
        .hint("allow more time with --lock-deadline, or --kill-long-queries")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(id: u64) -> Statement {
        Statement {
            id,
            user: "app".to_owned(),
            seconds: 8,
            text: "SELECT secret".to_owned(),
            awaits_flush: false,
        }
    }

    #[test]
    fn who_is_in_the_way_is_named_without_a_text() {
        for (longest, waiting, told, hint) in [
            (
                Some(query(5)),
                0,
                "query 5 of app has been running for 8 s",
                "KILL QUERY 5",
            ),
            (
                Some(query(5)),
                1,
                "query 5 of app has been running for 8 s, and 1 session waits for a table flush",
                "KILL QUERY 5",
            ),
            (None, 2, "2 sessions wait for a table flush", "LOCK TABLES"),
        ] {
            let found = InTheWay { longest, waiting };
            assert_eq!(found.describe(), told);
            let error = gave_up("FLUSH", Duration::from_secs(3), Some(&found));
            assert_eq!(error.kind(), ErrorKind::LockTimeout);
            assert!(error.to_string().ends_with(&format!(": {told}")), "{error}");
            assert!(error.hints()[0].contains(hint), "{:?}", error.hints());
        }
    }

    #[test]
    fn another_in_the_way_is_another_note() {
        let found = |id, waiting| InTheWay {
            longest: Some(query(id)),
            waiting,
        };
        assert!(found(5, 1).is_behind_the_same(&found(5, 3)));
        assert!(!found(5, 1).is_behind_the_same(&found(6, 1)));
        assert!(!found(5, 0).is_behind_the_same(&found(5, 1)));
    }
}
