//! A connection that can be cut after so many bytes, or fall silent.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Hands TCP connections on to another port of this host.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    plan: Arc<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    /// After how many bytes, both ways together, the next connections are cut.
    cuts: Mutex<VecDeque<u64>>,
    frozen: AtomicBool,
    refusing: AtomicBool,
    bytes: AtomicU64,
    connections: AtomicU64,
}

impl Proxy {
    /// Listens on a free port and hands on to `target`.
    #[must_use]
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let plan = Arc::new(Plan::default());
        let shared = plan.clone();
        // Ends with the test's process; a connection after that is refused.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.refusing.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target)) {
                    shared.connections.fetch_add(1, Ordering::SeqCst);
                    let next = shared.cuts.lock().expect("cuts").pop_front();
                    carry(&shared, &client, &server, next.unwrap_or(u64::MAX));
                }
            }
        });
        Self { port, plan }
    }

    /// Returns the port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the next connections after so many bytes, one each; later ones are not cut.
    pub fn cut_after(&self, bytes: &[u64]) {
        self.plan.cuts.lock().expect("cuts").extend(bytes);
    }

    /// Falls silent on every connection, or goes on. Nothing is closed.
    pub fn freeze(&self, frozen: bool) {
        self.plan.frozen.store(frozen, Ordering::SeqCst);
    }

    /// Takes no new connections, or does again.
    pub fn refuse(&self, refusing: bool) {
        self.plan.refusing.store(refusing, Ordering::SeqCst);
    }

    /// Returns how many bytes went through, both ways.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.plan.bytes.load(Ordering::SeqCst)
    }

    /// Returns how many connections there were.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.plan.connections.load(Ordering::SeqCst)
    }
}

fn carry(plan: &Arc<Plan>, client: &TcpStream, server: &TcpStream, cut: u64) {
    let left = Arc::new(AtomicU64::new(cut));
    for (from, to) in [(client, server), (server, client)] {
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let (plan, left) = (plan.clone(), left.clone());
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length) = from.read(&mut buffer)
                && length > 0
            {
                while plan.frozen.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let before = left.load(Ordering::SeqCst);
                let length = length.min(usize::try_from(before).unwrap_or(usize::MAX));
                left.fetch_sub((length as u64).min(before), Ordering::SeqCst);
                plan.bytes.fetch_add(length as u64, Ordering::SeqCst);
                // At once when nothing is left: what was cut short may be the last word of its side,
                // and the other would wait for the rest for ever.
                let is_cut = length as u64 >= before;
                if to.write_all(&buffer[..length]).is_err() || is_cut {
                    break;
                }
            }
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}
