//! A replica to be repaired: nobody else stops its threads meanwhile, and what a repair stops runs again.
//!
//! The lease is the lock that backups and comparisons hold while a SQL thread stands. It belongs to a session, the
//! one that carries out the steps: when that is lost, so is the lease, and no further step is possible.

use super::note::{self, Note, Noted, ServerRun, SourceServer, Standing, Threads};
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

/// A session that says nothing for so long is ended by the server, and the lease with it: without that, one whose
/// host has lost power would have it for hours.
const IDLE: Duration = Duration::from_secs(60);

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
        // It waits for the login of the watchdog.
        let idle = IDLE + options.connect_timeout;
        session.run(&format!("SET SESSION wait_timeout = {}", idle.as_secs()))?;
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
    /// server's process, if it is on this host; after `limit` the watchdog starts them. Where a start would delete
    /// relay logs, nothing starts while `source` does not answer.
    ///
    /// Errors: those of asking, and of starting the watchdog.
    pub fn halt(
        mut self,
        pid: Option<i32>,
        program: &Program,
        channel: &str,
        (source, limit): (&ConnectOptions, Duration),
    ) -> Result<Halted> {
        let session = self.session.as_mut().ok_or_else(lost)?;
        let all = Channel::all(session, &self.abilities)?;
        let own = all.iter().filter(|one| one.name == channel);
        let noted = Noted {
            process: ServerRun::of(session, pid)?,
            server: note::identity(session)?,
            channels: vec![channel.to_owned()],
            threads: Threads::Both,
            from: Some(own.map(note::address).collect()),
            time_s: note::now_s(),
        };
        let source = SourceServer::meet(source)?;
        let note = Note::write(&noted)?;
        let watch = Watch::new((&self.options, Some(&source)), &noted, note.path(), limit);
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
            source,
            has_run: false,
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
    source: SourceServer,
    /// Whether a statement was run: before, nothing is stopped.
    has_run: bool,
    /// `None` once they run again.
    guard: Option<(Note, Watchdog)>,
}

impl Halted {
    /// Runs a statement, as [`ReplicaLease::run`].
    ///
    /// Errors: those of that.
    pub fn run(&mut self, sql: &str, limit: Duration) -> Result<()> {
        self.has_run = true;
        self.lease.run(sql, limit)
    }

    /// Asks how a channel is.
    ///
    /// Errors: those of [`ReplicaLease::channel`].
    pub fn channel(&mut self, name: &str) -> Result<Channel> {
        self.lease.channel(name)
    }

    /// Starts both threads. Returns whether they are started by this: a server that was restarted has its own way.
    ///
    /// Errors: those of the server; then the watchdog goes on trying.
    pub fn start(mut self) -> Result<bool> {
        self.resume()
    }

    fn resume(&mut self) -> Result<bool> {
        let mut is_started = false;
        let Some((note, watchdog)) = self.guard.take() else {
            return Ok(is_started);
        };
        // A server that was restarted has its own way. On an error the watchdog is dropped untold, and does it.
        if self.noted.process.may_last() {
            let alive = self.lease.session.take();
            let alive = alive.and_then(|mut session| session.is_alive().then_some(session));
            let mut session = match alive {
                Some(session) => session,
                None => Session::open(&self.lease.options)?,
            };
            if self.noted.process.lasts(&mut session)? {
                let standing = Standing {
                    source: Some(&self.source),
                    ..self.noted.standing()
                };
                let abilities = &self.lease.abilities;
                let started = note::start_standing(&mut session, abilities, &standing, None)?;
                is_started = !started.is_empty();
            }
            self.lease.session = Some(session);
        }
        watchdog.dismiss();
        note.remove();
        Ok(is_started)
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        if let Some((note, watchdog)) = self.guard.take_if(|_| !self.has_run) {
            watchdog.dismiss();
            note.remove();
        }
        // What fails here is left to the watchdog.
        let _ = self.resume();
    }
}
