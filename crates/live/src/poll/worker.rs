//! Who asks one server.

use crate::rates::{Own, Sample};
use crate::status::{self, Status};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::time::{Duration, Instant};

/// Between attempts to reach a server that is down: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Between attempts after a server refused us: accounts may be locked after some.
const PAUSE_REFUSED: Duration = Duration::from_secs(30);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Counters of statements.
    Statements,
}

/// What comes of being asked.
pub(super) enum Report {
    /// An answer.
    Sampled(Box<Sample>),
    /// No answer, and the connection is closed.
    Failed(Error),
    /// It is too early to try again.
    Waits,
}

/// Asks one server, on a connection that is kept.
pub(super) struct Worker {
    options: ConnectOptions,
    names: Vec<&'static str>,
    statement: String,
    session: Option<Session>,
    own: Own,
    pause: Duration,
    retry: Option<Instant>,
}

impl Worker {
    pub(super) fn new(options: ConnectOptions, extent: Extent) -> Self {
        let names = match extent {
            Extent::Statements => status::of_statements(),
        };
        Self {
            options,
            statement: status::statement("GLOBAL", &names),
            names,
            session: None,
            own: Own::default(),
            pause: PAUSE,
            retry: None,
        }
    }

    /// Asks. Connects first where it is not connected, unless that was tried a moment ago.
    pub(super) fn answer(&mut self) -> Report {
        if self.retry.is_some_and(|retry| Instant::now() < retry) {
            return Report::Waits;
        }
        match self.sample() {
            Ok(sample) => {
                (self.pause, self.retry) = (PAUSE, None);
                Report::Sampled(Box::new(sample))
            }
            Err(error) => {
                self.session = None;
                let pause = match error.kind() {
                    ErrorKind::Refused => PAUSE_REFUSED,
                    _ => self.pause,
                };
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                self.retry = Some(Instant::now() + pause);
                Report::Failed(error)
            }
        }
    }

    fn sample(&mut self) -> Result<Sample> {
        let session = match &mut self.session {
            Some(session) => session,
            None => {
                self.own = Own::default();
                self.session.insert(Session::open(&self.options)?)
            }
        };
        self.own.statements += 1;
        let rows = session.rows(&self.statement)?;
        Ok(Sample {
            at: Instant::now(),
            connection: session.id(),
            status: Status::of(&self.names, &rows),
            own: self.own,
        })
    }
}
