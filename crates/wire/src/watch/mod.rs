//! A connection as it is seen from outside: bytes of both directions in, commands with their answers out.
//!
//! Nothing is sent, nothing is read from anywhere, and no clock is asked: whoever has the bytes says when they
//! came. Memory is bounded whatever comes: of long statements the beginning and the length are kept.
//!
//! | file | what |
//! |---|---|
//! | `framing` | bytes → packets, of which the beginning is kept |
//! | `inflate` | packets out of compressed ones |
//! | `login` | greeting and answer: who, and what both sides agree on |
//! | `session` | the commands of a client, in order |
//! | `reply` | the server's answers to them |
//! | `results` | checksums of their rows |
//! | `statements`, `values`, `sent` | prepared statements, and what their values are as SQL and in binary |
//! | `inside` | what a session prepared, where only the server's side of it is seen |
//! | `redact` | passwords that do not leave |

pub mod command;
mod framing;
mod inflate;
mod inside;
mod login;
mod pending;
mod redact;
mod reply;
mod results;
mod sent;
mod session;
mod statements;
mod values;

use crate::sums::Checksum;
use framing::Framer;
use inflate::Inflate;
pub use inside::{Execution, Inside};
pub use redact::redacted;
use session::{Phase, Session};

/// Of a server's packets as much is kept: all but rows and definitions, which are only counted, fit.
const SERVER_KEEPS: usize = 4 << 10;

/// Who sent bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// A command and its answer.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// Its number in the protocol, see [`command`].
    pub command: u8,
    /// When it was complete.
    pub at_ns: i64,
    /// A statement's text, a schema's name. Passwords are replaced.
    pub sql: &'a [u8],
    /// How long the text is; more than there is where it was cut.
    pub sql_bytes: u64,
    /// Something of the text or its values was not seen.
    pub is_unseen: bool,
    /// The account's name, where the login was seen.
    pub user: Option<&'a str>,
    /// The default schema, as far as it is known.
    pub schema: Option<&'a str>,
    /// The server's number of the session.
    pub session: Option<u32>,
    /// When the answer's first byte came; `None` where there was no answer.
    pub first_ns: Option<i64>,
    /// When the answer's last byte came.
    pub last_ns: Option<i64>,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
    /// Warnings.
    pub warnings: u64,
    /// The server's error number.
    pub error: Option<u16>,
    /// Bytes of the command, before compression.
    pub bytes_in: u64,
    /// Bytes of the answer, before compression.
    pub bytes_out: u64,
    /// Of the rows returned, if that was asked for and all of them were seen.
    pub checksum: Option<Checksum>,
    /// The number of the prepared statement that it is about.
    pub statement: Option<u32>,
    /// What a prepared statement ran with: what [`crate::Connection::play_execute`] takes. Only if that was asked for, all
    /// of it was seen, and there is no password in it.
    pub values: Option<&'a [u8]>,
}

/// What was not, or not completely, understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands handed out.
    pub commands: u64,
    /// Of these: the text or a value was not seen.
    pub unseen: u64,
    /// Packets that no command or answer explains.
    pub undecodable: u64,
}

/// Decodes one connection.
#[derive(Debug)]
pub struct Watch {
    client: Framer,
    server: Framer,
    /// The direction lost its place: bytes are dropped until a packet seems to begin.
    client_is_lost: bool,
    session: Session,
    /// Once both sides compress.
    inflate: Option<Box<[Inflate; 2]>>,
}

impl Watch {
    /// Starts at a connection's beginning. Of each statement at most `keep` bytes are kept.
    #[must_use]
    pub fn new(keep: usize) -> Self {
        let keep = keep.max(64);
        Self {
            // The command's number comes before the text.
            client: Framer::new(keep + 1),
            server: Framer::new(SERVER_KEEPS),
            client_is_lost: false,
            session: Session::new(keep),
            inflate: None,
        }
    }

    /// Starts somewhere in a connection, when nothing is known of it.
    #[must_use]
    pub fn joined(keep: usize) -> Self {
        let mut watch = Self::new(keep);
        watch.session.join();
        watch.client_is_lost = true;
        watch
    }

    /// Has checksums of results computed.
    #[must_use]
    pub fn with_checksums(mut self) -> Self {
        self.session.sums = Some(Box::default());
        self
    }

    /// Hands out values of prepared statements in binary.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.session.keeps_values = true;
        self
    }

    /// Takes bytes that follow those before them in this direction. What they complete goes to `each`.
    pub fn bytes(&mut self, from: Side, at_ns: i64, bytes: &[u8], each: &mut dyn FnMut(&Seen<'_>)) {
        if bytes.is_empty() || self.session.is_opaque() || self.is_elsewhere(from, bytes) {
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() && self.inflate.is_none() {
            if !self.packet(from, at_ns, &mut rest, each) {
                return;
            }
        }
        if rest.is_empty() || self.session.is_opaque() {
            return;
        }
        let Some(mut inflate) = self.inflate.take() else {
            return;
        };
        let is_sound = inflate[from as usize].take(rest, &mut |mut plain| {
            while !plain.is_empty() && self.packet(from, at_ns, &mut plain, each) {}
        });
        self.inflate = Some(inflate);
        if !is_sound {
            self.lose(from, each);
        }
    }

    /// Takes one packet off `rest`; returns whether more may be there.
    fn packet(
        &mut self,
        from: Side,
        at_ns: i64,
        rest: &mut &[u8],
        each: &mut dyn FnMut(&Seen<'_>),
    ) -> bool {
        let session = &mut self.session;
        match from {
            Side::Client => {
                let Some(packet) = self.client.next(rest, at_ns, &mut |_| {}) else {
                    return false;
                };
                session.client_says(packet, at_ns, each);
            }
            Side::Server => {
                if self.server.is_between() {
                    session.whole_rows(rest, at_ns);
                }
                let mut passes = |bytes: &[u8]| session.passes(bytes);
                let Some(packet) = self.server.next(rest, at_ns, &mut passes) else {
                    return false;
                };
                session.server_says(packet, at_ns, each);
            }
        }
        if let Some(method) = self.session.begins_compression() {
            self.inflate = Some(Box::new([Inflate::new(method), Inflate::new(method)]));
        }
        if self.session.is_opaque() {
            *rest = &[];
        }
        true
    }

    /// Returns whether these bytes should be dropped: before the beginning, or because the place is lost.
    fn is_elsewhere(&mut self, from: Side, bytes: &[u8]) -> bool {
        match from {
            // The server speaks first; what comes before it is a proxy's line about the client.
            Side::Client if self.session.phase == Phase::Greeting => true,
            Side::Client if self.client_is_lost => !self.finds_client(bytes),
            Side::Server if self.session.server_is_lost => {
                let is_plausible = match &self.inflate {
                    Some(_) => bytes.len() >= inflate::HEADER && bytes[3] <= 1,
                    None => self.session.looks_like_answer(bytes),
                };
                if is_plausible {
                    self.session.server_is_lost = false;
                    self.server.restart();
                    if let Some(inflate) = &mut self.inflate {
                        inflate[Side::Server as usize].restart();
                    }
                }
                !is_plausible
            }
            _ => false,
        }
    }

    /// Looks for a command's beginning where these bytes begin.
    fn finds_client(&mut self, bytes: &[u8]) -> bool {
        if self.session.may_be_encrypted() && login::looks_encrypted(bytes) {
            self.session.encrypt();
            return false;
        }
        if self.inflate.is_none() && inflate::looks_compressed(bytes) {
            self.inflate = Some(Box::new([Inflate::default(), Inflate::default()]));
        }
        let is_plausible = match &mut self.inflate {
            Some(inflate) => {
                inflate[Side::Client as usize].restart();
                inflate[Side::Server as usize].restart();
                bytes.len() >= inflate::HEADER && bytes[3] == 0
            }
            None => command::looks_like_one(bytes),
        };
        if is_plausible {
            self.client_is_lost = false;
            self.client.restart();
            self.session.rejoin();
        }
        is_plausible
    }

    /// Takes note that bytes of a direction never came: what they were part of is handed out as far as it is
    /// known, and decoding resumes at the next command.
    pub fn gap(&mut self, from: Side, each: &mut dyn FnMut(&Seen<'_>)) {
        if !self.session.is_opaque() {
            self.lose(from, each);
        }
    }

    fn lose(&mut self, from: Side, each: &mut dyn FnMut(&Seen<'_>)) {
        match from {
            Side::Client => {
                self.client_is_lost = true;
                self.session.lose_client();
            }
            Side::Server => self.session.lose_server(each),
        }
    }

    /// Ends: commands without an answer are handed out.
    pub fn end(&mut self, each: &mut dyn FnMut(&Seen<'_>)) {
        self.session.flush(each);
    }

    /// Returns what was counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.session.counts
    }

    /// Returns whether TLS hides what is said.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.session.phase == Phase::Encrypted
    }
}
