//! A server that is asked from a thread of its own: one that stops answering holds nobody up.

use evenkeel_op::{Cancel, Error, ErrorKind, Result, units};
use evenkeel_server::connect::{Ask, Row, RowLimit};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::BoundedSession;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// No server remembers as much.
const MOST: RowLimit = RowLimit {
    rows: 2_000_000,
    bytes: 1 << 30,
};
/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// After so long it is said that a server does not answer. So long its answer is waited for where an end is wanted.
const SILENT: Duration = Duration::from_secs(3);
/// After so long it is given up. An attempt to connect ends by itself.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// What is called where the server has not answered for so long.
type IsSilent<'a> = dyn FnMut(Duration) -> Result<()> + 'a;

/// A session with a server.
#[derive(Debug)]
pub(super) struct Asked {
    place: String,
    questions: Sender<String>,
    answers: Receiver<Result<Vec<Row>>>,
}

impl Asked {
    /// Connects.
    ///
    /// Errors: those of the connection; of `cancel` where an end is wanted meanwhile.
    pub(super) fn open(
        options: &ConnectOptions,
        is_silent: &mut IsSilent<'_>,
        cancel: &Cancel,
    ) -> Result<Self> {
        let (connecting, connected) = channel();
        let (questions, asked) = channel::<String>();
        let (answering, answers) = channel();
        let options = options.clone();
        // The thread of a server that never answers ends with the process.
        std::thread::Builder::new()
            .name("ask".to_owned())
            .spawn(move || {
                let mut session = match BoundedSession::open(&options, MOST) {
                    Ok(session) => session,
                    Err(error) => return drop(connecting.send(Err(error))),
                };
                if connecting.send(Ok(session.place().to_owned())).is_err() {
                    return;
                }
                for sql in asked {
                    if answering.send(session.rows(&sql)).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| Error::failed("failed to start a thread").because(error))?;
        let place = awaited(&connected, None, is_silent, cancel)??;
        Ok(Self {
            place,
            questions,
            answers,
        })
    }

    /// Returns where the server is.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Asks a question.
    ///
    /// Errors: those of the server; `Unreachable` where it does not answer; those of `is_silent`; of `cancel` where an
    /// end is wanted before it answers.
    pub(super) fn rows(
        &mut self,
        sql: &str,
        is_silent: &mut IsSilent<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<Row>> {
        // Where the thread is gone, there is no answer either.
        let _ = self.questions.send(sql.to_owned());
        awaited(&self.answers, Some(&self.place), is_silent, cancel)?
    }
}

/// Waits for what a thread sends: of a server in this place, not for ever.
fn awaited<T>(
    from: &Receiver<T>,
    place: Option<&str>,
    is_silent: &mut IsSilent<'_>,
    cancel: &Cancel,
) -> Result<T> {
    let begun = Instant::now();
    let mut is_said = false;
    loop {
        match from.recv_timeout(LOOK) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::failed("the thread that asks the server has ended"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let waited = begun.elapsed();
        if place.is_none() || waited >= SILENT {
            cancel.check()?;
        }
        if let Some(place) = place.filter(|_| waited >= GIVEN_UP) {
            let waited = units::span(GIVEN_UP);
            return Err(Error::new(
                ErrorKind::Unreachable,
                format!("no answer from {place} within {waited}"),
            )
            .hint("check that the server is running and not frozen, and the network to it"));
        }
        if waited >= SILENT && !std::mem::replace(&mut is_said, true) {
            is_silent(SILENT)?;
        }
    }
}
