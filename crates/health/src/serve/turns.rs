//! Connections that are answered, all of them in one thread: so many at a time, each for so long, so many of one
//! address. Whoever comes is let in. If there is no room, the oldest connection of the address that has the most has
//! to go, so that nobody who asks and reads the answer waits for those who do neither.

use evenkeel_op::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Connections at a time, at least.
const CONNECTIONS: usize = 128;
/// Of one address at a time, at least. Networks of IPv6 count as one address: whoever has one has all of it.
const SHARE: usize = 16;
/// Until the first line of a request is there.
const FIRST_LINE: Duration = Duration::from_secs(1);
/// Until the rest of it is there; and then until the answer is taken.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request.
const REQUEST_BYTES: usize = 4096;
/// Of all answers that are not taken yet.
const UNSENT_BYTES: usize = 16 << 20;
/// Accepted at once, before others are looked at again.
const ACCEPTED: usize = 64;
/// After an accept that failed: of descriptors, for example.
const PAUSE: Duration = Duration::from_millis(50);

/// What has to be read of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Its first line.
    Line,
    /// What follows that.
    Rest,
    /// Nothing more.
    Nothing,
}

/// How requests are read and answered.
pub(super) trait Protocol: Send + 'static {
    /// Says what has to be read of a request of which so much is there.
    fn wants(&self, read: &[u8]) -> Wants;

    /// Returns how long the first line is waited for.
    fn first_line(&self) -> Duration {
        FIRST_LINE
    }

    /// Returns the answer; `None` for none. If time is over, or the other side said all it had to say, less may have been
    /// read than it wants.
    fn answer(&self, read: &[u8]) -> Option<Vec<u8>>;
}

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnLimits {
    share: usize,
    pub(super) connections: usize,
}

impl TurnLimits {
    /// Returns those for so many servers: a balancer asks for all of them at once, and comes again before it hung up.
    pub(super) fn of(servers: usize) -> Self {
        let share = SHARE.max(servers.saturating_mul(2));
        Self {
            share,
            connections: CONNECTIONS.max(share.saturating_mul(2)),
        }
    }
}

/// Answers from now on, on a thread.
pub(super) fn serve(
    name: &str,
    listener: TcpListener,
    protocol: impl Protocol,
    limits: TurnLimits,
) -> Result<()> {
    let failed = || "failed to listen";
    listener.set_nonblocking(true).context(failed)?;
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let mut turns = Turns {
                listener,
                protocol,
                limits,
                turns: Vec::new(),
                paused: None,
            };
            loop {
                turns.round();
            }
        })
        .context(|| "failed to start a thread")?;
    Ok(())
}

struct Turns<P> {
    listener: TcpListener,
    protocol: P,
    limits: TurnLimits,
    turns: Vec<Turn>,
    /// Nothing is accepted before.
    paused: Option<Instant>,
}

/// A connection, while it has its turn.
struct Turn {
    stream: TcpStream,
    /// Of whose share it is.
    from: IpAddr,
    began: Instant,
    read: Vec<u8>,
    answer: Option<HalfSent>,
}

/// An answer, and how much of it is sent.
struct HalfSent {
    bytes: Vec<u8>,
    sent: usize,
    until: Instant,
}

impl<P: Protocol> Turns<P> {
    /// Waits until something can be done, and does it.
    fn round(&mut self) {
        let now = Instant::now();
        self.paused = self.paused.filter(|until| *until > now);
        let ready = self.wait(now);
        let now = Instant::now();
        let mut at = ready.iter();
        let protocol = &self.protocol;
        self.turns.retain_mut(|turn| {
            let is_ready = at.next().copied().unwrap_or_default();
            turn.go_on(protocol, is_ready, now)
        });
        self.bound_unsent();
        if self.paused.is_none() {
            self.accept();
        }
    }

    /// Returns which turns have something to read, or room to write.
    fn wait(&self, now: Instant) -> Vec<bool> {
        let mut polled: Vec<PollFd<'_>> = self.turns.iter().map(Turn::polled).collect();
        if self.paused.is_none() {
            polled.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let ends = self.turns.iter().map(|turn| turn.until(&self.protocol));
        let wake = ends.chain(self.paused).min();
        let wait = wake.map(|wake| timespec(wake.saturating_duration_since(now)));
        if poll(&mut polled, wait.as_ref()).is_err() {
            // A signal, or no memory: then it is looked at everything.
            return vec![true; self.turns.len()];
        }
        let polled = polled.iter().take(self.turns.len());
        polled.map(|one| !one.revents().is_empty()).collect()
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            let accepted = match self.listener.accept() {
                Ok((stream, from)) => stream.set_nonblocking(true).map(|()| (stream, from)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    self.paused = Some(Instant::now() + PAUSE);
                    return;
                }
            };
            let Ok((stream, from)) = accepted else {
                continue;
            };
            let _ = stream.set_nodelay(true);
            let now = Instant::now();
            let from = share_of(from.ip());
            self.make_room(from);
            let mut turn = Turn {
                stream,
                from,
                began: now,
                read: Vec::new(),
                answer: None,
            };
            // Most have asked already.
            if turn.go_on(&self.protocol, true, now) {
                self.turns.push(turn);
                self.bound_unsent();
            }
        }
    }

    /// Closes a connection, if there is no room for another one of this address.
    fn make_room(&mut self, from: IpAddr) {
        let of = |from: IpAddr| self.turns.iter().filter(|turn| turn.from == from).count();
        let leaves = if of(from) >= self.limits.share {
            self.oldest(|turn| turn.from == from)
        } else if self.turns.len() >= self.limits.connections {
            // Whoever is on this host has the least to do with it.
            let greedy = self.turns.iter().map(|turn| turn.from);
            let greediest = greedy.max_by_key(|it| (of(*it), !it.is_loopback()));
            self.oldest(|turn| Some(turn.from) == greediest)
        } else {
            None
        };
        if let Some(leaves) = leaves {
            self.turns.remove(leaves);
        }
    }

    /// Keeps answers that nobody takes from filling the memory.
    fn bound_unsent(&mut self) {
        let unsent = |turn: &Turn| turn.answer.as_ref().map_or(0, |it| it.bytes.len());
        while self.turns.iter().map(unsent).sum::<usize>() > UNSENT_BYTES {
            match self.oldest(|turn| turn.answer.is_some()) {
                Some(leaves) => drop(self.turns.remove(leaves)),
                None => return,
            }
        }
    }

    /// Returns the oldest of some. They are in the order in which they came.
    fn oldest(&self, is_one: impl Fn(&Turn) -> bool) -> Option<usize> {
        self.turns.iter().position(is_one)
    }
}

impl Turn {
    fn polled(&self) -> PollFd<'_> {
        let flags = match self.answer {
            Some(_) => PollFlags::OUT,
            None => PollFlags::IN,
        };
        PollFd::new(&self.stream, flags)
    }

    /// Returns when it has to end.
    fn until(&self, protocol: &impl Protocol) -> Instant {
        match &self.answer {
            Some(answer) => answer.until,
            None if protocol.wants(&self.read) == Wants::Line => self.began + protocol.first_line(),
            None => self.began + TIMEOUT,
        }
    }

    /// Reads, answers and writes as far as that goes without waiting. Returns whether it stays.
    fn go_on(&mut self, protocol: &impl Protocol, is_ready: bool, now: Instant) -> bool {
        let is_late = now >= self.until(protocol);
        if self.answer.is_none() {
            if !is_ready && !is_late {
                return true;
            }
            // What comes with the end of the time is still heard.
            let is_all = match self.read_more(protocol) {
                Ok(is_all) => is_all,
                Err(_) => return false,
            };
            if !is_all && !is_late {
                return true;
            }
            let Some(bytes) = protocol.answer(&self.read) else {
                return false;
            };
            self.answer = Some(HalfSent {
                bytes,
                sent: 0,
                until: now + TIMEOUT,
            });
        } else if is_late {
            return false;
        }
        self.write_more().unwrap_or(false)
    }

    /// Returns whether that is all that there is to read.
    fn read_more(&mut self, protocol: &impl Protocol) -> io::Result<bool> {
        let mut buffer = [0; 1024];
        while protocol.wants(&self.read) != Wants::Nothing && self.read.len() < REQUEST_BYTES {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => self.read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Returns whether there is more to write.
    fn write_more(&mut self) -> io::Result<bool> {
        let Some(answer) = &mut self.answer else {
            return Ok(true);
        };
        while answer.sent < answer.bytes.len() {
            match self.stream.write(&answer.bytes[answer.sent..]) {
                Ok(0) => return Ok(false),
                Ok(count) => answer.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        self.stream.shutdown(Shutdown::Write)?;
        Ok(false)
    }
}

/// Returns the address that stands for all that whoever is at this one can use.
fn share_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

fn timespec(span: Duration) -> Timespec {
    // Rounded up: it is looked at again when the time is over, not just before.
    let span = span + Duration::from_millis(1);
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_network_has_one_share() {
        let of = |text: &str| share_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8:0:0:ffff::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert!(of("::1").is_loopback());
    }
}
