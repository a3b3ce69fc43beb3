//! A server's binary log as a replica receives it: event by event, every byte as in the file.
//!
//! The driver's own stream leaves out what MariaDB sends only to those who ask for it, so commands
//! are written here, on the connection that the driver opened and logged in on.
#![allow(unsafe_code)] // borrow_raw: the driver shows its descriptor as a number only

use crate::abilities::Flavour;
use crate::connect::{Session, quote};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often an idle server says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a read waits before the caller is asked whether to continue.
const TICK: Duration = Duration::from_millis(200);
/// A server that sends nothing for so long, not even heartbeats, is gone.
const SILENCE: Duration = Duration::from_secs(30);

const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER_SLAVE: u8 = 0x15;
/// MariaDB: send the statements behind rows too. MySQL takes no notice of it.
const SEND_ANNOTATE_ROWS: u16 = 2;
/// Before each event, where a replica acknowledges: this, and whether it is asked to.
const SEMI_SYNC: u8 = 0xef;
const SEMI_SYNC_ASKS: u8 = 1;
/// A packet of this length continues in the next one.
const PACKET_MAX: usize = 0xff_ffff;
/// The driver's connection is read in pieces of this size.
const READ: usize = 256 << 10;

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
    session: Session,
    socket: UnixStream,
    /// Bytes received and not yet taken, from `taken` on.
    buffer: Vec<u8>,
    taken: usize,
    heard: Instant,
    semi_sync: bool,
}

impl BinlogStream {
    /// Asks for the events of `file` from `position` on, as the replica `replica` (an id that no
    /// other replica of the server has). With `semi_sync`, as one that acknowledges; the server has
    /// to be one that asks, see [`semi_sync_is_on`].
    ///
    /// Errors: `Refused` over TLS, for a position beyond 4 GiB, and when the account lacks
    /// REPLICATION SLAVE; else as [`Session::run`].
    pub fn open(
        mut session: Session,
        file: &str,
        position: u64,
        replica: u32,
        semi_sync: bool,
    ) -> Result<Self> {
        if session.is_encrypted() {
            return Err(
                Error::refused("binary logs cannot be received over TLS yet")
                    .hint("run evenkeel on the server's host and connect by its socket")
                    .hint("or, in a trusted network, use --ssl-mode=DISABLED"),
            );
        }
        let Ok(position) = u32::try_from(position) else {
            return Err(Error::refused(format!(
                "a stream cannot start at {file}:{position}: the protocol has only 32 bits for \
                 positions"
            )));
        };
        prepare(&mut session, replica, semi_sync)?;
        // SAFETY: the connection lives in `session`, which outlives this borrow; the copy has a
        // life of its own.
        let borrowed = unsafe { BorrowedFd::borrow_raw(session.raw().as_raw_fd()) };
        let socket = borrowed
            .try_clone_to_owned()
            .context(|| "failed to copy a connection's descriptor")?;
        // Whatever kind of socket it is, reading and writing are the same calls.
        let socket = UnixStream::from(socket);
        socket
            .set_read_timeout(Some(TICK))
            .context(|| "failed to set a connection's timeout")?;
        let mut stream = Self {
            session,
            socket,
            buffer: Vec::new(),
            taken: 0,
            heard: Instant::now(),
            semi_sync,
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
            if self.heard.elapsed() > SILENCE {
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
            Some(0xff) => Err(self.told(&packet)),
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
        let until = Instant::now() + SILENCE;
        loop {
            match self.packet()? {
                Some(packet) if packet.first() == Some(&0) => return Ok(()),
                Some(packet) => return Err(self.told(&packet)),
                None if Instant::now() < until => {}
                None => return Err(self.lost(io::ErrorKind::TimedOut.into())),
            }
        }
    }

    fn command(&mut self, bytes: &[u8]) -> Result<()> {
        let length = (bytes.len() as u32).to_le_bytes();
        let packet = [&length[..3], &[0], bytes].concat();
        self.socket
            .write_all(&packet)
            .map_err(|error| self.lost(error))
    }

    /// Returns the next packet when it is there whole, joined where it came in parts.
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
        let got = self.socket.read(&mut self.buffer[had..]);
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
        let place = self.session.place();
        Error::new(
            ErrorKind::Unreachable,
            format!("the stream from {place} was lost"),
        )
        .because(error)
    }

    /// Returns the error that the server sent: `ff, u16 code, '#', 5 bytes state, text`.
    fn told(&self, packet: &[u8]) -> Error {
        let code = packet
            .get(1..3)
            .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
        let text = String::from_utf8_lossy(packet.get(9..).unwrap_or_default()).into_owned();
        let place = self.session.place();
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
fn prepare(session: &mut Session, replica: u32, semi_sync: bool) -> Result<()> {
    let beat = HEARTBEAT.as_nanos();
    // Where a replica has none, MySQL takes two for one and ends the older.
    let uuid = quote(&format!("00000000-0000-0000-0000-0000{replica:08x}"));
    session.run(&format!(
        "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', \
         @mariadb_slave_capability = 4, @master_heartbeat_period = {beat}, \
         @source_heartbeat_period = {beat}, @slave_uuid = {uuid}, @replica_uuid = {uuid}"
    ))?;
    match semi_sync {
        true => session.run("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1"),
        false => Ok(()),
    }
}

/// Asks whether a server waits for replicas that acknowledge.
///
/// Errors: `Refused` where it does not, with the statements that make it.
pub fn semi_sync_is_on(session: &mut Session, flavour: Flavour) -> Result<()> {
    let names = [
        "rpl_semi_sync_source_enabled",
        "rpl_semi_sync_master_enabled",
    ];
    let mut known = None;
    for name in names {
        let value = session.variable(name)?;
        if value.as_deref() == Some("ON") {
            return Ok(());
        }
        known = known.or(value.map(|_| name));
    }
    let place = session.place();
    let error = Error::refused(format!("{place} does not wait for replicas to acknowledge"));
    Err(match (known, flavour) {
        (Some(name), _) => error.hint(format!("SET GLOBAL {name} = ON")),
        (None, Flavour::MariaDb) => error.hint("SET GLOBAL rpl_semi_sync_master_enabled = ON"),
        (None, Flavour::MySql) => error
            .hint("first, once: INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
            .hint("before MySQL 8.0.26: rpl_semi_sync_master and semisync_master.so")
            .hint("then: SET GLOBAL rpl_semi_sync_source_enabled = ON"),
    })
}
