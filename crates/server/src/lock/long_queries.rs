//! Queries that run for long: a global read lock would wait for them, and everybody for it.

use super::threads::{self, Statement};
use crate::connect::Session;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use std::time::{Duration, Instant};

/// How often the list of queries is looked at while waiting.
const POLL: Duration = Duration::from_millis(250);

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// SELECT and other reads.
    Select,
    /// INSERT, UPDATE, DELETE, REPLACE, LOAD, CALL, DDL.
    Update,
}

impl QueryKind {
    /// Says which kind a statement is by its first word.
    #[must_use]
    pub fn of(statement: &str) -> Self {
        let start = statement.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        let word: String = start
            .chars()
            .take_while(char::is_ascii_alphabetic)
            .collect();
        match word.to_ascii_uppercase().as_str() {
            "SELECT" | "SHOW" | "WITH" | "TABLE" | "VALUES" | "DESC" | "DESCRIBE" | "EXPLAIN"
            | "CHECKSUM" | "CHECK" => Self::Select,
            _ => Self::Update,
        }
    }
}

/// What to do about long queries before asking for a lock that they would hold up.
#[derive(Debug, Clone)]
pub struct LongQueries {
    /// From how long on a query is long.
    pub threshold: Duration,
    /// How long to wait for them to end.
    pub wait: Duration,
    /// Which kinds to kill when they have not ended by then; otherwise the lock is given up.
    pub kill: Vec<QueryKind>,
}

impl Default for LongQueries {
    fn default() -> Self {
        Self {
            threshold: Duration::from_secs(5),
            wait: Duration::from_secs(60),
            kill: Vec::new(),
        }
    }
}

impl LongQueries {
    /// Waits until no long query runs, at most until `deadline`. Nothing is blocked meanwhile.
    pub(super) fn wait(
        &self,
        session: &mut Session,
        deadline: Instant,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<()> {
        let until = deadline.min(Instant::now() + self.wait);
        let mut said = false;
        loop {
            cancel.check()?;
            let running = self.running(session)?;
            if running.is_empty() {
                return Ok(());
            }
            if !said {
                said = true;
                progress.note(format!(
                    "waiting for {} long queries before requesting the lock",
                    running.len()
                ));
            }
            if Instant::now() >= until {
                return self.kill_or_give_up(session, &running, progress);
            }
            std::thread::sleep(POLL);
        }
    }

    fn running(&self, session: &mut Session) -> Result<Vec<Statement>> {
        let threshold = self.threshold.as_secs().max(1);
        let mut running = threads::running(session)?;
        // Those who wait for a flush are held up by another, and would be killed in vain.
        running.retain(|query| query.seconds >= threshold && !query.awaits_flush);
        Ok(running)
    }

    fn kill_or_give_up(
        &self,
        session: &mut Session,
        running: &[Statement],
        progress: &dyn Progress,
    ) -> Result<()> {
        let spared = running
            .iter()
            .filter(|query| !self.kill.contains(&QueryKind::of(&query.text)))
            .max_by_key(|query| query.seconds);
        if let Some(spared) = spared {
            let text: String = spared.text.chars().take(80).collect();
            return Err(Error::new(
                ErrorKind::LockTimeout,
                format!("gave up on the lock: {}: {text}", spared.describe()),
            )
            .hint("wait for it with --long-query-wait, or allow --kill-long-queries"));
        }
        for query in running {
            progress.warn(format!(
                "killing query {} of {} ({} s)",
                query.id, query.user, query.seconds
            ));
            // It may have ended by itself in the meantime.
            let _ = session.run(&format!("KILL QUERY {}", query.id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_reported_by_the_first_word() {
        assert_eq!(QueryKind::of("  (select 1)"), QueryKind::Select);
        assert_eq!(QueryKind::of("SELECT SLEEP(1)"), QueryKind::Select);
        assert_eq!(QueryKind::of("update t set a=1"), QueryKind::Update);
        assert_eq!(QueryKind::of("alter table t force"), QueryKind::Update);
    }
}
