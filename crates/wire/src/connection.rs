//! One session: statements go, results come. It never reconnects.

use crate::decode::{Ending, Malformed, ServerError, SessionState};
use crate::greeting::can;
use crate::login::{Failure, LoginTerms, login};
use crate::packet::{Packets, broken, is_too_long};
use crate::rows::{Part, Row, Rows, read_columns};
use crate::stream::{Stream, bare_host, place};
use evenkeel_op::{Cancel, Error, Result};
use evenkeel_server::connect::{
    broken_off, connect_error, lacks_account, mysql, query_error, timed_out, unknown_host,
};
use evenkeel_server::options::ConnectOptions;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long a server may be silent over a statement before the connection counts as lost.
pub const SILENCE: Duration = Duration::from_secs(3600);
/// The session ends. There is no answer.
const COM_QUIT: u8 = 1;
/// The statement follows.
pub(crate) const COM_QUERY: u8 = 3;
/// An option of the session follows; 0 has statements hold several.
const COM_SET_OPTION: u8 = 27;
/// How much of a local file goes into one packet.
const FILE_PIECE: usize = 1 << 20;

/// How a statement without rows ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows changed.
    pub affected: u64,
    /// How many warnings there are to SHOW.
    pub warnings: u16,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Connection {
    packets: Packets<Stream>,
    capabilities: u32,
    id: u32,
    version: String,
    place: String,
    cancel: Cancel,
    state: ExchangeState,
    /// Of the last result that ended.
    warnings: u16,
    session: SessionState,
    /// The number of the error that the last statement was refused with.
    refusal: Option<u16>,
    /// That a privilege is missing, and not which account misses it.
    lacking: Option<mysql::Error>,
    is_too_long: bool,
}

/// Where in an exchange the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeState {
    Idle,
    /// Rows are still to come.
    Rows,
    /// Another result follows.
    More,
    /// Nothing that comes can be made sense of.
    Lost,
}

/// What a statement is answered with.
pub(crate) enum Answer {
    Ended(Ending),
    Columns(u64),
    WantsFile,
}

impl Connection {
    /// Connects and logs in. A request to stop is seen within a moment, here and later.
    ///
    /// Errors: `Unreachable` when nobody answers there, `Refused` when the server does not let us
    /// in.
    pub fn open(options: &ConnectOptions, cancel: &Cancel) -> Result<Self> {
        Self::on_terms(options, LoginTerms::default(), cancel)
    }

    /// Does the same on other terms.
    pub(crate) fn on_terms(
        options: &ConnectOptions,
        terms: LoginTerms,
        cancel: &Cancel,
    ) -> Result<Self> {
        cancel.check()?;
        let place = place(options);
        let mut begun = login(options, terms, cancel).map_err(|failure| {
            cancel
                .check()
                .err()
                .unwrap_or_else(|| login_error(failure, options, &place, terms.distrust.is_some()))
        })?;
        begun.packets.stream().set_silence(SILENCE);
        begun.packets.stream().set_deadline(None);
        Ok(Self {
            packets: begun.packets,
            capabilities: begun.capabilities,
            id: begun.greeting.id,
            version: begun.greeting.version,
            place,
            cancel: cancel.clone(),
            state: ExchangeState::Idle,
            warnings: 0,
            session: SessionState::default(),
            refusal: None,
            lacking: None,
            is_too_long: false,
        })
    }

    /// Sets when an answer has to be over, however much the server says.
    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.packets.stream().set_deadline(Some(deadline));
    }

    /// Returns whether the server sent a packet that is longer than it may be.
    pub(crate) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// Takes what the server said when a global privilege was missing.
    pub(crate) fn take_lacking(&mut self) -> Option<mysql::Error> {
        self.lacking.take()
    }

    /// Returns the stream, for what is no statement. The last one's answer has to be read.
    pub(crate) fn into_stream(self) -> Result<Stream> {
        let place = self.place;
        let stream = self.packets.into_stream();
        stream.map_err(|error| broken_off(&error.to_string(), &place))
    }

    /// Has reads and writes fail with `WouldBlock` where they would wait.
    ///
    /// Errors: those of the operating system; `InvalidData` where something was left unread.
    pub(crate) fn stop_waiting(&mut self) -> io::Result<()> {
        if self.state != ExchangeState::Idle || !self.packets.is_drained() {
            return Err(broken("the server sent data out of turn"));
        }
        self.packets.stream().stop_waiting()
    }

    /// Returns the stream beneath, for who reads packets elsewhere.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        self.packets.stream()
    }

    /// Says goodbye where that can be heard: or else the server's log has a client that went without a word.
    pub(crate) fn quit(&mut self) {
        if self.state == ExchangeState::Idle {
            self.set_silence(Duration::ZERO);
            self.packets.restart();
            // Whoever is gone need not hear it.
            let _ = self.packets.send(&[COM_QUIT]);
        }
    }

    /// Sets how long the server may be silent; at first [`SILENCE`].
    pub fn set_silence(&mut self, silence: Duration) {
        self.packets.stream().set_silence(silence);
    }

    /// Returns the server's number of this connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the number of the error that the last statement was refused with; `None` when it was done,
    /// or the connection was lost over it.
    #[must_use]
    pub fn refusal(&self) -> Option<u16> {
        self.refusal
    }

    /// Returns how the session was when the last statement ended.
    #[must_use]
    pub fn session(&self) -> SessionState {
        self.session
    }

    /// Lets a statement be several, with semicolons between them, as the clients have it.
    ///
    /// Errors: as [`Connection::run`].
    pub fn allow_several(&mut self) -> Result<()> {
        let what = "COM_SET_OPTION";
        self.command(&[COM_SET_OPTION, 0, 0], &[], what)?;
        self.first_packet(what).map(|_| ())
    }

    /// Returns the server's version. MariaDB's greeting begins with 5.5.5, for replicas of MySQL; that is left out.
    #[must_use]
    pub fn version(&self) -> &str {
        let bare = self.version.strip_prefix("5.5.5-");
        bare.unwrap_or(&self.version)
    }

    /// Returns where this leads, for messages.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns whether TLS or a Unix socket keeps others from reading along.
    #[must_use]
    pub fn is_private(&mut self) -> bool {
        self.packets.stream().is_private()
    }

    /// Runs a statement and drops its rows, if any.
    ///
    /// Errors: as `evenkeel_server::connect::Session::run` has them.
    pub fn run(&mut self, sql: &str) -> Result<Done> {
        let answer = self.begin(sql.as_bytes(), sql)?;
        self.finish(answer, sql)
    }

    fn finish(&mut self, answer: Answer, sql: &str) -> Result<Done> {
        match answer {
            Answer::Ended(ending) => {
                self.ended(ending, sql)?;
                Ok(Done {
                    affected: ending.affected,
                    warnings: ending.warnings,
                })
            }
            Answer::Columns(count) => {
                let warnings = Rows::begin(self, count, sql)?.drop_all()?;
                // Of several statements, those behind the one with rows.
                self.settle(sql)?;
                Ok(Done {
                    affected: 0,
                    warnings,
                })
            }
            Answer::WantsFile => {
                self.send_file(&mut io::empty(), sql)?;
                Err(Error::failed(format!(
                    "the statement asks for a local file (LOAD DATA LOCAL), which is not \
                     allowed, in: {sql}"
                )))
            }
        }
    }

    /// Runs a statement that is not all UTF-8 and drops its rows, if any. Errors quote its beginning.
    pub fn run_bytes(&mut self, statement: &[u8]) -> Result<Done> {
        let shown = String::from_utf8_lossy(&statement[..statement.len().min(200)]).into_owned();
        let answer = self.begin(statement, &shown)?;
        self.finish(answer, &shown)
    }

    /// Runs a statement that has rows, which are then read one by one.
    ///
    /// Errors: as [`Connection::run`]; `Failed` when there are none.
    pub fn query<'c>(&'c mut self, sql: &'c str) -> Result<Rows<'c>> {
        match self.begin(sql.as_bytes(), sql)? {
            Answer::Columns(count) => Rows::begin(self, count, sql),
            Answer::Ended(ending) => {
                self.ended(ending, sql)?;
                Err(Error::failed("the statement has no rows"))
            }
            Answer::WantsFile => {
                self.send_file(&mut io::empty(), sql)?;
                Err(Error::failed("the statement has no rows"))
            }
        }
    }

    /// Runs LOAD DATA LOCAL INFILE; the server gets `from`, whatever file the statement names.
    ///
    /// Errors: as [`Connection::run`]; those of `from`, after which the server has refused the rest.
    pub fn load(&mut self, sql: &str, from: &mut dyn Read) -> Result<Done> {
        match self.begin(sql.as_bytes(), sql)? {
            Answer::WantsFile => self.send_file(from, sql),
            Answer::Columns(count) => {
                Rows::begin(self, count, sql)?.drop_all()?;
                Err(Error::failed("the statement loads nothing"))
            }
            Answer::Ended(ending) => {
                self.ended(ending, sql)?;
                Err(Error::failed("the statement loads nothing"))
            }
        }
    }

    /// Sends a file's contents, and an empty packet as its end.
    pub(crate) fn send_file(&mut self, from: &mut dyn Read, sql: &str) -> Result<Done> {
        let mut piece = vec![0; FILE_PIECE];
        let mut failure = None;
        loop {
            match from.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    if let Err(error) = self.packets.send(&piece[..read]) {
                        return Err(self.lost(error, sql));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = failure {
            // An end here would have the server commit half a file.
            self.state = ExchangeState::Lost;
            return Err(Error::failed("failed to read what was to be loaded").because(error));
        }
        if let Err(error) = self.packets.send(&[]) {
            return Err(self.lost(error, sql));
        }
        match self.answer(sql)? {
            Answer::Ended(ending) => {
                self.ended(ending, sql)?;
                Ok(Done {
                    affected: ending.affected,
                    warnings: ending.warnings,
                })
            }
            _ => Err(self.malformed(Malformed, sql)),
        }
    }

    /// Sends a statement and reads the first packet of its answer.
    pub(crate) fn begin(&mut self, statement: &[u8], sql: &str) -> Result<Answer> {
        self.command(&[COM_QUERY], statement, sql)?;
        self.answer(sql)
    }

    /// Sends a command of a few bytes and what belongs to it, which begins an exchange.
    pub(crate) fn command(&mut self, command: &[u8], with: &[u8], sql: &str) -> Result<()> {
        self.settle(sql)?;
        self.refusal = None;
        self.packets.restart();
        self.packets.stream().restart();
        match self.packets.send_both(command, with) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.lost(error, sql)),
        }
    }

    /// Reads the first packet of an answer that is none of a statement's own; the server's refusal is
    /// an error.
    pub(crate) fn first_packet(&mut self, sql: &str) -> Result<&[u8]> {
        if let Err(error) = self.packets.peek() {
            return Err(self.lost(error, sql));
        }
        let refused = match self.packets.peeked() {
            Some(packet) if packet.first() == Some(&0xFF) => Some(ServerError::of(packet)),
            _ => None,
        };
        match refused {
            None => self.packet(sql),
            Some(Ok(error)) => {
                self.packets.take_peeked();
                Err(self.refused(error, sql))
            }
            Some(Err(malformed)) => Err(self.malformed(malformed, sql)),
        }
    }

    pub(crate) fn answer(&mut self, sql: &str) -> Result<Answer> {
        let read = match self.packets.next() {
            Ok(packet) => match packet.first() {
                Some(0x00) => Ending::of_ok(packet).map(|ending| Ok(Answer::Ended(ending))),
                Some(0xFF) => ServerError::of(packet).map(Err),
                Some(0xFB) => Ok(Ok(Answer::WantsFile)),
                _ => crate::decode::Bytes(packet)
                    .length()
                    .and_then(|count| count.ok_or(Malformed))
                    .map(|count| Ok(Answer::Columns(count))),
            },
            Err(error) => return Err(self.lost(error, sql)),
        };
        match read {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.refused(error, sql)),
            Err(malformed) => Err(self.malformed(malformed, sql)),
        }
    }

    /// Reads what an earlier statement left unread.
    fn settle(&mut self, sql: &str) -> Result<()> {
        self.cancel.check()?;
        loop {
            match self.state {
                ExchangeState::Idle => return Ok(()),
                ExchangeState::Lost => {
                    return Err(self.lost(io::ErrorKind::NotConnected.into(), sql));
                }
                ExchangeState::Rows => while self.row(sql)?.is_some() {},
                ExchangeState::More => match self.answer(sql)? {
                    Answer::Ended(ending) => self.note(ending),
                    Answer::Columns(count) => {
                        read_columns(self, count, sql)?;
                        self.state = ExchangeState::Rows;
                    }
                    Answer::WantsFile => {
                        self.send_file(&mut io::empty(), sql)?;
                    }
                },
            }
        }
    }

    /// Takes note of a statement's end, and drops what further results it has.
    pub(crate) fn ended(&mut self, ending: Ending, sql: &str) -> Result<()> {
        self.note(ending);
        if ending.more {
            self.settle(sql)?;
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, ending: Ending) {
        self.warnings = ending.warnings;
        self.session = ending.session;
        self.state = if ending.more {
            ExchangeState::More
        } else {
            ExchangeState::Idle
        };
    }

    /// Reads a packet that has to be there. Its meaning is the caller's.
    pub(crate) fn packet(&mut self, sql: &str) -> Result<&[u8]> {
        if let Err(error) = self.packets.peek() {
            return Err(self.lost(error, sql));
        }
        Ok(self.packets.take_peeked().unwrap_or_default())
    }

    /// Returns whether the statement has another result, which is still to be read.
    pub(crate) fn has_more(&self) -> bool {
        self.state == ExchangeState::More
    }

    /// Returns how many warnings the last result has.
    pub(crate) fn warnings(&self) -> u16 {
        self.warnings
    }

    /// Returns whether servers end columns and rows with an EOF packet for us.
    pub(crate) fn has_eof(&self) -> bool {
        self.capabilities & can::DEPRECATE_EOF == 0
    }

    /// Says that rows follow now.
    pub(crate) fn rows_follow(&mut self) {
        self.state = ExchangeState::Rows;
    }

    /// Reads the next row's packet; `None` at the end.
    pub(crate) fn row(&mut self, sql: &str) -> Result<Option<&[u8]>> {
        if self.state != ExchangeState::Rows {
            return Ok(None);
        }
        if let Err(error) = self.packets.peek() {
            return Err(self.lost(error, sql));
        }
        let has_eof = self.has_eof();
        let packet = self
            .packets
            .peeked()
            .ok_or_else(|| Error::failed("no packet was read"))?;
        let ending = match packet.first() {
            // A row that begins so has a first cell of 16 MiB.
            Some(0xFE) if packet.len() < 0xFF_FFFF => Some(if has_eof {
                Ending::of_eof(packet).map(Ok)
            } else {
                Ending::of_ok(packet).map(Ok)
            }),
            Some(0xFF) => Some(ServerError::of(packet).map(Err)),
            _ => None,
        };
        match ending {
            None => Ok(self.packets.take_peeked()),
            Some(Ok(Ok(ending))) => {
                self.packets.take_peeked();
                self.note(ending);
                Ok(None)
            }
            Some(Ok(Err(error))) => {
                self.packets.take_peeked();
                Err(self.refused(error, sql))
            }
            Some(Err(malformed)) => Err(self.malformed(malformed, sql)),
        }
    }

    /// Reads the next row's packet, or the next piece of one that is longer than `whole` bytes.
    pub(crate) fn part(&mut self, sql: &str, whole: usize) -> Result<Option<Part<'_>>> {
        if self.state != ExchangeState::Rows {
            return Ok(None);
        }
        if self.packets.is_long() {
            return match self.packets.more() {
                Ok(Some(range)) => Ok(Some(Part::Piece(self.packets.piece(range)))),
                Ok(None) => Ok(Some(Part::End)),
                Err(error) => Err(self.lost(error, sql)),
            };
        }
        match self.packets.begin_long(whole) {
            // What ends the rows is short.
            Ok(true) => Ok(Some(Part::Begin)),
            Ok(false) => Ok(self.row(sql)?.map(|bytes| Part::Row(Row::of(bytes)))),
            Err(error) => Err(self.lost(error, sql)),
        }
    }

    fn refused(&mut self, error: ServerError, sql: &str) -> Error {
        self.refusal = Some(error.code);
        self.state = ExchangeState::Idle;
        let error = server_error(error);
        let said = query_error(&error, sql);
        self.lacking = Some(error).filter(lacks_account);
        said
    }

    pub(crate) fn malformed(&mut self, error: Malformed, sql: &str) -> Error {
        self.lost(io::Error::new(io::ErrorKind::InvalidData, error), sql)
    }

    pub(crate) fn lost(&mut self, error: io::Error, sql: &str) -> Error {
        self.state = ExchangeState::Lost;
        self.is_too_long = is_too_long(&error);
        if let Err(stopped) = self.cancel.check() {
            return stopped;
        }
        query_error(&mysql::Error::IoError(error), sql)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.stream_ref().as_fd()
    }
}

pub(crate) fn server_error(error: ServerError) -> mysql::Error {
    mysql::Error::MySqlError(mysql::MySqlError {
        state: error.state,
        message: error.message,
        code: error.code,
    })
}

fn login_error(failure: Failure, options: &ConnectOptions, place: &str, is_bounded: bool) -> Error {
    use mysql::DriverError;
    match failure {
        Failure::Options(error) => error,
        Failure::Io(error) | Failure::Tls(error)
            if is_bounded && error.kind() == io::ErrorKind::TimedOut =>
        {
            timed_out(options, place)
        }
        Failure::Name(error) => unknown_host(bare_host(options), place, error),
        Failure::NoKey => Error::refused(format!(
            "the server at {place} asks for the password itself, and nothing would encrypt it but a key of whoever listens there"
        ))
        .hint(
            "connect with --ssl-mode=REQUIRED or over the socket, or name a copy of the server's public_key.pem: server-public-key-path below [client] in an option file",
        ),
        Failure::KeyOfNoUse => Error::usage(format!(
            "the public key that server-public-key-path names cannot encrypt the password for {place}"
        ))
        .hint("it has to be a copy of the server's public_key.pem"),
        Failure::Server(error) => connect_error(&server_error(error), place),
        Failure::Stranger => {
            connect_error(&mysql::Error::DriverError(DriverError::UnexpectedPacket), place)
        }
        Failure::NoTls => {
            connect_error(&mysql::Error::DriverError(DriverError::TlsNotSupported), place)
        }
        Failure::Plugin(name) => connect_error(
            &mysql::Error::DriverError(DriverError::UnknownAuthPlugin(name)),
            place,
        ),
        Failure::Tls(error) => {
            Error::refused(format!("TLS with {place} failed: {error}")).hint(
                "check --ssl-ca, --ssl-cert and --ssl-key; --ssl-mode=REQUIRED encrypts without checking the certificate",
            )
        }
        Failure::Io(error) => match error.kind() {
            io::ErrorKind::Unsupported => Error::usage(format!("{place}: {error}"))
                .hint("connect over TCP (--host=127.0.0.1), or use ssl-mode PREFERRED"),
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied => {
                let (kind, text) = (error.kind(), error.to_string());
                let driver = DriverError::CouldNotConnect(Some((place.to_owned(), text, kind)));
                connect_error(&mysql::Error::DriverError(driver), place)
            }
            // Nothing that a server says in its turn: it had greeted.
            io::ErrorKind::InvalidData => broken_off(&error.to_string(), place),
            _ => connect_error(&mysql::Error::IoError(error), place),
        },
    }
}
