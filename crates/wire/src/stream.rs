//! Streams to a server. None waits forever, and all see a request to stop.

use crate::compressed::Compressed;
use evenkeel_op::Cancel;
use evenkeel_server::connect::socket_path;
use evenkeel_server::options::{ConnectOptions, SslMode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often a silent stream looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);
/// A peer that vanished without a word is noticed in about a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;
/// The same for one that does not confirm what was sent, in milliseconds: it is not probed.
const UNCONFIRMED_MS: u32 = 60_000;

/// The operating system's stream.
#[derive(Debug)]
enum Raw {
    Socket(UnixStream),
    Tcp(TcpStream),
}

/// A stream that gives up when the peer is silent for too long, or on request.
#[derive(Debug)]
pub(crate) struct Patient {
    raw: Raw,
    silence: Duration,
    /// When it has to be over, however much the peer says.
    deadline: Option<Instant>,
    cancel: Cancel,
    /// Where nothing can be done at once, it is waited.
    waits: bool,
    /// Whether something was sent since the last read: no answer is there, then.
    asked: bool,
}

impl Patient {
    /// Connects over the Unix socket.
    pub(crate) fn over_socket(options: &ConnectOptions, cancel: &Cancel) -> io::Result<Self> {
        let address = SocketAddrUnix::new(socket_path(options))?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // Also how long connecting may wait for a place in the server's queue.
        sockopt::set_socket_timeout(
            &socket,
            sockopt::Timeout::Send,
            Some(options.connect_timeout),
        )?;
        rustix::net::connect(&socket, &address)?;
        Self::new(Raw::Socket(socket.into()), options, cancel)
    }

    /// Sets how long the peer may be silent, and when it has to be over.
    pub(crate) fn within(mut self, silence: Duration, deadline: Instant) -> Self {
        (self.silence, self.deadline) = (silence, Some(deadline));
        self
    }

    /// Connects over TCP to one address.
    pub(crate) fn over_tcp(
        address: &SocketAddr,
        options: &ConnectOptions,
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(address, options.connect_timeout)?;
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_EVERY)?;
        sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_TRIES)?;
        sockopt::set_tcp_user_timeout(&stream, UNCONFIRMED_MS)?;
        Self::new(Raw::Tcp(stream), options, cancel)
    }

    fn new(raw: Raw, options: &ConnectOptions, cancel: &Cancel) -> io::Result<Self> {
        match &raw {
            Raw::Socket(stream) => {
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
            }
            Raw::Tcp(stream) => {
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
            }
        }
        Ok(Self {
            raw,
            silence: options.connect_timeout,
            deadline: None,
            waits: true,
            cancel: cancel.clone(),
            asked: false,
        })
    }

    fn stop_waiting(&mut self) -> io::Result<()> {
        self.waits = false;
        match &self.raw {
            Raw::Socket(stream) => stream.set_nonblocking(true),
            Raw::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    /// Does what may have to be tried again, until the patience is at its end.
    fn patiently(
        &mut self,
        mut once: impl FnMut(&mut Raw) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if self.deadline.is_some_and(|at| Instant::now() >= at) {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the server has not answered in time",
            ));
        }
        let mut begun = None;
        loop {
            match once(&mut self.raw) {
                Err(error) if is_tick(&error) && self.waits => {}
                other => return other,
            }
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("stopped on request"));
            }
            let now = Instant::now();
            let begun = begun.get_or_insert_with(|| now - TICK);
            let is_over = self.deadline.is_some_and(|at| now >= at);
            if is_over || now.saturating_duration_since(*begun) >= self.silence {
                let limit = evenkeel_op::units::duration(self.silence);
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the server has not answered for {limit}"),
                ));
            }
        }
    }
}

fn is_tick(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Waits by poll rather than in the read: a reader who sleeps on a Unix socket is also woken when the
/// server takes what was sent, and has to go to sleep again. That was every third switch of a client of
/// small statements.
fn receive(stream: &UnixStream, into: &mut [u8], asked: bool) -> io::Result<usize> {
    let mut read =
        || rustix::net::recv(stream, &mut *into, RecvFlags::DONTWAIT).map(|(read, _)| read);
    if !asked {
        match read() {
            Err(Errno::AGAIN) => {}
            other => return Ok(other?),
        }
    }
    let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
    let mut ready = [PollFd::new(stream, PollFlags::IN)];
    match poll(&mut ready, Some(&tick))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(read()?),
    }
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let asked = std::mem::take(&mut self.asked);
        let waits = self.waits;
        self.patiently(|raw| match raw {
            Raw::Socket(stream) if waits => receive(stream, into, asked),
            Raw::Socket(stream) => stream.read(into),
            Raw::Tcp(stream) => stream.read(into),
        })
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.asked = true;
        self.patiently(|raw| match raw {
            Raw::Socket(stream) => stream.write(bytes),
            Raw::Tcp(stream) => stream.write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream, with or without TLS, compressed or not.
#[derive(Debug)]
pub(crate) enum Stream {
    /// As the operating system has it.
    Plain(Patient),
    /// Encrypted.
    Tls(Box<StreamOwned<ClientConnection, Patient>>),
    /// Compressed, whatever is beneath.
    Compressed(Box<Compressed<Stream>>),
}

impl Stream {
    /// Begins to compress.
    pub(crate) fn compressed(self) -> Self {
        Self::Compressed(Box::new(Compressed::new(self)))
    }

    /// Begins a new exchange.
    pub(crate) fn restart(&mut self) {
        if let Self::Compressed(stream) = self {
            stream.restart();
        }
    }

    /// Sets how long the server may be silent. Zero: a read that finds nothing ends within a fraction of a second, with
    /// `TimedOut`, and can be tried again.
    pub(crate) fn set_silence(&mut self, silence: Duration) {
        match self {
            Self::Plain(stream) => stream.silence = silence,
            Self::Tls(stream) => stream.sock.silence = silence,
            Self::Compressed(stream) => stream.stream().set_silence(silence),
        }
    }

    /// Sets when it has to be over, however much the server says; `None` for never.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        match self {
            Self::Plain(stream) => stream.deadline = deadline,
            Self::Tls(stream) => stream.sock.deadline = deadline,
            Self::Compressed(stream) => stream.stream().set_deadline(deadline),
        }
    }

    /// Has reads and writes fail with `WouldBlock` where they would wait.
    pub(crate) fn stop_waiting(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.stop_waiting(),
            Self::Tls(stream) => stream.sock.stop_waiting(),
            Self::Compressed(stream) => stream.stream().stop_waiting(),
        }
    }

    /// Returns whether nobody but the server reads what is sent.
    pub(crate) fn is_private(&mut self) -> bool {
        match self {
            Self::Plain(stream) => matches!(stream.raw, Raw::Socket(_)),
            Self::Tls(_) => true,
            Self::Compressed(stream) => stream.stream().is_private(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let patient = match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
            Self::Compressed(stream) => return stream.beneath().as_fd(),
        };
        match &patient.raw {
            Raw::Socket(stream) => stream.as_fd(),
            Raw::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
            Self::Compressed(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Compressed(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
            Self::Compressed(stream) => stream.flush(),
        }
    }
}

/// Returns where these options lead, for messages.
pub(crate) fn place(options: &ConnectOptions) -> String {
    match options.host.as_deref() {
        Some(host) if !options.means_socket() => {
            format!("{host}:{}", options.port.unwrap_or(3306))
        }
        _ => socket_path(options).display().to_string(),
    }
}

/// Returns the host's name as certificates have it.
pub(crate) fn bare_host(options: &ConnectOptions) -> &str {
    let host = options.host.as_deref().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Why nothing was reached.
#[derive(Debug)]
pub(crate) enum NoStream {
    /// The name of the host has no address.
    Name(io::Error),
    Io(io::Error),
}

impl From<io::Error> for NoStream {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Connects by whatever way the options mean: to the first address of a name that takes it.
pub(crate) fn connect(options: &ConnectOptions, cancel: &Cancel) -> Result<Patient, NoStream> {
    if options.means_socket() {
        if options.ssl_mode > SslMode::Preferred {
            return Err(NoStream::Io(io::Error::new(
                io::ErrorKind::Unsupported,
                "TLS cannot be used with a Unix socket",
            )));
        }
        return Ok(Patient::over_socket(options, cancel)?);
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let port = options.port.unwrap_or(3306);
    let found = (bare_host(options), port).to_socket_addrs();
    for address in found.map_err(NoStream::Name)? {
        match Patient::over_tcp(&address, options, cancel) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(NoStream::Io(last))
}
