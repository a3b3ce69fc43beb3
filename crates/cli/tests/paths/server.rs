//! What listens as a server does, and lets nobody in.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// It ends when it is dropped.
pub(crate) struct Server {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    at: At,
}

enum At {
    Socket(PathBuf),
    Port(u16),
}

impl Server {
    /// Listens at a socket.
    pub(crate) fn at(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let next = move || listener.accept().map(|(guest, _)| guest);
        Self::begin(next, At::Socket(socket.to_owned()))
    }

    /// Listens at a port of this host.
    pub(crate) fn on_a_port() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let next = move || listener.accept().map(|(guest, _)| guest);
        Self::begin(next, At::Port(port))
    }

    fn begin<G: Write>(next: impl Fn() -> io::Result<G> + Send + 'static, at: At) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while let Ok(mut guest) = next() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Whoever went away does not mind.
                let _ = guest.write_all(&refusal());
            }
        });
        Self {
            ended,
            thread: Some(thread),
            at,
        }
    }

    /// The port that it listens at.
    pub(crate) fn port(&self) -> u16 {
        match self.at {
            At::Port(port) => port,
            At::Socket(_) => 0,
        }
    }
}

/// The packet of error 1130, ER_HOST_NOT_PRIVILEGED, before any greeting.
fn refusal() -> Vec<u8> {
    let body = [&[0xff, 0x6a, 0x04][..], b"nobody is let in here"].concat();
    let length = u8::try_from(body.len()).unwrap();
    [vec![length, 0, 0, 0], body].concat()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that it looks.
        match &self.at {
            At::Socket(socket) => drop(UnixStream::connect(socket)),
            At::Port(port) => drop(TcpStream::connect(("127.0.0.1", *port))),
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let At::Socket(socket) = &self.at {
            let _ = fs::remove_file(socket);
        }
    }
}
