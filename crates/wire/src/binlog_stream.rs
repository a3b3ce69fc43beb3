//! A server's binary log as a replica receives it: event by event, every byte as in the file.
//!
//! The driver's own stream leaves out what MariaDB sends only to those who ask for it, so commands
//! are written here.

use crate::connection::Connection;
use crate::decode::ServerError;
use crate::login::LoginTerms;
use crate::stream::Stream;
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_server::connect::{FIRST_STATEMENTS, quote};
use evenkeel_server::options::ConnectOptions;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// How often an idle server says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A server that sends nothing for so long, not even heartbeats, is gone.
const STREAM_SILENCE: Duration = Duration::from_secs(30);

const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
/// MariaDB: send the statements behind rows too. MySQL takes no notice of it.
const SEND_ANNOTATE_ROWS: u16 = 2;
/// Before each event, where a replica acknowledges: this, and whether it is asked to.
const SEMI_SYNC: u8 = 0xef;
const SEMI_SYNC_ASKS: u8 = 1;
/// A packet of this length continues in the next one.
const PACKET_MAX: usize = 0xff_ffff;
/// The stream is read in pieces of this size.
const READ: usize = 256 << 10;

/// What is to be streamed, and how.
#[derive(Debug, Clone, Copy)]
pub struct BinlogRequest<'a> {
    /// The log's file.
    pub file: &'a str,
    /// Where in it the first event begins.
    pub position: u64,
    /// The id of the replica that we are: one that no other replica of the server has.
    pub replica: u32,
    /// Acknowledge. The server has to be one that asks for it.
    pub semi_sync: bool,
    /// Have the server compress, if it can.
    pub compress: bool,
}

/// What came.
#[derive(Debug)]
pub enum Received {
    /// One event, all its bytes.
    Event(Vec<u8>),
    /// One event, behind which the server waits for [`BinlogStream::acknowledge`].
    Asking(Vec<u8>),
    /// Nothing within a fraction of a second.
    Nothing,
    /// The server ended the stream.
    End,
}

/// A stream of events. Dropping it ends the connection.
#[derive(Debug)]
pub struct BinlogStream {
    stream: Stream,
    place: String,
    /// Bytes received and not yet taken, from `taken` on.
    buffer: Vec<u8>,
    taken: usize,
    heard: Instant,
    semi_sync: bool,
}

impl BinlogStream {
    /// Connects, logs in and asks for events.
    ///
    /// Errors: `Refused` for a position beyond 4 GiB, and when the account lacks REPLICATION SLAVE; else as
    /// [`Connection::open`] and [`Connection::run`].
    pub fn open(options: &ConnectOptions, wanted: BinlogRequest<'_>) -> Result<Self> {
        let BinlogRequest { file, replica, .. } = wanted;
        let Ok(position) = u32::try_from(wanted.position) else {
            return Err(Error::refused(format!(
                "a stream cannot start at {file}:{}: the protocol has only 32 bits for positions",
                wanted.position
            )));
        };
        let terms = LoginTerms {
            compress: wanted.compress,
            ..LoginTerms::default()
        };
        // Whoever receives looks whether to stop each time that nothing came.
        let mut connection = Connection::on_terms(options, terms, &Cancel::new())?;
        prepare(&mut connection, replica, wanted.semi_sync)?;
        let place = connection.place().to_owned();
        let mut stream = Self {
            stream: connection.into_stream()?,
            place,
            buffer: Vec::new(),
            taken: 0,
            heard: Instant::now(),
            semi_sync: wanted.semi_sync,
        };
        stream.register(replica)?;
        let mut dump = vec![COM_BINLOG_DUMP];
        dump.extend(position.to_le_bytes());
        dump.extend(SEND_ANNOTATE_ROWS.to_le_bytes());
        dump.extend(replica.to_le_bytes());
        dump.extend(file.as_bytes());
        stream.command(&dump)?;
        Ok(stream)
    }

    /// Waits a fraction of a second for the next event.
    ///
    /// Errors: `Unreachable` when the connection is lost or silent, `Failed` with the server's own
    /// words when it cannot continue, `Refused` when a privilege is missing.
    pub fn receive(&mut self) -> Result<Received> {
        let Some(packet) = self.packet()? else {
            if self.heard.elapsed() > STREAM_SILENCE {
                return Err(self.lost(io::ErrorKind::TimedOut.into()));
            }
            return Ok(Received::Nothing);
        };
        self.heard = Instant::now();
        match packet.first() {
            Some(0) if self.semi_sync => match packet.get(1..3) {
                Some([SEMI_SYNC, SEMI_SYNC_ASKS]) => Ok(Received::Asking(packet[3..].to_vec())),
                Some([SEMI_SYNC, _]) => Ok(Received::Event(packet[3..].to_vec())),
                _ => Err(Error::failed(
                    "the server does not report whether it waits for an acknowledgement",
                )),
            },
            Some(0) => Ok(Received::Event(packet[1..].to_vec())),
            Some(0xfe) if packet.len() < 9 => Ok(Received::End),
            Some(0xff) => Err(self.reported(&packet)),
            _ => Err(Error::failed("the server sent an unexpected packet")),
        }
    }

    /// Returns when the server last said anything: also that it has nothing to say.
    #[must_use]
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// Returns whether everything that came was received.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.taken == self.buffer.len()
    }

    /// Says that everything before `position` of `file` is safe here: the server waits no longer for
    /// that.
    pub fn acknowledge(&mut self, file: &str, position: u64) -> Result<()> {
        let mut reply = vec![SEMI_SYNC];
        reply.extend(position.to_le_bytes());
        reply.extend(file.as_bytes());
        self.command(&reply)
    }

    /// Says who we are, as a replica does, so that the server's list of replicas shows us.
    fn register(&mut self, replica: u32) -> Result<()> {
        let mut register = vec![COM_REGISTER_SLAVE];
        register.extend(replica.to_le_bytes());
        // No host name, user or password of ours, no port, no rank, no source.
        register.extend([0; 3]);
        register.extend(0u16.to_le_bytes());
        register.extend([0; 8]);
        self.command(&register)?;
        let until = Instant::now() + STREAM_SILENCE;
        loop {
            match self.packet()? {
                Some(packet) if packet.first() == Some(&0) => return Ok(()),
                Some(packet) => return Err(self.reported(&packet)),
                None if Instant::now() < until => {}
                None => return Err(self.lost(io::ErrorKind::TimedOut.into())),
            }
        }
    }

    fn command(&mut self, bytes: &[u8]) -> Result<()> {
        let length = (bytes.len() as u32).to_le_bytes();
        let packet = [&length[..3], &[0], bytes].concat();
        self.stream.restart();
        self.stream.set_silence(STREAM_SILENCE);
        let sent = self.stream.write_all(&packet);
        sent.and_then(|()| self.stream.flush())
            .map_err(|error| self.lost(error))?;
        // Reads end with the first look around.
        self.stream.set_silence(Duration::ZERO);
        Ok(())
    }

    /// Returns the next packet when it is there whole, joined where it came in parts. Their numbers say nothing: a
    /// server that was acknowledged to counts on or begins again.
    fn packet(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(packet) = self.take_packet() {
                return Ok(Some(packet));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn take_packet(&mut self) -> Option<Vec<u8>> {
        let mut packet = Vec::new();
        let mut at = self.taken;
        loop {
            let head = self.buffer.get(at..at + 4)?;
            let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            let body = self.buffer.get(at + 4..at + 4 + length)?;
            packet.extend_from_slice(body);
            at += 4 + length;
            if length < PACKET_MAX {
                self.taken = at;
                return Some(packet);
            }
        }
    }

    /// Reads what there is; returns whether there was anything.
    fn fill(&mut self) -> Result<bool> {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        let had = self.buffer.len();
        self.buffer.resize(had + READ, 0);
        let got = self.stream.read(&mut self.buffer[had..]);
        self.buffer.truncate(had + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) => Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(false),
                io::ErrorKind::Interrupted => Ok(true),
                _ => Err(self.lost(error)),
            },
        }
    }

    fn lost(&self, error: io::Error) -> Error {
        Error::new(
            ErrorKind::Unreachable,
            format!("the stream from {} was lost", self.place),
        )
        .because(error)
    }

    /// Returns the error that the server sent.
    fn reported(&self, packet: &[u8]) -> Error {
        let (code, text) = match ServerError::of(packet) {
            Ok(error) => (error.code, error.message),
            Err(_) => (0, String::new()),
        };
        let place = &self.place;
        let error = |kind| {
            Error::new(
                kind,
                format!("{place} does not send its binary log: {text} ({code})"),
            )
        };
        match code {
            1045 | 1142 | 1227 => error(ErrorKind::Refused)
                .hint("the account needs REPLICATION SLAVE and REPLICATION CLIENT"),
            _ => error(ErrorKind::Failed),
        }
    }
}

/// Asks for events as they are in the file, and for a sign of life while there are none. Each
/// family reads the variables that it knows.
fn prepare(connection: &mut Connection, replica: u32, semi_sync: bool) -> Result<()> {
    for statement in FIRST_STATEMENTS {
        connection.run(statement)?;
    }
    let beat = HEARTBEAT.as_nanos();
    // Where a replica has none, MySQL takes two for one and ends the older.
    let uuid = quote(&format!("00000000-0000-0000-0000-0000{replica:08x}"));
    connection.run(&format!(
        "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', \
         @mariadb_slave_capability = 4, @master_heartbeat_period = {beat}, \
         @source_heartbeat_period = {beat}, @slave_uuid = {uuid}, @replica_uuid = {uuid}"
    ))?;
    if semi_sync {
        connection.run("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")?;
    }
    Ok(())
}
