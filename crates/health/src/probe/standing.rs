//! The plain checks of a server whose session stands: the loop itself asks them, without a thread, and hears when there
//! is an answer. A session that is lost is for a thread to open again.

use super::answers::{counters, role};
use super::asked::{Asked, STATUS, ServerKnown};
use super::failure::reason_at;
use super::step::{Step, Steps};
use super::{Checks, Observed};
use crate::ears::Ears;
use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::connect::Row;
use evenkeel_wire::{Heard, StandingSession};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A session that the loop asks.
#[derive(Debug)]
pub(crate) struct Standing {
    session: StandingSession,
    known: ServerKnown,
    checks: Arc<Checks>,
    steps: Steps,
    ears: Arc<Ears>,
    /// The question that is not answered yet; `None` while nothing is asked.
    asked: Option<Question>,
}

/// What is asked.
#[derive(Debug)]
struct Question {
    step: Step,
    seen: Observed,
    began: Instant,
}

/// What came of what was heard.
pub(crate) enum Outcome {
    /// The answer is on its way.
    NotYet,
    /// All that was asked is known.
    Known(Observed),
    /// The session is lost.
    Lost,
}

impl Standing {
    /// Has the loop ask in this session, if plain checks are all there is.
    pub(super) fn of(
        asked: Asked,
        checks: &Arc<Checks>,
        steps: &Steps,
        ears: &Arc<Ears>,
    ) -> io::Result<Self> {
        let (session, known) = asked.apart();
        Ok(Self {
            session: StandingSession::of(session)?,
            known,
            checks: checks.clone(),
            steps: steps.clone(),
            ears: ears.clone(),
            asked: None,
        })
    }

    /// Has it be heard under a number. Errors: those of the operating system.
    pub(crate) fn listen(&self, number: u64) -> io::Result<()> {
        self.ears.add(&self.session, number)
    }

    /// Begins to ask. Errors: the connection is lost.
    pub(crate) fn ask(&mut self, now: Instant) -> io::Result<()> {
        self.question(Step::Simple, Observed::default(), now)
    }

    fn question(&mut self, step: Step, seen: Observed, began: Instant) -> io::Result<()> {
        let sql = match step {
            Step::Counters => STATUS,
            _ => &self.known.simple,
        };
        self.session.ask(sql)?;
        self.asked = Some(Question {
            step: self.steps.now(step),
            seen,
            began,
        });
        Ok(())
    }

    /// Reads what came.
    pub(crate) fn hear(&mut self) -> Outcome {
        loop {
            let heard = self.session.hear();
            if matches!(heard, Ok(Heard::NotYet)) {
                return Outcome::NotYet;
            }
            let Some(mut question) = self.asked.take() else {
                return Outcome::Lost;
            };
            let read = match heard {
                Ok(Heard::Rows(rows)) => self.read(&mut question, &rows),
                Ok(Heard::Refused(error)) => Err(error),
                Ok(Heard::NotYet) | Err(_) => return Outcome::Lost,
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Unreachable => return Outcome::Lost,
                Err(error) => {
                    let reason = reason_at(&question.step, &error);
                    question.seen.fails(reason, &error);
                }
                Ok(()) => {}
            }
            if question.step == Step::Counters {
                self.steps.now(Step::None);
                question.seen.took = question.began.elapsed();
                return Outcome::Known(question.seen);
            }
            let next = self.question(Step::Counters, question.seen, question.began);
            if next.is_err() {
                return Outcome::Lost;
            }
        }
    }

    fn read(&self, question: &mut Question, rows: &[Row]) -> Result<()> {
        let (first, seen) = (rows.first(), &mut question.seen);
        match question.step {
            Step::Counters => counters(rows, &self.checks, seen),
            _ => role(first, &self.known.on(first), &self.checks, seen),
        }
    }
}
