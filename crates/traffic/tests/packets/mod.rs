//! Captures of conversations, packet by packet.

use crate::talk::Talk;
use evenkeel_wire::watch::Side;

/// A segment as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) side: Side,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const FIN: u8 = 0x01;

/// Returns the segments of a connection from its first to its last, each of at most `most` bytes. Numbers begin
/// just below where they wrap.
pub(crate) fn parts(talk: &Talk, most: usize) -> Vec<Part> {
    let mut next = [u32::MAX - 100, u32::MAX - 3000];
    let mut all = Vec::new();
    let mut add = |side: Side, flags: u8, payload: &[u8]| {
        let (own, other) = (side as usize, 1 - side as usize);
        all.push(Part {
            side,
            sequence: next[own],
            acknowledged: next[other],
            flags,
            payload: payload.to_vec(),
        });
        let control = u32::from(flags & (SYN | FIN) != 0);
        next[own] = next[own].wrapping_add(payload.len() as u32 + control);
    };
    add(Side::Client, SYN, &[]);
    add(Side::Server, SYN | ACK, &[]);
    add(Side::Client, ACK, &[]);
    for (side, bytes) in &talk.said {
        for piece in bytes.chunks(most) {
            add(*side, ACK, piece);
        }
    }
    add(Side::Client, FIN | ACK, &[]);
    add(Side::Server, FIN | ACK, &[]);
    add(Side::Client, ACK, &[]);
    all
}

/// Returns a segment as TCP over IPv4, or IPv6.
pub(crate) fn internet(part: &Part, client_port: u16, is_v6: bool) -> Vec<u8> {
    let (from, to) = match part.side {
        Side::Client => (client_port, 3306),
        Side::Server => (3306, client_port),
    };
    let mut tcp = Vec::new();
    tcp.extend_from_slice(&from.to_be_bytes());
    tcp.extend_from_slice(&to.to_be_bytes());
    tcp.extend_from_slice(&part.sequence.to_be_bytes());
    tcp.extend_from_slice(&part.acknowledged.to_be_bytes());
    // With twelve bytes of options.
    tcp.extend_from_slice(&[0x80, part.flags, 0, 0, 0, 0, 0, 0]);
    tcp.extend_from_slice(&[1; 12]);
    tcp.extend_from_slice(&part.payload);
    let ends = match part.side {
        Side::Client => [1_u8, 2],
        Side::Server => [2, 1],
    };
    let mut packet = Vec::new();
    if is_v6 {
        packet.extend_from_slice(&[0x60, 0, 0, 0]);
        packet.extend_from_slice(&(tcp.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[6, 64]);
        for end in ends {
            packet.extend_from_slice(&[0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
        }
    } else {
        packet.extend_from_slice(&[0x45, 0]);
        packet.extend_from_slice(&(20 + tcp.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        for end in ends {
            packet.extend_from_slice(&[10, 0, 0, end]);
        }
    }
    packet.extend_from_slice(&tcp);
    packet
}

/// Puts a packet into a frame of a link type.
pub(crate) fn framed(link: u16, packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 6 {
        [0x86, 0xDD]
    } else {
        [8, 0]
    };
    let before: Vec<u8> = match link {
        1 => [&[0; 12][..], &[0x81, 0, 0, 5], &kind[..]].concat(),
        113 => [&[0; 14][..], &kind[..]].concat(),
        276 => [&kind[..], &[0; 18]].concat(),
        0 => vec![if packet[0] >> 4 == 6 { 30 } else { 2 }, 0, 0, 0],
        _ => Vec::new(),
    };
    [before, packet.to_vec()].concat()
}

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) link: u16,
    pub(crate) is_big: bool,
    pub(crate) is_nano: bool,
    pub(crate) is_ng: bool,
}

/// Ethernet, as tcpdump writes it here.
pub(crate) const PLAIN: Form = Form {
    link: 1,
    is_big: false,
    is_nano: false,
    is_ng: false,
};

impl Form {
    fn four(self, number: u32) -> [u8; 4] {
        match self.is_big {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        }
    }

    fn two(self, number: u16) -> [u8; 2] {
        match self.is_big {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        }
    }

    /// Returns a file with these packets, a millisecond apart.
    pub(crate) fn file(self, packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = match self.is_ng {
            true => self.sections(),
            false => {
                let magic = if self.is_nano {
                    0xA1B2_3C4D
                } else {
                    0xA1B2_C3D4
                };
                let mut head = self.four(magic).to_vec();
                head.extend([self.two(2), self.two(4)].concat());
                for number in [0, 0, 262_144, u32::from(self.link)] {
                    head.extend_from_slice(&self.four(number));
                }
                head
            }
        };
        for (number, packet) in packets.iter().enumerate() {
            let ms = number as u64;
            let length = packet.len() as u32;
            if self.is_ng {
                let units = (1_700_000_000_000 + ms) * if self.is_nano { 1_000_000 } else { 1000 };
                let padded = packet.len().next_multiple_of(4);
                let size = 32 + padded as u32;
                for number in [
                    6,
                    size,
                    0,
                    (units >> 32) as u32,
                    units as u32,
                    length,
                    length,
                ] {
                    file.extend_from_slice(&self.four(number));
                }
                file.extend_from_slice(packet);
                file.resize(file.len() + padded - packet.len(), 0);
                file.extend_from_slice(&self.four(size));
            } else {
                let unit = if self.is_nano { 1_000_000 } else { 1000 };
                let fraction = (ms % 1000) as u32 * unit;
                let seconds = 1_700_000_000 + (ms / 1000) as u32;
                for number in [seconds, fraction, length, length] {
                    file.extend_from_slice(&self.four(number));
                }
                file.extend_from_slice(packet);
            }
        }
        file
    }

    /// Returns what a file of pcapng begins with: its section, its interface, a block that nobody knows.
    fn sections(self) -> Vec<u8> {
        let mut file = Vec::new();
        for number in [0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28] {
            file.extend_from_slice(&self.four(number));
        }
        let size = if self.is_nano { 32 } else { 20 };
        file.extend([self.four(1), self.four(size)].concat());
        file.extend([self.two(self.link), self.two(0)].concat());
        file.extend_from_slice(&self.four(0));
        if self.is_nano {
            file.extend([self.two(9), self.two(1)].concat());
            file.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
        }
        file.extend_from_slice(&self.four(size));
        for number in [0x0BAD, 12, 12] {
            file.extend_from_slice(&self.four(number));
        }
        file
    }
}
