//! Who asks one server.

use super::Focus;
use crate::details::{self, Asker, Spent};
use crate::rates::{Own, Sample};
use crate::status::{self, QUESTIONS, Status};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::{Ask, RowLimit};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::BoundedSession;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Between attempts to reach a server that is down: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Between attempts after a server refused us: accounts may be locked after some.
const PAUSE_REFUSED: Duration = Duration::from_secs(30);

/// No server has as much to say. Its classes of statements may be a million; counters are some hundred.
const MOST_COUNTERS: RowLimit = RowLimit {
    rows: 10_000,
    bytes: 4 << 20,
};
const MOST_OF_ALL: RowLimit = RowLimit {
    rows: 2_000_000,
    bytes: 512 << 20,
};

/// No row is longer.
const ROW_BYTES: usize = 4 << 20;

const SELECT: &str = "Com_select";

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Counters of statements.
    Statements,
    /// Also gauges, replication, and classes of statements.
    Everything,
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
    extent: Extent,
    names: Vec<&'static str>,
    statement: String,
    session: Option<BoundedSession>,
    asker: Option<Asker>,
    /// What this session had added to the server's counters when it asked for them last, and since then.
    own: Own,
    spent: Spent,
    focus: Focus,
    pause: Duration,
    retry: Option<Instant>,
}

impl Worker {
    pub(super) fn new(mut options: ConnectOptions, extent: Extent, focus: Focus) -> Self {
        options.packet_max = Some(ROW_BYTES);
        let mut names = status::of_statements();
        if extent == Extent::Everything {
            names.extend(details::NAMES);
        }
        Self {
            options,
            extent,
            statement: status::statement("GLOBAL", &names),
            names,
            session: None,
            asker: None,
            own: Own::default(),
            spent: Spent::default(),
            focus,
            pause: PAUSE,
            retry: None,
        }
    }

    /// Asks; whatever a server sends ends no thread.
    pub(super) fn answer_or_give_up(&mut self) -> Report {
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer()));
        answered.unwrap_or_else(|_| {
            self.session = None;
            self.retry = Some(Instant::now() + PAUSE_MAX);
            Report::Failed(Error::new(
                ErrorKind::Unreachable,
                "what listens there answers as no server does",
            ))
        })
    }

    /// Asks. Connects first where it is not connected, unless that was tried a moment ago.
    fn answer(&mut self) -> Report {
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
                self.asker = None;
                self.own = Own::default();
                let session = BoundedSession::open(&self.options, MOST_COUNTERS)?;
                self.session.insert(session)
            }
        };
        if self.extent == Extent::Everything && self.asker.is_none() {
            self.asker = Some(Asker::new(session)?);
            // How many statements it took to get here is for the server to say.
            self.spent.is_unsure = true;
        }
        let spent = std::mem::take(&mut self.spent);
        let known = &mut self.own;
        known.statements = known
            .statements
            .saturating_add(spent.own.statements)
            .saturating_add(1);
        known.selects = known.selects.saturating_add(spent.own.selects);
        session.limit_rows(MOST_COUNTERS);
        let rows = session.rows(&self.statement)?;
        session.limit_rows(MOST_OF_ALL);
        let at = Instant::now();
        let status = Status::of(&self.names, &rows);
        let mut details = None;
        if let Some(asker) = &mut self.asker {
            let asked = if spent.is_unsure {
                self.own = own(session)?;
                1
            } else {
                0
            };
            let (said, spent) = asker.ask(session, &status, self.focus.is_on())?;
            details = Some(said);
            self.spent = spent;
            self.spent.own.statements += asked;
        }
        Ok(Sample {
            at,
            connection: session.id(),
            status,
            own: self.own,
            details,
        })
    }
}

/// Asks the server what this session had added to its counters before this statement.
fn own(session: &mut BoundedSession) -> Result<Own> {
    let names = [QUESTIONS, SELECT];
    let rows = session.rows(&status::statement("SESSION", &names))?;
    let status = Status::of(&names, &rows);
    Ok(Own {
        statements: status.get(QUESTIONS).unwrap_or_default().saturating_sub(1),
        selects: status.get(SELECT).unwrap_or_default(),
    })
}
