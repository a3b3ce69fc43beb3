//! Files of packets: pcap and pcapng, in either byte order, with micro- or nanoseconds. A file may end anywhere:
//! whoever writes it may be at work still.

use evenkeel_op::{Context, Error, Result};
use std::io::Read;

/// A packet longer than this is damage: nobody captures more of one.
const LONGEST: usize = 1 << 20;
/// The longest block of pcapng: a packet with options, or tables of names that are passed over.
const LONGEST_BLOCK: usize = 16 << 20;
/// What is read at a time.
const BUFFER: usize = 512 << 10;
/// Interfaces of one pcapng section; a capture of each has its own description.
const MOST_INTERFACES: usize = 4096;

/// How files begin: pcapng, and pcap with times in either unit, in the writer's byte order.
const NG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
const MICROSECONDS: [u8; 4] = [0xA1, 0xB2, 0xC3, 0xD4];
const NANOSECONDS: [u8; 4] = [0xA1, 0xB2, 0x3C, 0x4D];

fn is_either(magic: [u8; 4], big: [u8; 4]) -> bool {
    let [a, b, c, d] = big;
    magic == big || magic == [d, c, b, a]
}

/// Returns whether these are the first bytes of a capture.
pub(crate) fn is_begun_by(first: &[u8]) -> bool {
    first.first_chunk().is_some_and(|magic| {
        *magic == NG || is_either(*magic, MICROSECONDS) || is_either(*magic, NANOSECONDS)
    })
}

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When, in nanoseconds since 1970.
    pub at_ns: i64,
    /// What its first bytes are, by the numbers of libpcap's link types.
    pub link: u16,
    /// As much of it as was kept.
    pub data: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u16,
    /// Units of its times in a second.
    per_second: u64,
    offset_s: i64,
}

#[derive(Debug)]
enum Format {
    Pcap { interface: Interface },
    Ng { interfaces: Vec<Interface> },
}

/// Reads packets one after the other.
pub struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    is_big: bool,
    format: Format,
    /// Where the last frame lies.
    frame: (i64, u16, std::ops::Range<usize>),
    is_cut: bool,
}

impl<R> std::fmt::Debug for Frames<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Frames<R> {
    /// Starts to read.
    ///
    /// # Errors
    ///
    /// `Usage` when it is no capture; when it cannot be read.
    pub fn new(from: R) -> Result<Self> {
        let mut frames = Self {
            from,
            buffer: vec![0; BUFFER],
            at: 0,
            end: 0,
            is_big: false,
            format: Format::Ng {
                interfaces: Vec::new(),
            },
            frame: (0, 0, 0..0),
            is_cut: false,
        };
        if !frames.fill(4)? {
            return Err(Error::usage("the capture is empty")
                .hint("with tcpdump, give -U: it writes each packet at once"));
        }
        let magic: [u8; 4] = [0, 1, 2, 3].map(|n| frames.buffer[n]);
        let per_second = match magic {
            NG => return Ok(frames),
            _ if is_either(magic, MICROSECONDS) => 1_000_000,
            _ if is_either(magic, NANOSECONDS) => 1_000_000_000,
            _ => {
                return Err(Error::usage("this is not a capture: neither pcap nor pcapng").hint(
                    "write one with: tcpdump -i any -s 0 -w FILE 'tcp port 3306'; not its text output",
                ));
            }
        };
        frames.is_big = magic[0] == 0xA1;
        if !frames.fill(24)? {
            return Err(Error::usage("the capture ends in its header"));
        }
        let link = frames.u32(20) as u16;
        frames.at += 24;
        frames.format = Format::Pcap {
            interface: Interface {
                link,
                per_second,
                offset_s: 0,
            },
        };
        Ok(frames)
    }

    /// Returns the next packet; `None` at the end.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is damaged.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        let found = match &self.format {
            Format::Pcap { interface } => {
                let interface = *interface;
                self.next_pcap(interface)?
            }
            Format::Ng { .. } => self.next_ng()?,
        };
        let (at_ns, link, range) = self.frame.clone();
        Ok(found.then(|| Frame {
            at_ns,
            link,
            data: &self.buffer[range],
        }))
    }

    /// Returns whether the capture ended within a packet.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn next_pcap(&mut self, interface: Interface) -> Result<bool> {
        if !self.fill(16)? {
            return Ok(false);
        }
        let (seconds, fraction) = (self.u32(0), self.u32(4));
        let length = self.u32(8) as usize;
        if length > LONGEST {
            return Err(damaged());
        }
        if !self.fill(16 + length)? {
            return Ok(false);
        }
        let fraction = u64::from(fraction) * (1_000_000_000 / interface.per_second);
        let at_ns = i64::from(seconds) * 1_000_000_000 + fraction as i64;
        let start = self.at + 16;
        self.at = start + length;
        self.frame = (at_ns, interface.link, start..start + length);
        Ok(true)
    }

    fn next_ng(&mut self) -> Result<bool> {
        loop {
            if !self.fill(12)? {
                return Ok(false);
            }
            let is_section = self.buffer[self.at..self.at + 4] == [0x0A, 0x0D, 0x0D, 0x0A];
            if is_section {
                self.is_big = match self.buffer[self.at + 8..self.at + 12] {
                    [0x1A, 0x2B, 0x3C, 0x4D] => true,
                    [0x4D, 0x3C, 0x2B, 0x1A] => false,
                    _ => return Err(damaged()),
                };
                self.format = Format::Ng {
                    interfaces: Vec::new(),
                };
            }
            let kind = self.u32(0);
            let length = self.u32(4) as usize;
            if !(12..=LONGEST_BLOCK).contains(&length) || !length.is_multiple_of(4) {
                return Err(damaged());
            }
            if !self.fill(length)? {
                return Ok(false);
            }
            let body = self.at + 8..self.at + length - 4;
            self.at += length;
            if self.block(kind, body)? {
                return Ok(true);
            }
        }
    }

    /// Reads a block; returns whether it holds a packet.
    fn block(&mut self, kind: u32, body: std::ops::Range<usize>) -> Result<bool> {
        let size = body.len();
        let at = body.start;
        let read = |n: usize| self.number(at + n);
        let Format::Ng { interfaces } = &self.format else {
            return Ok(false);
        };
        let interface = |n: u32| interfaces.get(n as usize).copied().ok_or_else(damaged);
        match kind {
            1 if size >= 8 && interfaces.len() < MOST_INTERFACES => {
                let described = self.described(body);
                if let Format::Ng { interfaces } = &mut self.format {
                    interfaces.push(described);
                }
                Ok(false)
            }
            // Enhanced packets; the older kind has two bytes of interface, two of drops.
            2 | 6 if size >= 20 => {
                let number = match (kind, self.is_big) {
                    (6, _) => read(0),
                    (_, true) => read(0) >> 16,
                    (_, false) => read(0) & 0xFFFF,
                };
                let interface = interface(number)?;
                let units = u64::from(read(4)) << 32 | u64::from(read(8));
                let length = read(12) as usize;
                if length > LONGEST || 20 + length > size {
                    return Err(damaged());
                }
                let at_ns = in_ns(units, interface);
                self.frame = (at_ns, interface.link, at + 20..at + 20 + length);
                Ok(true)
            }
            3 if size >= 4 => {
                let interface = interface(0)?;
                let length = (read(0) as usize).min(size - 4);
                // It has no time: that of the packet before it.
                self.frame = (self.frame.0, interface.link, at + 4..at + 4 + length);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Reads the description of an interface.
    fn described(&self, body: std::ops::Range<usize>) -> Interface {
        let short = |at: usize| {
            let pair = [self.buffer[at], self.buffer[at + 1]];
            match self.is_big {
                true => u16::from_be_bytes(pair),
                false => u16::from_le_bytes(pair),
            }
        };
        let mut interface = Interface {
            link: short(body.start),
            per_second: 1_000_000,
            offset_s: 0,
        };
        let mut at = body.start + 8;
        while at + 4 <= body.end {
            let (code, length) = (short(at), usize::from(short(at + 2)));
            let value = at + 4..at + 4 + length;
            if code == 0 || value.end > body.end {
                break;
            }
            match (code, length) {
                (9, 1) => {
                    let unit = self.buffer[value.start];
                    let power = u32::from(unit & 0x7F);
                    interface.per_second = match unit & 0x80 {
                        0 => 10_u64.checked_pow(power),
                        _ => 2_u64.checked_pow(power),
                    }
                    .unwrap_or(1_000_000);
                }
                (14, 8) => {
                    let (first, second) = (self.number(value.start), self.number(value.start + 4));
                    let (high, low) = match self.is_big {
                        true => (first, second),
                        false => (second, first),
                    };
                    interface.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
            at += 4 + length.next_multiple_of(4);
        }
        interface
    }

    fn u32(&self, ahead: usize) -> u32 {
        self.number(self.at + ahead)
    }

    fn number(&self, at: usize) -> u32 {
        let four = [0, 1, 2, 3].map(|n| self.buffer[at + n]);
        match self.is_big {
            true => u32::from_be_bytes(four),
            false => u32::from_le_bytes(four),
        }
    }

    /// Reads until `wanted` bytes lie at `self.at`; returns false at the end.
    fn fill(&mut self, wanted: usize) -> Result<bool> {
        if self.end - self.at >= wanted {
            return Ok(true);
        }
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted {
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.is_cut = self.end > 0;
                    return Ok(false);
                }
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context(|| "failed to read the capture"),
            }
        }
        Ok(true)
    }
}

fn in_ns(units: u64, interface: Interface) -> i64 {
    let ns = u128::from(units) * 1_000_000_000 / u128::from(interface.per_second);
    let offset = interface.offset_s.saturating_mul(1_000_000_000);
    i64::try_from(ns).unwrap_or(i64::MAX).saturating_add(offset)
}

fn damaged() -> Error {
    Error::failed("the capture is damaged: a packet is longer than any can be")
        .hint("what came before the damage was decoded; capture again")
}
