//! Answers to load balancers, from memory: over HTTP (`http`), to HAProxy's agent checks (`agent`), and as metrics.
//! Who is answered when: `turns`.

mod agent;
mod http;
mod listen;
mod metrics;
mod turns;

pub use agent::{Weighing, agent_line};
pub use http::{HttpAnswer, answer};
pub use listen::place_heard;

use crate::board::Board;
use evenkeel_op::{Context, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use turns::{Protocol, TurnLimits, Wants};

/// An agent's line may name a server; without one, so long is waited for it.
const AGENT_NAME: Duration = Duration::from_millis(200);

/// Answers HTTP requests at an address from now on. Returns where it listens.
///
/// # Errors
///
/// `Failed` where the address cannot be used.
pub fn http(address: &str, board: Arc<Board>) -> Result<SocketAddr> {
    let servers = board.len();
    begin("http", address, HttpTurns { board }, servers)
}

/// Answers HAProxy's agent checks at an address from now on. Returns where it listens.
///
/// # Errors
///
/// `Failed` where the address cannot be used.
pub fn agent(address: &str, board: Arc<Board>, weighing: Weighing) -> Result<SocketAddr> {
    let servers = board.len();
    begin("agent", address, AgentTurns { board, weighing }, servers)
}

/// Returns how many connections each of them may have, for so many servers.
#[must_use]
pub fn connections(servers: usize) -> usize {
    TurnLimits::of(servers).connections
}

fn begin(name: &str, address: &str, protocol: impl Protocol, servers: usize) -> Result<SocketAddr> {
    let listener = listen::at(address)?;
    let at = listener.local_addr();
    let at = at.context(|| format!("failed to listen at {address}"))?;
    turns::serve(name, listener, protocol, TurnLimits::of(servers))?;
    Ok(at)
}

struct HttpTurns {
    board: Arc<Board>,
}

impl Protocol for HttpTurns {
    fn wants(&self, read: &[u8]) -> Wants {
        let has = |end: &[u8]| read.windows(end.len()).any(|part| part == end);
        if has(b"\r\n\r\n") || has(b"\n\n") {
            Wants::Nothing
        } else if read.contains(&b'\n') {
            Wants::Rest
        } else {
            Wants::Line
        }
    }

    fn answer(&self, read: &[u8]) -> Option<Vec<u8>> {
        // Half a line may be the beginning of another one.
        let is_asked = read.contains(&b'\n');
        is_asked.then(|| http::reply(&self.board, &String::from_utf8_lossy(read)))
    }
}

struct AgentTurns {
    board: Arc<Board>,
    weighing: Weighing,
}

impl Protocol for AgentTurns {
    fn wants(&self, read: &[u8]) -> Wants {
        // With one server, a name need not be sent, and is not waited for.
        match self.board.len() == 1 || read.contains(&b'\n') {
            true => Wants::Nothing,
            false => Wants::Line,
        }
    }

    fn first_line(&self) -> Duration {
        AGENT_NAME
    }

    fn answer(&self, read: &[u8]) -> Option<Vec<u8>> {
        let sent = String::from_utf8_lossy(read);
        let name = if self.board.len() == 1 {
            ""
        } else {
            sent.trim()
        };
        Some(agent_line(&self.board, name, self.weighing).into_bytes())
    }
}
