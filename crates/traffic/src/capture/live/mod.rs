//! Statements as they go by: packets of an interface, by a packet socket.
//!
//! | file | what |
//! |---|---|
//! | `filter` | which packets the kernel keeps |
//! | `ring` | where it puts them |

pub mod filter;
mod ring;

use super::connections::{Connections, Each, Options};
use super::frame::{self, Held};
use crate::statement::{Coverage, Seen};
use evenkeel_op::{Cancel, Context, Error, Result, units};
use ring::{BLOCK, BLOCK_TIME, Ring, Waited};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use std::fs;
use std::time::{Duration, Instant};

/// The name that stands for all interfaces.
pub const ANY: &str = "any";

/// The ring's memory where none is said: a second of a busy server's packets.
const USUAL_RING: u64 = 64 << 20;
/// A small host gives this part of its memory.
const PART_OF_MEMORY: u64 = 64;
/// Less than this is no buffer.
const LEAST_BLOCKS: usize = 4;
/// How often to look whether somebody wants an end.
const LOOK: Duration = Duration::from_millis(100);

/// How to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The interface's name, or [`ANY`].
    pub interface: String,
    /// Bytes of memory for packets that were not decoded yet; by the host's memory where it is not said.
    pub ring_bytes: Option<u64>,
    /// How long to capture.
    pub span: Option<Duration>,
}

/// A live capture.
#[derive(Debug)]
pub struct Live {
    ring: Ring,
    settings: Settings,
    options: Options,
    dropped: u64,
    damage: Option<Error>,
}

impl Live {
    /// Begins to receive: packets from here on are decoded.
    ///
    /// # Errors
    ///
    /// `Usage` when there is no such interface, or too many ports; `Refused` without the capability; when the kernel
    /// has no memory for the ring.
    pub fn open(settings: Settings, options: Options) -> Result<Self> {
        if options.ports.len() > filter::MOST_PORTS {
            return Err(Error::usage(format!(
                "a live capture takes at most {} ports",
                filter::MOST_PORTS
            )));
        }
        let socket = Ring::socket().map_err(no_socket)?;
        let interface = index(&socket, &settings.interface)?;
        let filter = filter::filter(&options.ports);
        let mut blocks = blocks(settings.ring_bytes);
        let mut socket = Some(socket);
        let ring = loop {
            let open = match socket.take() {
                Some(socket) => socket,
                None => Ring::socket().map_err(no_socket)?,
            };
            match Ring::new(open, interface, &filter, blocks) {
                Ok(ring) => break ring,
                // Nobody asked for that much.
                Err(Errno::NOMEM) if settings.ring_bytes.is_none() && blocks > LEAST_BLOCKS => {
                    blocks /= 2;
                }
                Err(error) => return Err(no_ring(error, blocks, &settings.interface)),
            }
        };
        Ok(Self {
            ring,
            settings,
            options,
            dropped: 0,
            damage: None,
        })
    }

    /// Returns why the capture ended before it was to.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Hands out statements as they are answered, until the time is up, `cancel` is set, the interface goes down or
    /// `each` fails.
    ///
    /// # Errors
    ///
    /// When the kernel fails, and what `each` fails with.
    pub fn watch(
        &mut self,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        let mut all = Connections::new(self.options.clone());
        let end = self.settings.span.map(|span| Instant::now() + span);
        let is_over = || cancel.is_cancelled() || end.is_some_and(|end| Instant::now() >= end);
        loop {
            self.take_blocks(&mut all, each, &is_over)?;
            each(Seen::Pause)?;
            if is_over() {
                break;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let most = left.map_or(LOOK, |left| left.min(LOOK));
            if self.wait(most)? == Waited::Down {
                self.damage = Some(Error::failed("the interface went down"));
                break;
            }
        }
        // What came so far is decoded. The kernel hands over the block that it fills when its time is up.
        self.ring
            .refilter(&filter::nothing())
            .context(|| "failed to end the capture")?;
        self.take_blocks(&mut all, each, &|| false)?;
        while self.damage.is_none() && self.wait(BLOCK_TIME * 3)? == Waited::Ready {
            self.take_blocks(&mut all, each, &|| false)?;
        }
        all.end_all(&mut |statement| each(Seen::Statement(statement)))?;
        all.coverage.packets_dropped = self.dropped;
        Ok(all.coverage)
    }

    /// Decodes all blocks that are there.
    fn take_blocks(
        &mut self,
        all: &mut Connections,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<()> {
        let each: &mut Each<'_> = &mut |statement| each(Seen::Statement(statement));
        let taken = |packet: ring::Packet<'_>| {
            all.coverage.packets += 1;
            match frame::network(packet.protocol, packet.data) {
                Held::Segment(segment) => all.take(packet.at_ns, &segment, each),
                Held::Unreadable => {
                    all.coverage.undecodable += 1;
                    Ok(())
                }
                Held::Other => Ok(()),
            }
        };
        let mut taken = taken;
        while self.ring.next_block(&mut taken)? && !is_over() {}
        let dropped = self.ring.dropped();
        self.dropped += dropped.context(|| "failed to ask for dropped packets")?;
        Ok(())
    }

    fn wait(&self, most: Duration) -> Result<Waited> {
        let waited = self.ring.wait(most);
        waited.context(|| format!("failed to capture on {}", self.settings.interface))
    }
}

/// Returns how many blocks a ring has.
fn blocks(bytes: Option<u64>) -> usize {
    let memory = || {
        let info = rustix::system::sysinfo();
        u64::from(info.mem_unit).saturating_mul(info.totalram)
    };
    let bytes = bytes.unwrap_or_else(|| USUAL_RING.min(memory() / PART_OF_MEMORY));
    let blocks = usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK;
    blocks.max(LEAST_BLOCKS)
}

fn index(socket: &OwnedFd, name: &str) -> Result<u32> {
    if name == ANY {
        return Ok(0);
    }
    name_to_index(socket, name).map_err(|error| {
        let known = interfaces();
        let error = match error {
            Errno::NODEV => Error::usage(format!("there is no interface '{name}'")),
            error => Error::usage(format!("'{name}' is not an interface")).because(error),
        };
        error.hint(format!("there are: {}, or {ANY} for all", known.join(", ")))
    })
}

/// Returns the names of this host's interfaces.
fn interfaces() -> Vec<String> {
    let table = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

fn no_socket(error: Errno) -> Error {
    match error {
        Errno::PERM | Errno::ACCESS => {
            Error::refused("capturing packets needs root or the capability CAP_NET_RAW")
                .because(error)
                .hint("run it with sudo, or give the right to a copy of the program that only you may run: sudo setcap cap_net_raw=ep COPY")
        }
        error => Error::failed("the kernel gives no packet socket")
            .because(error)
            .hint("capture with tcpdump where that works, and read its file with --pcap"),
    }
}

fn no_ring(error: Errno, blocks: usize, interface: &str) -> Error {
    let bytes = units::bytes((blocks * BLOCK) as u64);
    match error {
        Errno::NOMEM => Error::failed(format!("the kernel has no {bytes} for packets"))
            .because(error)
            .hint("give less with --ring"),
        error => Error::failed(format!("failed to capture on {interface}")).because(error),
    }
}
