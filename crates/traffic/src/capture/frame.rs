//! From a captured packet to the part of a TCP stream that it holds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct End {
    /// The address.
    pub(super) address: IpAddr,
    /// The port.
    pub(super) port: u16,
}

/// A part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// Who sent it.
    pub(super) from: End,
    /// To whom.
    pub(super) to: End,
    /// The number of its first byte.
    pub(super) sequence: u32,
    /// The byte that is expected from the other side.
    pub(super) acknowledged: Option<u32>,
    /// The stream begins.
    pub(super) is_syn: bool,
    /// The stream ends behind this.
    pub(super) is_fin: bool,
    /// The connection is gone.
    pub(super) is_reset: bool,
    /// As many of its bytes as were captured.
    pub(super) payload: &'a [u8],
    /// Bytes behind them that were not.
    pub(super) cut: u32,
}

/// What a packet holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held<'a> {
    /// A part of a stream.
    Segment(Segment<'a>),
    /// Something else, ARP or UDP.
    Other,
    /// TCP, as far as can be seen, but not to be read: a fragment, a header that was cut.
    Unreadable,
}

const ETHERNET_VLAN: [u16; 3] = [0x8100, 0x88A8, 0x9100];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const TCP: u8 = 6;

/// Reads a packet of a link type.
#[must_use]
pub(super) fn read(link: u16, data: &[u8]) -> Held<'_> {
    match link {
        // Ethernet.
        1 => skip(data, 12).map_or(Held::Other, tagged),
        // Linux cooked.
        113 => skip(data, 14).map_or(Held::Other, tagged),
        // Linux cooked, version 2: the protocol comes first.
        276 => match (short(data, 0), skip(data, 20)) {
            (Some(kind), Some(rest)) if ETHERNET_VLAN.contains(&kind) => {
                skip(rest, 2).map_or(Held::Other, tagged)
            }
            (Some(kind), Some(rest)) => internet(kind, rest),
            _ => Held::Other,
        },
        // Null and loopback: the family in the byte order of who wrote it, or of the network.
        0 | 108 => match data {
            [2, 0, 0, 0, rest @ ..] | [0, 0, 0, 2, rest @ ..] => internet(IPV4, rest),
            [10 | 24 | 28 | 30, 0, 0, 0, rest @ ..] | [0, 0, 0, 10 | 24 | 28 | 30, rest @ ..] => {
                internet(IPV6, rest)
            }
            _ => Held::Other,
        },
        // Raw.
        12 | 14 | 101 | 228 | 229 => match data.first().map(|first| first >> 4) {
            Some(4) => internet(IPV4, data),
            Some(6) => internet(IPV6, data),
            _ => Held::Other,
        },
        _ => Held::Other,
    }
}

/// Reads what is behind a link's header, where the kernel took that away: a packet, or the rest of a VLAN's tag and
/// then a packet. Kernels do not say which; `kind` is that of the tag or, with newer ones, of the packet.
#[must_use]
pub(super) fn network(kind: u16, data: &[u8]) -> Held<'_> {
    let version = |at: usize| data.get(at).map(|first| first >> 4);
    let has_length = |at: usize, more: usize| {
        let length = short(data, at).map(|length| usize::from(length) + more);
        length.is_some_and(|length| length > more && length <= data.len())
    };
    let is_packet = match version(0) {
        Some(4) => short(data, 2).map(usize::from) == Some(data.len()),
        Some(6) => short(data, 4).map(|length| usize::from(length) + 40) == Some(data.len()),
        _ => false,
    };
    let is_tag = match (short(data, 2), version(4)) {
        (Some(IPV4), Some(4)) => has_length(6, 4),
        (Some(IPV6), Some(6)) => has_length(8, 44),
        _ => false,
    };
    match (kind, version(0)) {
        _ if is_tag && !is_packet => tagged(&data[2..]),
        (IPV4 | IPV6, _) => internet(kind, data),
        (_, Some(4)) if ETHERNET_VLAN.contains(&kind) => internet(IPV4, data),
        (_, Some(6)) if ETHERNET_VLAN.contains(&kind) => internet(IPV6, data),
        _ => Held::Other,
    }
}

/// Returns whether packets of a link type can be read.
#[must_use]
pub(super) fn is_known(link: u16) -> bool {
    matches!(link, 0 | 1 | 12 | 14 | 101 | 108 | 113 | 228 | 229 | 276)
}

fn skip(data: &[u8], count: usize) -> Option<&[u8]> {
    data.get(count..)
}

fn short(data: &[u8], at: usize) -> Option<u16> {
    let pair = data.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

fn long(data: &[u8], at: usize) -> Option<u32> {
    let four = data.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*four))
}

/// Reads what begins with its protocol's number, behind the tags of VLANs.
fn tagged(data: &[u8]) -> Held<'_> {
    let mut data = data;
    // Two tags are as many as are in use.
    for _ in 0..3 {
        let (Some(kind), Some(rest)) = (short(data, 0), skip(data, 2)) else {
            return Held::Other;
        };
        if !ETHERNET_VLAN.contains(&kind) {
            return internet(kind, rest);
        }
        match skip(rest, 2) {
            Some(rest) => data = rest,
            None => return Held::Other,
        }
    }
    Held::Other
}

fn internet(kind: u16, data: &[u8]) -> Held<'_> {
    match kind {
        IPV4 => ipv4(data).unwrap_or(Held::Unreadable),
        IPV6 => ipv6(data).unwrap_or(Held::Unreadable),
        _ => Held::Other,
    }
}

fn ipv4(data: &[u8]) -> Option<Held<'_>> {
    let header = usize::from(data.first()? & 15) * 4;
    if *data.get(9)? != TCP {
        return Some(Held::Other);
    }
    let fragment = short(data, 6)?;
    if header < 20 || fragment & 0x3FFF != 0 {
        return None;
    }
    // Segments that are cut by the network card are given length 0.
    let total = match usize::from(short(data, 2)?) {
        0 => data.len(),
        total => total,
    };
    let address = |at| long(data, at).map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
    tcp(
        (address(12)?, address(16)?),
        skip(data, header)?,
        total.checked_sub(header)?,
    )
}

fn ipv6(data: &[u8]) -> Option<Held<'_>> {
    let address = |at: usize| {
        let bytes = data.get(at..)?.first_chunk::<16>()?;
        Some(IpAddr::V6(Ipv6Addr::from(*bytes)))
    };
    let ends = (address(8)?, address(24)?);
    let mut next = *data.get(6)?;
    let mut rest = skip(data, 40)?;
    let mut length = match usize::from(short(data, 4)?) {
        0 => rest.len(),
        length => length,
    };
    // Headers that may stand between: options, routing, destination.
    for _ in 0..8 {
        match next {
            TCP => return tcp(ends, rest, length),
            0 | 43 | 60 => {
                let size = (usize::from(*rest.get(1)?) + 1) * 8;
                next = *rest.first()?;
                rest = skip(rest, size)?;
                length = length.checked_sub(size)?;
            }
            44 => return None,
            _ => return Some(Held::Other),
        }
    }
    None
}

/// Reads a segment of which `length` bytes were sent.
fn tcp(ends: (IpAddr, IpAddr), data: &[u8], length: usize) -> Option<Held<'_>> {
    let header = usize::from(*data.get(12)? >> 4) * 4;
    let flags = *data.get(13)?;
    let sent = length.checked_sub(header)?;
    // Short frames are filled up: what is behind the segment is none of it.
    let payload = match header {
        0..20 => return None,
        // The header's options may have been cut.
        _ => data.get(header..).unwrap_or(&[]),
    };
    let payload = &payload[..payload.len().min(sent)];
    Some(Held::Segment(Segment {
        from: End {
            address: ends.0,
            port: short(data, 0)?,
        },
        to: End {
            address: ends.1,
            port: short(data, 2)?,
        },
        sequence: long(data, 4)?,
        acknowledged: (flags & 0x10 != 0).then(|| long(data, 8)).flatten(),
        is_syn: flags & 0x02 != 0,
        is_fin: flags & 0x01 != 0,
        is_reset: flags & 0x04 != 0,
        payload,
        cut: (sent - payload.len()) as u32,
    }))
}
