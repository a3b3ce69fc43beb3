//! Answers to load balancers, from memory: over HTTP (`http`), to HAProxy's agent checks (`agent`), and as metrics.
//!
//! Each connection has a thread for a moment. No more than a fixed number have one at a time, and none may take
//! longer than a fixed time: what comes beyond that is closed.

mod agent;
mod http;
mod metrics;

pub use agent::{Weighing, agent_line};
pub use http::{HttpAnswer, answer};

use crate::board::Board;
use evenkeel_op::{Context, Result};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections that are answered at a time.
const CONNECTIONS: usize = 128;
/// How long one may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request.
const REQUEST_BYTES: usize = 4096;
/// After an accept that failed: of descriptors, for example.
const PAUSE: Duration = Duration::from_millis(50);
/// An agent's line may name a server; without one, so long is waited for it.
const AGENT_NAME: Duration = Duration::from_millis(200);

/// Answers HTTP requests at an address from now on. Returns where it listens.
///
/// # Errors
///
/// `Failed` where the address cannot be used.
pub fn http(address: &str, board: Arc<Board>) -> Result<std::net::SocketAddr> {
    listen(address, "http", move |stream| {
        let request = read_until(stream, TIMEOUT, |read| {
            read.windows(4).any(|four| four == b"\r\n\r\n")
                || read.windows(2).any(|two| two == b"\n\n")
        })?;
        let reply = http::reply(&board, &String::from_utf8_lossy(&request));
        stream.write_all(&reply)?;
        stream.shutdown(std::net::Shutdown::Write)
    })
}

/// Answers HAProxy's agent checks at an address from now on. Returns where it listens.
///
/// # Errors
///
/// `Failed` where the address cannot be used.
pub fn agent(address: &str, board: Arc<Board>, weighing: Weighing) -> Result<std::net::SocketAddr> {
    listen(address, "agent", move |stream| {
        // With one server, a name need not be sent, and is not waited for.
        let name = match board.len() {
            1 => Vec::new(),
            _ => read_until(stream, AGENT_NAME, |read| read.contains(&b'\n'))?,
        };
        let name = String::from_utf8_lossy(&name);
        let line = agent_line(&board, name.trim(), weighing);
        stream.write_all(line.as_bytes())?;
        stream.shutdown(std::net::Shutdown::Write)
    })
}

fn listen(
    address: &str,
    what: &'static str,
    serve: impl Fn(&mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> Result<std::net::SocketAddr> {
    let failed = || format!("failed to listen at {address}");
    let listener = TcpListener::bind(address).context(failed)?;
    let at = listener.local_addr().context(failed)?;
    let serve = Arc::new(serve);
    let busy = Arc::new(AtomicUsize::new(0));
    let accepts = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let Some(turn) = Turn::take(&busy) else {
                continue;
            };
            let serve = serve.clone();
            let thread = std::thread::Builder::new()
                .name(what.to_owned())
                .stack_size(128 << 10);
            // Without a thread it is closed, which a load balancer takes for down.
            let _ = thread.spawn(move || {
                let _turn = turn;
                let mut stream = stream;
                let limits = [
                    stream.set_write_timeout(Some(TIMEOUT)),
                    stream.set_nodelay(true),
                ];
                if limits.iter().all(Result::is_ok) {
                    // Whoever hung up wants no answer.
                    let _ = serve(&mut stream);
                }
            });
        }
    };
    std::thread::Builder::new()
        .name(what.to_owned())
        .spawn(accepts)
        .context(|| "failed to start a thread")?;
    Ok(at)
}

/// One of the connections that are answered at a time.
struct Turn(Arc<AtomicUsize>);

impl Turn {
    fn take(busy: &Arc<AtomicUsize>) -> Option<Self> {
        let turn = Self(busy.clone());
        (busy.fetch_add(1, Ordering::SeqCst) < CONNECTIONS).then_some(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads until it is enough, the other side ends, or the time is over.
fn read_until(
    stream: &mut TcpStream,
    limit: Duration,
    is_enough: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let until = Instant::now() + limit;
    let mut read = Vec::new();
    let mut buffer = [0; 1024];
    while !is_enough(&read) && read.len() < REQUEST_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
