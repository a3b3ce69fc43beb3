//! A client's connection and the one to the server that belongs to it.

use super::control::Control;
use super::place::Address;
use super::queue::{Queue, Reported};
use evenkeel_wire::relay::{Endpoint, Opening, Step, Terms, refusal};
use evenkeel_wire::watch::Side;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a server may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long a client may take to log in: servers give up earlier.
const LOGIN_TIME: Duration = Duration::from_secs(60);
/// How long a client may take to notice that the server closed its connection.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// A connection that was answered is idle after this.
const IDLE_TIME: Duration = Duration::from_millis(200);
/// Reads of one side before it is the turn of others.
const ROUNDS: usize = 8;
/// The server's number for errors that have none: clients take no number of their own from a server.
const UNREACHABLE: u16 = 1105;

/// What all connections of a thread share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) control: &'a Control,
    pub(super) queue: &'a Queue,
    pub(super) server: &'a [Address],
    pub(super) scratch: &'a mut [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server has not accepted yet; which address was tried.
    Connecting(usize),
    Relaying,
    /// No more comes from the server: the client may hear the rest.
    Closing(Instant),
}

#[derive(Debug)]
pub(super) struct Pair {
    client: Endpoint,
    server: Option<Endpoint>,
    stage: Stage,
    opening: Opening,
    reported: Reported,
    since: Instant,
    /// Who spoke last, and when.
    last: (Side, Instant),
    /// The client has ended.
    client_is_done: bool,
    /// The server takes nothing any more; its last words are still read.
    server_is_deaf: bool,
    /// Bytes of the side wait until the other is ready.
    is_stalled: [bool; 2],
}

/// Whether a connection is still one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairState {
    Open,
    Over,
}

use PairState::{Open, Over};

impl Pair {
    pub(super) fn new(client: Endpoint, reported: Reported, terms: &Terms) -> Self {
        let now = Instant::now();
        Self {
            client,
            server: None,
            stage: Stage::Connecting(0),
            opening: Opening::new(terms),
            reported,
            since: now,
            last: (Side::Client, now),
            client_is_done: false,
            server_is_deaf: false,
            is_stalled: [false; 2],
        }
    }

    pub(super) fn client(&self) -> &Endpoint {
        &self.client
    }

    pub(super) fn server(&self) -> Option<&Endpoint> {
        self.server.as_ref()
    }

    /// Ends; the decoder is told.
    pub(super) fn end(self, shared: &Shared<'_>) {
        shared.control.end();
        shared.queue.end(self.reported, now_ns());
    }

    /// Begins to connect to the server, or tries again where its queue was full.
    pub(super) fn connect(&mut self, shared: &Shared<'_>) -> PairState {
        while let (Stage::Connecting(at), None) = (self.stage, &self.server) {
            let Some(address) = shared.server.get(at) else {
                return Over;
            };
            match address.connect() {
                Ok((socket, is_connected)) => {
                    self.server = Some(Endpoint::new(socket));
                    if is_connected {
                        self.stage = Stage::Relaying;
                    }
                }
                Err(Errno::AGAIN) if self.since.elapsed() < CONNECT_TIME => return Open,
                Err(error) => {
                    if self.try_next(&error.into(), shared) == Over {
                        return Over;
                    }
                }
            }
        }
        Open
    }

    /// Turns to the server's next address; without one, the client hears why.
    fn try_next(&mut self, error: &io::Error, shared: &Shared<'_>) -> PairState {
        let Stage::Connecting(at) = self.stage else {
            return Over;
        };
        self.server = None;
        self.stage = Stage::Connecting(at + 1);
        if at + 1 < shared.server.len() {
            return Open;
        }
        shared.control.is_unreachable(&error.to_string());
        let text = format!("evenkeel's tap cannot connect to the server: {error}");
        // A client that is gone need not hear it.
        let _ = self.client.send(&refusal(0, UNREACHABLE, &text));
        Over
    }

    /// Looks what became of a connection to the server.
    fn is_accepted(&mut self, shared: &Shared<'_>) -> PairState {
        let Some(server) = &self.server else {
            return Open;
        };
        let failed = match sockopt::socket_error(server) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(error),
        };
        match failed {
            None => {
                self.stage = Stage::Relaying;
                Open
            }
            Some(error) => match self.try_next(&error.into(), shared) {
                Over => Over,
                Open => self.connect(shared),
            },
        }
    }

    /// Returns what the kernel should say of a side.
    pub(super) fn interest(&self, side: Side) -> EventFlags {
        let Some(server) = &self.server else {
            return EventFlags::empty();
        };
        if let Stage::Connecting(_) = self.stage {
            return match side {
                Side::Client => EventFlags::empty(),
                Side::Server => EventFlags::OUT,
            };
        }
        let (own, other) = match side {
            Side::Client => (&self.client, server),
            Side::Server => (server, &self.client),
        };
        let is_closing = matches!(self.stage, Stage::Closing(_));
        let (reads, writes) = match side {
            Side::Client => {
                let is_heard = other.is_ready() || self.is_unheard();
                (!self.client_is_done && is_heard, own.wants_write())
            }
            Side::Server if is_closing => (false, false),
            Side::Server => (other.is_ready(), own.wants_write() && !self.server_is_deaf),
        };
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, reads);
        flags.set(EventFlags::OUT, writes);
        flags
    }

    /// Returns whether what the client says reaches nobody.
    fn is_unheard(&self) -> bool {
        self.server_is_deaf || matches!(self.stage, Stage::Closing(_))
    }

    /// Does what can be done now that the kernel says something of a side.
    pub(super) fn serve(
        &mut self,
        side: Side,
        flags: EventFlags,
        shared: &mut Shared<'_>,
    ) -> PairState {
        if let Stage::Connecting(_) = self.stage {
            return match side {
                // Broken, before the server accepted.
                Side::Client => Over,
                Side::Server => self.is_accepted(shared),
            };
        }
        if flags.contains(EventFlags::OUT) && self.flush(side).is_err() {
            match side {
                Side::Client => return self.is_broken(side),
                Side::Server => self.server_is_deaf = true,
            }
        }
        let says = EventFlags::IN | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(says) && self.pump(side, shared) == Over {
            return Over;
        }
        for side in [Side::Client, Side::Server] {
            if self.is_stalled[side as usize] && self.pump(side, shared) == Over {
                return Over;
            }
        }
        self.is_closed()
    }

    fn is_plain(&self, side: Side) -> bool {
        match (side, &self.server) {
            (Side::Server, Some(server)) => server.is_plain(),
            _ => self.client.is_plain(),
        }
    }

    fn flush(&mut self, side: Side) -> io::Result<()> {
        match (side, &mut self.server) {
            (Side::Client, _) => self.client.flush(),
            (Side::Server, Some(server)) => server.flush(),
            (Side::Server, None) => Ok(()),
        }
    }

    /// The server has ended, all that it said is sent, and the client has seen the end.
    fn is_closed(&self) -> PairState {
        let is_closing = matches!(self.stage, Stage::Closing(_));
        match is_closing && self.client_is_done && !self.client.wants_write() {
            true => Over,
            false => Open,
        }
    }

    /// Moves what a side has said.
    fn pump(&mut self, side: Side, shared: &mut Shared<'_>) -> PairState {
        for round in 0.. {
            let Some(server) = &mut self.server else {
                return Open;
            };
            let (from, to) = match side {
                Side::Client => (&mut self.client, server),
                Side::Server => (server, &mut self.client),
            };
            let is_unheard = side == Side::Client
                && (self.server_is_deaf || matches!(self.stage, Stage::Closing(_)));
            self.is_stalled[side as usize] = !to.is_ready() && !is_unheard;
            // A short read of TLS does not say that nothing is there: it is read to its end.
            if self.is_stalled[side as usize] || (from.is_plain() && round >= ROUNDS) {
                break;
            }
            match from.read(shared.scratch) {
                Ok(0) => return self.ends(side, shared),
                Ok(_) if is_unheard => {}
                Ok(count) => {
                    let is_short = count < shared.scratch.len();
                    let said = std::mem::take(&mut shared.scratch);
                    let state = self.says(side, &said[..count], shared);
                    shared.scratch = said;
                    // What was said may have begun TLS, with bytes that came already.
                    if state == Over || (is_short && self.is_plain(side)) {
                        return state;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.note_failed_tls(side, &error, shared);
                    return self.is_broken(side);
                }
            }
        }
        // Answers of TLS to what was read.
        match self.flush(side) {
            Ok(()) => Open,
            Err(_) => self.is_broken(side),
        }
    }

    /// A side has ended.
    fn ends(&mut self, side: Side, shared: &Shared<'_>) -> PairState {
        self.note_failed_tls(side, &ErrorKind::UnexpectedEof.into(), shared);
        match (side, &mut self.server) {
            (Side::Client, Some(server)) => {
                self.client_is_done = true;
                // What the server still has to say is read first.
                let _ = server.finish();
                self.is_closed()
            }
            // A server that ends a connection closes it: nothing of the client reaches it any more.
            _ => {
                self.stage = Stage::Closing(Instant::now());
                match self.client.finish() {
                    Ok(()) => self.is_closed(),
                    Err(_) => Over,
                }
            }
        }
    }

    fn note_failed_tls(&self, side: Side, error: &io::Error, shared: &Shared<'_>) {
        let is_agreeing = self.server.as_ref().is_some_and(Endpoint::is_agreeing);
        if side != Side::Server || !is_agreeing {
            return;
        }
        // A server that goes away says nothing about its TLS.
        let is_refused = error.kind() == ErrorKind::InvalidData;
        if is_refused {
            self.opening.server_tls_failed();
        }
        shared.control.is_unreachable(&match is_refused {
            true => format!(
                "TLS with it failed: {error}; if --ssl-mode only prefers TLS, it is not tried again"
            ),
            false => format!("it went away before TLS began: {error}"),
        });
    }

    /// A side is gone without an end: the other sees the same.
    fn is_broken(&mut self, side: Side) -> PairState {
        match (side, &self.server) {
            (Side::Client, Some(server)) => server.break_off(),
            (Side::Server, _) => self.client.break_off(),
            (Side::Client, None) => {}
        }
        Over
    }

    /// Passes on what a side said.
    fn says(&mut self, side: Side, bytes: &[u8], shared: &Shared<'_>) -> PairState {
        self.last = (side, Instant::now());
        if self.opening.is_done() {
            return self.passes(side, bytes, shared);
        }
        let steps = match side {
            Side::Client => self.opening.client_says(bytes),
            Side::Server => self.opening.server_says(bytes),
        };
        for step in steps {
            if self.take(step, shared) == Over {
                return Over;
            }
        }
        Open
    }

    fn take(&mut self, step: Step, shared: &Shared<'_>) -> PairState {
        let Some(server) = &mut self.server else {
            return Over;
        };
        let done = match step {
            Step::ToClient(bytes) => return self.passes(Side::Server, &bytes, shared),
            Step::ToServer(bytes) => return self.passes(Side::Client, &bytes, shared),
            Step::AskServer(bytes) => server.send(&bytes),
            Step::ClientTls(early) => self.opening.begin_client_tls(&mut self.client, early),
            Step::ServerTls => self.opening.begin_server_tls(server),
            Step::Refuse(packet) => {
                shared.control.is_unreachable("it has no TLS");
                self.client
                    .send(&packet)
                    .and(Err(ErrorKind::ConnectionAborted.into()))
            }
        };
        match done {
            Ok(()) => Open,
            Err(_) => Over,
        }
    }

    /// Sends a side's bytes to the other, and to the decoder.
    fn passes(&mut self, side: Side, bytes: &[u8], shared: &Shared<'_>) -> PairState {
        let at_ns = now_ns();
        let sent = match (side, &mut self.server) {
            (Side::Client, Some(server)) => server.send(bytes),
            (Side::Client, None) => Ok(()),
            (Side::Server, _) => self.client.send(bytes),
        };
        let hides_tls = self.opening.hides_tls();
        shared
            .queue
            .put(&mut self.reported, side, at_ns, hides_tls, bytes);
        match (sent, side) {
            (Ok(()), _) => Open,
            (Err(_), Side::Client) => {
                self.server_is_deaf = true;
                Open
            }
            (Err(_), Side::Server) => self.is_broken(Side::Client),
        }
    }

    /// Does what time brings; with `drains`, an idle connection ends.
    pub(super) fn tend(&mut self, drains: bool, shared: &Shared<'_>) -> PairState {
        match self.stage {
            Stage::Connecting(_) if self.server.is_none() => self.connect(shared),
            Stage::Connecting(_) if self.since.elapsed() >= CONNECT_TIME => {
                let error = ErrorKind::TimedOut.into();
                match self.try_next(&error, shared) {
                    Over => Over,
                    Open => self.connect(shared),
                }
            }
            Stage::Closing(since) if since.elapsed() >= CLOSE_TIME => Over,
            Stage::Relaying if drains && self.is_idle() => Over,
            Stage::Relaying if !self.opening.is_done() && self.since.elapsed() >= LOGIN_TIME => {
                Over
            }
            _ => Open,
        }
    }

    /// Returns whether the server has answered and nobody speaks.
    fn is_idle(&self) -> bool {
        let (side, at) = self.last;
        let is_sent =
            !self.client.wants_write() && self.server.as_ref().is_none_or(|it| !it.wants_write());
        side == Side::Server && at.elapsed() >= IDLE_TIME && is_sent
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
