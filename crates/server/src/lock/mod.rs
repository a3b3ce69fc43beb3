//! Locks on a server: the lightest that does the job, never longer than agreed.
//!
//! | step | MariaDB ≥ 10.4 | MySQL ≥ 8.0 | MySQL 5.7 |
//! |---|---|---|---|
//! | [`Locker::block_ddl`] | `BACKUP STAGE` up to `BLOCK_DDL` | `LOCK INSTANCE FOR BACKUP` | cannot |
//! | [`Locker::stop_commits`] | `BACKUP STAGE BLOCK_COMMIT` | cannot | cannot |
//! | [`Locker::stop_writes`] | `FLUSH TABLES WITH READ LOCK` | the same | the same |
//!
//! Every wait has a deadline, and is made of short tries with pauses between them: what queues
//! behind the request gets through in the pauses. Where `FLUSH TABLES WITH READ LOCK` makes others wait
//! beyond its try ([`Abilities::global_lock_flushes`]), there is no try while the list of threads shows
//! that it would. A watchdog with a connection of its own ends the
//! lock's connection when the lock is held for too long; should this whole process be stopped, the
//! server does so a little later. If the connection was lost, [`Locker::release`] fails: the lock
//! was then not held throughout, whatever else succeeded.

mod flush;
mod long_queries;
mod threads;
mod tries;
mod watchdog;

pub use long_queries::{LongQueries, QueryKind};

use crate::abilities::Abilities;
use crate::connect::Session;
use crate::coordinates::Coordinates;
use crate::options::ConnectOptions;
use evenkeel_op::{Cancel, Error, Progress, Result, units};
use std::time::{Duration, Instant};
use tries::Wanted;
use watchdog::Watchdog;

/// How much later than the watchdog the server itself closes a silent connection, in seconds.
const SILENCE_MARGIN_S: u64 = 30;

/// How long a lock may be waited for and held.
#[derive(Debug, Clone)]
pub struct Limits {
    /// All tries for one lock together, and the wait for long queries before them.
    pub deadline: Duration,
    /// From the first lock to its release; then the watchdog ends it.
    pub hold: Duration,
    /// What to do about queries that would delay the lock.
    pub long_queries: LongQueries,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            hold: Duration::from_secs(120),
            long_queries: LongQueries::default(),
        }
    }
}

/// Which lock to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockChoice {
    /// What stops writes with the least harm: `BACKUP STAGE` where it exists, else a global read
    /// lock.
    Auto,
    /// `BACKUP STAGE … BLOCK_COMMIT` (MariaDB).
    BackupStage,
    /// `LOCK INSTANCE FOR BACKUP` (MySQL 8): stops DDL, not writes.
    Instance,
    /// `FLUSH TABLES WITH READ LOCK`.
    GlobalRead,
    /// The user's own statements.
    Statements {
        /// Takes the lock.
        before: String,
        /// Releases it.
        after: String,
    },
}

/// How long a lock stood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// From the first lock to the release of the last.
    pub lock: Duration,
    /// Of it, how long writes or commits were paused.
    pub writes_stopped: Duration,
}

/// Holds locks on one connection that is never reconnected.
pub struct Locker<'a> {
    session: Session,
    abilities: Abilities,
    limits: Limits,
    watchdog: Watchdog,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
    release: Vec<String>,
    locked_at: Option<Instant>,
    stopped_at: Option<Instant>,
    /// How long writes were paused for tries that failed.
    stopped_in_vain: Duration,
    /// A `BACKUP STAGE` is in force.
    staged: bool,
    /// What the account sees of others, once that is known.
    sight: Option<flush::Sight>,
}

impl<'a> Locker<'a> {
    /// Opens the lock's connection and the watchdog's. Nothing is locked yet.
    pub fn open(
        options: &ConnectOptions,
        limits: Limits,
        progress: &'a dyn Progress,
        cancel: &'a Cancel,
    ) -> Result<Self> {
        let mut session = Session::open(options)?;
        let abilities = Abilities::probe(&mut session)?;
        // Long enough for the watchdog to come first. But when this process is frozen, or its host
        // gone, it is the server that ends the lock.
        let silence = limits.hold.as_secs() + SILENCE_MARGIN_S;
        session.run(&format!("SET SESSION wait_timeout = {silence}"))?;
        session.run(&format!("SET SESSION lock_wait_timeout = {}", tries::TRY_S))?;
        let watchdog = Watchdog::start(options, session.id())?;
        Ok(Self {
            session,
            abilities,
            limits,
            watchdog,
            progress,
            cancel,
            release: Vec::new(),
            locked_at: None,
            stopped_at: None,
            stopped_in_vain: Duration::ZERO,
            staged: false,
            sight: None,
        })
    }

    /// Returns the connection that holds the lock.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Returns what the server can do.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Takes the lock that was chosen.
    pub fn take(&mut self, choice: &LockChoice) -> Result<()> {
        match choice {
            LockChoice::Auto if self.abilities.backup_stage => self.take(&LockChoice::BackupStage),
            LockChoice::Auto | LockChoice::GlobalRead => self.stop_writes(),
            LockChoice::BackupStage => {
                if !self.abilities.backup_stage {
                    return Err(self.cannot("BACKUP STAGE"));
                }
                self.block_ddl()?;
                self.stop_commits()
            }
            LockChoice::Instance => match self.block_ddl()? {
                true if self.abilities.instance_lock => Ok(()),
                _ => Err(self.cannot("LOCK INSTANCE FOR BACKUP")),
            },
            LockChoice::Statements { before, after } => self.statements(before, after),
        }
    }

    fn cannot(&self, lock: &str) -> Error {
        Error::refused(format!("{} has no {lock}", self.abilities.version_text))
            .hint("use --lock auto, which uses a lock that the server has")
    }

    /// Stops DDL, and writes to tables without transactions on MariaDB, while transactions
    /// continue. Returns whether the server has a way to.
    pub fn block_ddl(&mut self) -> Result<bool> {
        let until = Instant::now() + self.limits.deadline;
        if self.abilities.backup_stage {
            self.acquire(&Wanted::new("BACKUP STAGE START"), until)?;
            self.release.push("BACKUP STAGE END".to_owned());
            self.staged = true;
            for stage in ["BACKUP STAGE FLUSH", "BACKUP STAGE BLOCK_DDL"] {
                self.acquire(&Wanted::new(stage), until)?;
            }
            return Ok(true);
        }
        if self.abilities.instance_lock {
            self.acquire(&Wanted::new("LOCK INSTANCE FOR BACKUP"), until)?;
            self.release.push("UNLOCK INSTANCE".to_owned());
            return Ok(true);
        }
        Ok(false)
    }

    /// Makes commits wait (MariaDB). After [`Locker::block_ddl`].
    pub fn stop_commits(&mut self) -> Result<()> {
        let until = Instant::now() + self.limits.deadline;
        self.acquire(
            &Wanted {
                stops_writes: true,
                ..Wanted::new("BACKUP STAGE BLOCK_COMMIT")
            },
            until,
        )
    }

    /// Makes writes wait by a global read lock. Queries that would hold it up are waited for
    /// before it is asked for, so that nothing queues behind them.
    ///
    /// After [`Locker::block_ddl`] on MariaDB, which has both locks but not in one session, it is
    /// [`Locker::stop_commits`]: the stage stops all other writes already.
    pub fn stop_writes(&mut self) -> Result<()> {
        if self.staged {
            return self.stop_commits();
        }
        let until = Instant::now() + self.limits.deadline;
        let wanted = Wanted {
            stops_writes: true,
            waits_for_queries: true,
            flushes: self.abilities.global_lock_flushes,
            // What the statement got before it timed out must not stay.
            clean_up: Some("UNLOCK TABLES"),
            ..Wanted::new("FLUSH TABLES WITH READ LOCK")
        };
        self.acquire(&wanted, until)?;
        self.release.push("UNLOCK TABLES".to_owned());
        Ok(())
    }

    /// Runs the user's own locking statement; it counts as stopping writes.
    fn statements(&mut self, before: &str, after: &str) -> Result<()> {
        let until = Instant::now() + self.limits.deadline;
        let wanted = Wanted {
            stops_writes: true,
            waits_for_queries: true,
            flushes: self.abilities.global_lock_flushes && flushes(before),
            ..Wanted::new(before)
        };
        self.acquire(&wanted, until)?;
        self.release.push(after.to_owned());
        Ok(())
    }

    /// Makes every commit that was acknowledged durable in the redo log, whatever
    /// `innodb_flush_log_at_trx_commit` says.
    pub fn flush_engine_logs(&mut self) -> Result<()> {
        if self.abilities.flush_engine_logs {
            self.session.run("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")?;
        }
        Ok(())
    }

    /// Reads the coordinates; meant for while writes are paused.
    pub fn coordinates(&mut self) -> Result<Coordinates> {
        Coordinates::read(&mut self.session, &self.abilities)
    }

    /// Releases everything, and fails if the lock was lost before.
    pub fn release(mut self) -> Result<Held> {
        let mut lost = None;
        for statement in std::mem::take(&mut self.release).iter().rev() {
            if let Err(error) = self.session.run(statement) {
                lost.get_or_insert(error);
            }
        }
        let now = Instant::now();
        let since = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| now.duration_since(at));
        let held = Held {
            lock: since(self.locked_at),
            writes_stopped: since(self.stopped_at) + self.stopped_in_vain,
        };
        if self.watchdog.disarm() {
            return Err(self.held_too_long());
        }
        if let Some(error) = lost {
            return Err(Error::failed(
                "the lock was lost: its connection ended before the release",
            )
            .because(error)
            .hint("do not trust what was done under the lock; run it again"));
        }
        if !self.session.is_alive() {
            return Err(Error::failed(
                "the lock was lost: its connection was replaced",
            ));
        }
        Ok(held)
    }

    fn held_too_long(&self) -> Error {
        Error::failed(format!(
            "the lock was lost: it was held for longer than {}, so the watchdog ended it",
            units::duration(self.limits.hold)
        ))
        .hint("raise --lock-hold-limit, or find out what took so long")
    }
}

/// Returns whether a statement of the user's own flushes as a global read lock does. `FLUSH TABLES … FOR EXPORT` does
/// not: it gets its lock beside those who read.
fn flushes(statement: &str) -> bool {
    let statement = statement.to_ascii_uppercase();
    let words: Vec<&str> = statement.split_whitespace().collect();
    words.first() == Some(&"FLUSH")
        && !words
            .windows(2)
            .any(|two| two[0] == "FOR" && two[1].starts_with("EXPORT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_flush_are_known() {
        for statement in [
            "flush tables with read lock",
            "  FLUSH LOCAL TABLES WITH READ LOCK",
            "FLUSH TABLES shop.t WITH READ LOCK",
        ] {
            assert!(flushes(statement), "{statement}");
        }
        for statement in ["FLUSH TABLES shop.t FOR EXPORT", "LOCK TABLES shop.t READ"] {
            assert!(!flushes(statement), "{statement}");
        }
    }
}
