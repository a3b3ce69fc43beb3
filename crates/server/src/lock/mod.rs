//! Locks on a server: the lightest that does the job, never longer than agreed.
//!
//! | step | MariaDB ≥ 10.4 | MySQL ≥ 8.0 | MySQL 5.7 |
//! |---|---|---|---|
//! | [`Locker::block_ddl`] | `BACKUP STAGE` up to `BLOCK_DDL` | `LOCK INSTANCE FOR BACKUP` | cannot |
//! | [`Locker::stop_commits`] | `BACKUP STAGE BLOCK_COMMIT` | cannot | cannot |
//! | [`Locker::stop_writes`] | `FLUSH TABLES WITH READ LOCK` | the same | the same |
//!
//! Every wait has a deadline. A watchdog with a connection of its own ends the lock's connection
//! when the lock is held for too long. If the connection was lost, [`Locker::release`] fails: the
//! lock was then not held throughout, whatever else succeeded.

mod long_queries;
mod watchdog;

pub use long_queries::{LongQueries, QueryKind};

use crate::abilities::Abilities;
use crate::connect::Session;
use crate::coordinates::Coordinates;
use crate::options::ConnectOptions;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Progress, Result};
use std::time::{Duration, Instant};
use watchdog::Watchdog;

/// Longest single try of a lock that makes others queue behind it. Between tries everything runs.
const TRY_S: u64 = 1;
/// Pause after the first failed try; doubled up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// How long a lock may be waited for and held.
#[derive(Debug, Clone)]
pub struct Limits {
    /// All tries together.
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
    /// Of it, how long writes or commits stood still.
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
        // A server that closes idle connections early must not close this one.
        let hold = limits.hold.as_secs().max(1) + 60;
        session.run(&format!("SET SESSION wait_timeout = {}", hold.max(28_800)))?;
        session.run(&format!("SET SESSION lock_wait_timeout = {TRY_S}"))?;
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
            .hint("use --lock auto, which takes what the server has")
    }

    /// Stops DDL, and writes to tables without transactions on MariaDB, while transactions go on.
    /// Returns whether the server has a way to.
    pub fn block_ddl(&mut self) -> Result<bool> {
        if self.abilities.backup_stage {
            self.mark_locked();
            self.release.push("BACKUP STAGE END".to_owned());
            for stage in ["START", "FLUSH", "BLOCK_DDL"] {
                self.try_until_deadline(&format!("BACKUP STAGE {stage}"))?;
            }
            return Ok(true);
        }
        if self.abilities.instance_lock {
            self.mark_locked();
            self.try_until_deadline("LOCK INSTANCE FOR BACKUP")?;
            self.release.push("UNLOCK INSTANCE".to_owned());
            return Ok(true);
        }
        Ok(false)
    }

    /// Makes commits wait (MariaDB). After [`Locker::block_ddl`].
    pub fn stop_commits(&mut self) -> Result<()> {
        self.stopped_at.get_or_insert_with(Instant::now);
        self.try_until_deadline("BACKUP STAGE BLOCK_COMMIT")
    }

    /// Makes writes wait by a global read lock. Queries that would hold it up are waited for
    /// before it is asked for, so that nothing queues behind them.
    pub fn stop_writes(&mut self) -> Result<()> {
        self.wait_for_long_queries()?;
        self.mark_locked();
        let mut pause = PAUSE;
        let until = Instant::now() + self.limits.deadline;
        loop {
            self.stopped_at = Some(Instant::now());
            match self.guarded("FLUSH TABLES WITH READ LOCK") {
                Ok(()) => break,
                Err(error) if error.kind() != ErrorKind::LockTimeout => return Err(error),
                Err(error) if Instant::now() + pause >= until => return Err(self.gave_up(error)),
                Err(_) => {}
            }
            // What the statement got before it timed out must not stay.
            self.session.run("UNLOCK TABLES")?;
            self.stopped_at = None;
            self.progress
                .note(format!("the lock was not free, next try in {pause:?}"));
            self.sleep(pause)?;
            pause = (pause * 2).min(PAUSE_MAX);
            self.wait_for_long_queries()?;
        }
        self.release.push("UNLOCK TABLES".to_owned());
        Ok(())
    }

    /// Runs the user's own locking statement; it counts as stopping writes.
    fn statements(&mut self, before: &str, after: &str) -> Result<()> {
        self.wait_for_long_queries()?;
        self.mark_locked();
        self.stopped_at = Some(Instant::now());
        self.try_until_deadline(before)?;
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

    /// Reads the coordinates; meant while writes stand still.
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
            writes_stopped: since(self.stopped_at),
        };
        if self.watchdog.disarm() {
            return Err(Error::failed(format!(
                "the lock was held for longer than {:?}, so the watchdog ended it",
                self.limits.hold
            ))
            .hint("raise --lock-hold-limit, or find out what took so long"));
        }
        if let Some(error) = lost {
            return Err(Error::failed(
                "the lock was lost: its connection ended before the release",
            )
            .because(error)
            .hint("nothing that was done under the lock can be trusted; run it again"));
        }
        if !self.session.is_alive() {
            return Err(Error::failed(
                "the lock was lost: its connection is not the same any more",
            ));
        }
        Ok(held)
    }

    fn wait_for_long_queries(&mut self) -> Result<()> {
        let policy = self.limits.long_queries.clone();
        policy.wait(&mut self.session, self.progress, self.cancel)
    }

    fn mark_locked(&mut self) {
        if self.locked_at.is_none() {
            self.locked_at = Some(Instant::now());
            self.watchdog.arm(self.limits.deadline + self.limits.hold);
        }
    }

    /// Tries a statement that lets everybody else run while it waits, until the deadline.
    fn try_until_deadline(&mut self, statement: &str) -> Result<()> {
        let until = Instant::now() + self.limits.deadline;
        loop {
            self.cancel.check()?;
            match self.guarded(statement) {
                Err(error) if error.kind() == ErrorKind::LockTimeout => {
                    if Instant::now() >= until {
                        return Err(self.gave_up(error));
                    }
                }
                other => return other,
            }
        }
    }

    fn guarded(&mut self, statement: &str) -> Result<()> {
        self.session
            .run(statement)
            .context(|| format!("failed to run {statement}"))
    }

    fn gave_up(&self, error: Error) -> Error {
        Error::new(
            ErrorKind::LockTimeout,
            format!(
                "gave up after {:?} rather than block queries",
                self.limits.deadline
            ),
        )
        .because(error)
        .hint("look for long transactions, LOCK TABLES and DDL with SHOW FULL PROCESSLIST")
        .hint("allow more time with --lock-deadline, or --kill-long-queries")
    }

    fn sleep(&self, pause: Duration) -> Result<()> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            self.cancel.check()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
