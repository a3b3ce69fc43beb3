//! What HAProxy asks and what it is told, passed on, and counted.

use evenkeel_testkit::until;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// So many checks in a row have to fail before HAProxy takes a server for down.
pub(crate) const FALL: u32 = 2;

/// In which of HAProxy's ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Http,
    Agent,
}

/// A place where HAProxy asks.
pub(crate) struct Checked {
    asks: Asks,
    port: u16,
    leads_to: Mutex<String>,
    /// Checks that began.
    begun: AtomicU32,
    /// Answers other than 'use it', in a row.
    bad: AtomicU32,
    /// Those of them that HAProxy has heard: it asks about a server again when it is through with the answer.
    heard: AtomicU32,
}

impl Checked {
    pub(crate) fn listen(asks: Asks) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let checked = Arc::new(Self {
            asks,
            port: listener.local_addr().unwrap().port(),
            leads_to: Mutex::default(),
            begun: AtomicU32::new(0),
            bad: AtomicU32::new(0),
            heard: AtomicU32::new(0),
        });
        // As long as the test's process: HAProxy asks until its end.
        let passes = checked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                passes.pass(stream);
            }
        });
        checked
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn leads_to(&self, at: &str) {
        at.clone_into(&mut self.leads_to.lock().unwrap());
    }

    /// Whether HAProxy has been told often enough that nobody may use the server.
    pub(crate) fn is_over(&self) -> bool {
        self.heard.load(Ordering::SeqCst) >= FALL
    }

    /// Waits until another check has begun.
    pub(crate) fn until_more(&self) {
        let before = self.begun.load(Ordering::SeqCst);
        until("HAProxy asks again", || {
            self.begun.load(Ordering::SeqCst) > before + 1
        });
    }

    /// One check at a time, as HAProxy does it for a server.
    fn pass(&self, mut stream: TcpStream) {
        self.heard
            .store(self.bad.load(Ordering::SeqCst), Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        let answer = self.answer(&mut stream).unwrap_or_default();
        let is_good = match self.asks {
            Asks::Http => answer.starts_with(b"HTTP/1.1 200 "),
            Asks::Agent => answer.starts_with(b"up ready "),
        };
        // A dead agent changes nothing.
        let says_nothing = self.asks == Asks::Agent && answer.is_empty();
        if is_good {
            self.bad.store(0, Ordering::SeqCst);
            self.heard.store(0, Ordering::SeqCst);
        } else if !says_nothing {
            self.bad.fetch_add(1, Ordering::SeqCst);
        }
        let _ = stream.write_all(&answer);
        let _ = stream.shutdown(Shutdown::Write);
    }

    fn answer(&self, stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
        let at = self.leads_to.lock().unwrap().clone();
        let mut prober = TcpStream::connect(at)?;
        if self.asks == Asks::Http {
            let mut asked = Vec::new();
            let mut buffer = [0; 1024];
            while !asked.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer)? {
                    0 => break,
                    count => asked.extend_from_slice(&buffer[..count]),
                }
            }
            prober.write_all(&asked)?;
        }
        let mut answer = Vec::new();
        prober.read_to_end(&mut answer)?;
        Ok(answer)
    }
}
