//! What a side of a link knows.

use super::{LinkTimeouts, Traffic, WINDOW, lost};
use crate::frame::PAYLOAD_MAX;
use evenkeel_op::Error;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// How a link ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The other side had nothing more to say.
    Bye,
    /// Too long without a connection, or ended by this side.
    Lost(String),
}

impl End {
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Bye => lost("the other host ended it"),
            Self::Lost(why) => lost(why),
        }
    }
}

/// What a message takes beside its bytes: else, empty ones would be without end.
const MESSAGE: usize = 64;
/// What an honest sender may have under way: it waits once it is above the window.
const UNDER_WAY_MOST: usize = WINDOW + PAYLOAD_MAX + MESSAGE;

fn cost(message: &[u8]) -> usize {
    message.len() + MESSAGE
}

/// The connection there is.
pub(super) struct Attached {
    pub(super) epoch: u64,
    pub(super) cut: Box<dyn Fn() + Send + Sync>,
    /// When something arrived last.
    pub(super) heard: Instant,
    /// The other side said what it has; before that nothing is sent.
    pub(super) greeted: bool,
}

pub(super) struct LinkState {
    pub(super) timeouts: LinkTimeouts,
    /// Sent and not taken by the other side yet, oldest first.
    unacked: VecDeque<(u64, Arc<[u8]>)>,
    /// What these take.
    pub(super) unacked_bytes: usize,
    /// Number of the last message that was given to be sent.
    last: u64,
    /// Number of the last message that was written to the present connection.
    written: u64,
    /// The highest number that was written to any connection.
    written_ever: u64,
    /// Number of the last message that arrived.
    pub(super) arrived: u64,
    /// Number of the last message that was taken off the inbox.
    pub(super) taken: u64,
    /// What `taken` the other side was sent last.
    pub(super) taken_reported: u64,
    /// Bytes that were taken since, and when the first of them.
    pub(super) untold_bytes: usize,
    pub(super) untold_since: Option<Instant>,
    inbox: VecDeque<Vec<u8>>,
    inbox_bytes: usize,
    pub(super) carrier: Option<Attached>,
    pub(super) epochs: u64,
    pub(super) alone_since: Option<Instant>,
    pub(super) end: Option<End>,
    /// Bye must be said when everything else was taken.
    pub(super) bye: bool,
    pub(super) bye_said: bool,
    pub(super) traffic: Traffic,
}

impl LinkState {
    pub(super) fn new(timeouts: LinkTimeouts) -> Self {
        Self {
            timeouts,
            unacked: VecDeque::new(),
            unacked_bytes: 0,
            last: 0,
            written: 0,
            written_ever: 0,
            arrived: 0,
            taken: 0,
            taken_reported: 0,
            untold_bytes: 0,
            untold_since: None,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            carrier: None,
            epochs: 0,
            alone_since: Some(Instant::now()),
            end: None,
            bye: false,
            bye_said: false,
            traffic: Traffic::default(),
        }
    }

    /// Puts a message in line.
    pub(super) fn push(&mut self, message: Vec<u8>) {
        self.last += 1;
        self.unacked_bytes += cost(&message);
        self.unacked.push_back((self.last, message.into()));
    }

    /// Takes a message off.
    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        let message = self.inbox.pop_front()?;
        self.taken += 1;
        self.inbox_bytes -= cost(&message);
        self.untold_bytes += cost(&message);
        self.untold_since.get_or_insert_with(Instant::now);
        Some(message)
    }

    #[cfg(test)]
    pub(super) fn inbox_len(&self) -> usize {
        self.inbox.len()
    }

    /// The other side is being sent what was taken.
    pub(super) fn reported(&mut self, taken: u64) {
        self.taken_reported = taken;
        self.untold_bytes = 0;
        self.untold_since = None;
    }

    /// Returns the next message to write to the present connection.
    pub(super) fn next(&mut self) -> Option<(u64, Arc<[u8]>)> {
        let first = self.unacked.front()?.0;
        let at = usize::try_from((self.written + 1).checked_sub(first)?).ok()?;
        let (number, message) = self.unacked.get(at)?.clone();
        self.written = number;
        if number <= self.written_ever {
            self.traffic.resent += message.len() as u64;
        }
        self.written_ever = self.written_ever.max(number);
        Some((number, message))
    }

    /// Whether everything was taken by the other side.
    pub(super) fn is_drained(&self) -> bool {
        self.unacked.is_empty()
    }

    /// The other side has taken messages up to this one.
    pub(super) fn acknowledge(&mut self, taken: u64) {
        while let Some((_, message)) = self.unacked.front().filter(|(number, _)| *number <= taken) {
            self.unacked_bytes -= cost(message);
            self.unacked.pop_front();
        }
    }

    /// The other side says what arrived there: continue after that. Returns whether that can be.
    pub(super) fn resume_after(&mut self, arrived: u64) -> bool {
        let oldest = self
            .unacked
            .front()
            .map_or(self.last, |(number, _)| number - 1);
        self.written = arrived;
        (oldest..=self.last).contains(&arrived)
    }

    /// Takes a message that arrived; one that came before is dropped. Returns whether it can be: another host
    /// may be none of ours any more, and send without waiting.
    pub(super) fn deliver(&mut self, number: u64, message: Vec<u8>) -> bool {
        if number == self.arrived + 1 {
            self.inbox_bytes += cost(&message);
            if self.inbox_bytes > UNDER_WAY_MOST {
                let why = "the other host sends without waiting for this one".to_owned();
                self.end.get_or_insert(End::Lost(why));
                return false;
            }
            self.arrived = number;
            self.inbox.push_back(message);
        }
        number <= self.arrived
    }

    /// Cuts the connection, if there is one.
    pub(super) fn detach(&mut self) {
        if let Some(carrier) = self.carrier.take() {
            (carrier.cut)();
            // One that was never greeted does not restart the wait.
            self.alone_since.get_or_insert_with(Instant::now);
        }
    }

    /// Cuts this very connection, if it is still the one.
    pub(super) fn detach_epoch(&mut self, epoch: u64) {
        if self.carrier.as_ref().is_some_and(|one| one.epoch == epoch) {
            self.detach();
        }
    }
}
