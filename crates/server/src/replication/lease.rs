//! A replica to be repaired: nobody else stops its threads meanwhile, and what a repair stops runs again.
//!
//! The lease is the lock that backups and comparisons hold while a SQL thread stands. It belongs to a session, the
//! one that carries out the steps: when that is lost, so is the lease, and no further step is possible.

use super::note::{self, Note, Noted, ServerRun, Threads};
use super::statements;
use super::status::Channel;
use super::stop::be_alone;
use super::watchdog::{Order as Watch, Program, Watchdog};
use crate::abilities::Abilities;
use crate::connect::Session;
use crate::options::ConnectOptions;
use evenkeel_op::{Error, ErrorKind, Result, units};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The lease of a replica. It ends with this value.
#[derive(Debug)]
pub struct ReplicaLease {
    options: ConnectOptions,
    /// Absent once a statement has not ended in time.
    session: Option<Session>,
    abilities: Abilities,
}

impl ReplicaLease {
    /// Takes the lease.
    ///
    /// Errors: those of sessions; `Busy` while a backup, a comparison or another repair has it.
    pub fn take(options: &ConnectOptions) -> Result<Self> {
        let mut session = Session::open(options)?;
        session.run("SET SESSION wait_timeout = 28800")?;
        be_alone(&mut session)?;
        let abilities = Abilities::probe(&mut session)?;
        Ok(Self {
            options: options.clone(),
            session: Some(session),
            abilities,
        })
    }

    /// Returns what the server can do.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Asks how a channel is.
    ///
    /// Errors: those of the session; `Failed` if it is gone.
    pub fn channel(&mut self, name: &str) -> Result<Channel> {
        let session = self.session.as_mut().ok_or_else(lost)?;
        let all = Channel::all(session, &self.abilities)?;
        let found = all.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| Error::failed(format!("channel '{name}' is gone")))
    }

    /// Asks for one value.
    ///
    /// Errors: those of the session; `Failed` if it is gone.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>> {
        self.session.as_mut().ok_or_else(lost)?.value(sql)
    }

    /// Runs a statement, and waits for its end for no longer than `limit`.
    ///
    /// Errors: those of the session; `LockTimeout` afterwards: the lease is over then.
    pub fn run(&mut self, sql: &str, limit: Duration) -> Result<()> {
        let mut session = self.session.take().ok_or_else(lost)?;
        let (sender, done) = sync_channel(1);
        let statement = sql.to_owned();
        std::thread::Builder::new()
            .name("step".to_owned())
            .spawn(move || {
                let ended = session.run(&statement);
                let _ = sender.send((session, ended));
            })
            .map_err(|error| Error::failed("failed to start a thread").because(error))?;
        match done.recv_timeout(limit) {
            Ok((session, ended)) => {
                self.session = Some(session);
                ended
            }
            Err(RecvTimeoutError::Disconnected) => Err(Error::failed("a thread died")),
            Err(RecvTimeoutError::Timeout) => Err(Error::new(
                ErrorKind::LockTimeout,
                format!("'{sql}' did not end within {}", units::duration(limit)),
            )
            .hint("find out what it waits for: evenkeel replica diagnose")),
        }
    }

    /// Returns the statement that starts both threads of a channel.
    #[must_use]
    pub fn start_statement(&self, channel: &str) -> String {
        statements::of_channel("START", "", Some(channel), &self.abilities)
    }

    /// Makes sure that both threads of a channel run again, whatever happens: nothing is stopped yet. `pid` is the
    /// server's process, if it is on this host; after `limit` the watchdog starts them.
    ///
    /// Errors: those of asking, and of starting the watchdog.
    pub fn halt(
        mut self,
        pid: Option<i32>,
        program: &Program,
        channel: &str,
        limit: Duration,
    ) -> Result<Halted> {
        let session = self.session.as_mut().ok_or_else(lost)?;
        let noted = Noted {
            process: ServerRun::of(session, pid)?,
            server: note::identity(session)?,
            channels: vec![channel.to_owned()],
            threads: Threads::Both,
        };
        let note = Note::write(&noted)?;
        let watch = Watch::new(&self.options, &noted, note.path(), limit);
        let watchdog = match Watchdog::start(program, &watch) {
            Ok(watchdog) => watchdog,
            Err(error) => {
                note.remove();
                return Err(error);
            }
        };
        Ok(Halted {
            lease: self,
            noted,
            guard: Some((note, watchdog)),
        })
    }
}

fn lost() -> Error {
    Error::failed("the session that had the lease of the replica is lost")
}

/// A replica whose threads may be stopped. Dropping it starts them.
#[derive(Debug)]
pub struct Halted {
    lease: ReplicaLease,
    noted: Noted,
    /// `None` once they run again.
    guard: Option<(Note, Watchdog)>,
}

impl Halted {
    /// Runs a statement, as [`ReplicaLease::run`].
    ///
    /// Errors: those of that.
    pub fn run(&mut self, sql: &str, limit: Duration) -> Result<()> {
        self.lease.run(sql, limit)
    }

    /// Asks how a channel is.
    ///
    /// Errors: those of [`ReplicaLease::channel`].
    pub fn channel(&mut self, name: &str) -> Result<Channel> {
        self.lease.channel(name)
    }

    /// Starts both threads.
    ///
    /// Errors: those of the server; then the watchdog goes on trying.
    pub fn start(mut self) -> Result<()> {
        self.resume()
    }

    fn resume(&mut self) -> Result<()> {
        let Some((note, watchdog)) = self.guard.take() else {
            return Ok(());
        };
        // A server that was restarted has its own way. On an error the watchdog is dropped untold, and does it.
        if self.noted.process.may_last() {
            let alive = self.lease.session.take();
            let mut session = match alive.filter(|session| !session.is_lost()) {
                Some(session) => session,
                None => Session::open(&self.lease.options)?,
            };
            let abilities = &self.lease.abilities;
            note::start_standing(&mut session, abilities, &self.noted.standing(), None)?;
            self.lease.session = Some(session);
        }
        watchdog.dismiss();
        note.remove();
        Ok(())
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        // What fails here is left to the watchdog.
        let _ = self.resume();
    }
}
