//! One of a relay's two sockets, with or without TLS. Nothing here blocks.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

/// A socket, and what it has not sent yet.
#[derive(Debug)]
pub struct Endpoint {
    socket: Socket,
    tls: Option<Box<rustls::Connection>>,
    unsent: Vec<u8>,
    /// How much of `unsent` was sent.
    sent: usize,
    /// No more will be sent: the other side is told once all is out.
    is_finished: bool,
    is_shut: bool,
}

/// The operating system's socket, and bytes that came before TLS was expected.
#[derive(Debug)]
struct Socket {
    inner: OwnedFd,
    early: Vec<u8>,
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.early.is_empty() {
            let count = into.len().min(self.early.len());
            into[..count].copy_from_slice(&self.early[..count]);
            self.early.drain(..count);
            return Ok(count);
        }
        loop {
            match recv(&self.inner, &mut *into, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(
                &self.inner,
                bytes,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.inner.as_fd()
    }
}

impl Endpoint {
    /// Takes a connected socket.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket: Socket {
                inner: socket,
                early: Vec::new(),
            },
            tls: None,
            unsent: Vec::new(),
            sent: 0,
            is_finished: false,
            is_shut: false,
        }
    }

    /// Begins TLS; `early` came already and belongs to it.
    pub(super) fn begin_tls(&mut self, mut connection: rustls::Connection, early: Vec<u8>) {
        // What it has to send is bounded by what is read for it.
        connection.set_buffer_limit(None);
        self.socket.early = early;
        self.tls = Some(Box::new(connection));
    }

    /// Reads what is there; 0 is the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when nothing is there; when the connection broke, or what came is not TLS.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(into);
        };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            let count = tls.read_tls(&mut self.socket)?;
            let processed = tls.process_new_packets();
            if let Err(error) = processed {
                // The other side is told what is wrong, if it still listens.
                while tls.wants_write() && tls.write_tls(&mut self.socket).is_ok() {}
                return Err(crate::tls::invalid(error));
            }
            if count == 0 && tls.is_handshaking() {
                return Ok(0);
            }
        }
    }

    /// Returns whether a short read says that nothing more is there.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Sends as much as goes, and keeps the rest.
    ///
    /// # Errors
    ///
    /// When the connection broke.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.flush();
        }
        let mut rest = bytes;
        if self.unsent.is_empty() {
            match self.socket.write(bytes) {
                Ok(count) => rest = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.extend_from_slice(rest);
        Ok(())
    }

    /// Sends what was kept, as much as goes.
    ///
    /// # Errors
    ///
    /// When the connection broke.
    pub fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.tls {
            Some(tls) => flush_tls(tls, &mut self.socket),
            None => self.flush_plain(),
        };
        match flushed {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Ok(()) if self.is_finished && !self.is_shut => {
                self.is_shut = true;
                Ok(shutdown(&self.socket.inner, Shutdown::Write)?)
            }
            other => other,
        }
    }

    fn flush_plain(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            self.sent += self.socket.write(&self.unsent[self.sent..])?;
        }
        // Most connections never have any: the memory is for those that do.
        (self.unsent, self.sent) = (Vec::new(), 0);
        Ok(())
    }

    /// Returns whether both sides have not agreed on their keys yet.
    #[must_use]
    pub fn is_agreeing(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Returns whether something waits to be sent.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        match &self.tls {
            Some(tls) => tls.wants_write(),
            None => !self.unsent.is_empty(),
        }
    }

    /// Returns whether more may be given to it: nothing waits, and both sides have agreed on their keys.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.wants_write() && !self.is_agreeing()
    }

    /// Tells the other side that nothing more comes, once all is sent.
    ///
    /// # Errors
    ///
    /// When the connection broke.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.is_finished = true;
        self.flush()
    }

    /// Has the other side see a broken connection, rather than an end, when this one is closed.
    pub fn break_off(&self) {
        // Where it cannot be set, it ends otherwise.
        let _ = sockopt::set_socket_linger(&self.socket.inner, Some(Duration::ZERO));
    }
}

fn flush_tls(tls: &mut rustls::Connection, socket: &mut Socket) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}
