//! A way to an HTTP server on which requests and answers go wrong.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFault {
    /// The server never sees it; this is the answer.
    Status(u16),
    /// The connection ends before the server has seen it.
    Refused,
    /// The server does it; the connection ends before the answer.
    AnswerLost,
    /// The answer ends in its midst.
    AnswerCut,
    /// It takes so many milliseconds longer.
    Slow(u64),
}

/// Hands HTTP/1.1 requests on to another port of this host, one a connection.
#[derive(Debug)]
pub struct HttpFaults {
    port: u16,
    plan: Arc<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    /// What happens to the next requests; `None` is nothing.
    next: Mutex<VecDeque<Option<HttpFault>>>,
    /// What happens to all after those.
    always: Mutex<Option<HttpFault>>,
    /// Requests that begin with this are answered with 403.
    forbidden: Mutex<Option<&'static str>>,
    /// How each request began.
    heads: Mutex<Vec<String>>,
    requests: AtomicU64,
}

impl HttpFaults {
    /// Listens on a free port and hands on to `target`.
    #[must_use]
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let plan = Arc::new(Plan::default());
        let shared = plan.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let plan = shared.clone();
                std::thread::spawn(move || {
                    // Whoever asked sees that the connection ended.
                    let _ = carry(&plan, client, target);
                });
            }
        });
        Self { port, plan }
    }

    /// Returns the port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Has these happen to the next requests, one each.
    pub fn inject(&self, faults: impl IntoIterator<Item = Option<HttpFault>>) {
        self.plan.next.lock().expect("faults").extend(faults);
    }

    /// Takes back what has not happened yet of [`Self::inject`].
    pub fn forget(&self) {
        self.plan.next.lock().expect("faults").clear();
    }

    /// Has this happen to every request from now on.
    pub fn always(&self, fault: Option<HttpFault>) {
        *self.plan.always.lock().expect("a fault") = fault;
    }

    /// Has requests of this method forbidden from now on.
    pub fn forbid(&self, method: Option<&'static str>) {
        *self.plan.forbidden.lock().expect("a method") = method;
    }

    /// Returns the heads of all requests, in lower case.
    #[must_use]
    pub fn heads(&self) -> Vec<String> {
        self.plan.heads.lock().expect("heads").clone()
    }

    /// Returns how many requests there were.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.plan.requests.load(Ordering::SeqCst)
    }
}

fn carry(plan: &Plan, mut client: TcpStream, target: u16) -> io::Result<()> {
    let request = request(&mut client)?;
    plan.requests.fetch_add(1, Ordering::SeqCst);
    let next = plan.next.lock().expect("faults").pop_front();
    let fault = next.unwrap_or_else(|| *plan.always.lock().expect("a fault"));
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    let head = String::from_utf8_lossy(&request[..end.unwrap_or(0)]).to_lowercase();
    let forbidden = *plan.forbidden.lock().expect("a method");
    let is_forbidden = forbidden.is_some_and(|method| request.starts_with(method.as_bytes()));
    plan.heads.lock().expect("heads").push(head);
    let fault = match is_forbidden {
        true => Some(HttpFault::Status(403)),
        false => fault,
    };
    match fault {
        Some(HttpFault::Refused) => return Ok(()),
        Some(HttpFault::Status(status)) => {
            let body = "<Error><Code>Injected</Code><Message>by the test</Message></Error>";
            return write!(
                client,
                "HTTP/1.1 {status} Injected\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
        Some(HttpFault::Slow(ms)) => std::thread::sleep(Duration::from_millis(ms)),
        _ => {}
    }
    let mut server = TcpStream::connect(("127.0.0.1", target))?;
    server.write_all(&request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    match fault {
        Some(HttpFault::AnswerLost) => Ok(()),
        Some(HttpFault::AnswerCut) => client.write_all(&answer[..answer.len() * 2 / 3]),
        _ => client.write_all(&answer),
    }
}

/// Reads a whole request, and has the server close the connection after it.
fn request(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let body = loop {
        if let Some(at) = all.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            some => all.extend_from_slice(&buffer[..some]),
        }
    };
    let head = String::from_utf8_lossy(&all[..body]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let length = value.trim().parse::<usize>().ok()?;
        name.eq_ignore_ascii_case("content-length")
            .then_some(length)
    });
    let end = body + length.unwrap_or(0);
    while all.len() < end {
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            some => all.extend_from_slice(&buffer[..some]),
        }
    }
    let closing = format!("{}Connection: close\r\n\r\n", &head[..head.len() - 2]);
    Ok([closing.as_bytes(), &all[body..]].concat())
}
