//! Packets out of compressed ones: seven bytes of header, and zlib or zstd, or the bytes as they are.

use flate2::{Decompress, FlushDecompress, Status};
use std::fmt;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Three bytes of length, one that counts, three of the length before compression.
pub(super) const HEADER: usize = 7;
/// What is inflated at a time.
const STEP: usize = 16 << 10;
/// Most packets hold less than this.
const SMALL: usize = 1 << 10;
/// The window that a zstd frame may ask for, as a power of two: a packet has at most 16 MiB.
const WINDOW: u32 = 24;

/// How both sides compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Zlib,
    Zstd,
    /// The first compressed packet tells.
    Unknown,
}

enum Engine {
    None,
    Zlib(Decompress),
    Zstd(Box<Decoder<'static>>),
}

/// Takes one direction's compressed packets apart.
pub(super) struct Inflate {
    method: Method,
    /// Kept from packet to packet: a new one costs more than most packets.
    engine: Engine,
    /// The engine has seen nothing of this packet.
    is_fresh: bool,
    header: [u8; HEADER],
    have: usize,
    left: usize,
    /// How much more the packet may hold.
    plain_left: usize,
    /// The packet is as it was.
    is_plain: bool,
}

impl Default for Inflate {
    fn default() -> Self {
        Self::new(Method::Unknown)
    }
}

impl fmt::Debug for Inflate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflate")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Inflate {
    pub(super) fn new(method: Method) -> Self {
        Self {
            method,
            engine: Engine::None,
            is_fresh: false,
            header: [0; HEADER],
            have: 0,
            left: 0,
            plain_left: 0,
            is_plain: false,
        }
    }

    /// The next byte is the first of a packet.
    pub(super) fn restart(&mut self) {
        (self.have, self.left) = (0, 0);
    }

    /// Takes bytes and gives what they hold to `each`; returns false where they hold nothing sensible.
    pub(super) fn take(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.have < HEADER {
                let count = rest.len().min(HEADER - self.have);
                let (taken, after) = rest.split_at(count);
                self.header[self.have..self.have + count].copy_from_slice(taken);
                self.have += count;
                rest = after;
                if self.have == HEADER {
                    let [l0, l1, l2, _, p0, p1, p2] = self.header;
                    self.left = usize::from(l0) | usize::from(l1) << 8 | usize::from(l2) << 16;
                    self.plain_left =
                        usize::from(p0) | usize::from(p1) << 8 | usize::from(p2) << 16;
                    self.is_plain = self.plain_left == 0;
                    self.is_fresh = true;
                    if self.left == 0 {
                        self.have = 0;
                    }
                }
                continue;
            }
            let (taken, after) = rest.split_at(rest.len().min(self.left));
            rest = after;
            self.left -= taken.len();
            if self.left == 0 {
                self.have = 0;
            }
            if self.is_plain {
                each(taken);
            } else if !self.inflate(taken, each) {
                self.restart();
                return false;
            }
        }
        true
    }

    /// Readies the engine for a packet; its first byte tells which one, where that is not known.
    fn ready(&mut self, first: u8) -> bool {
        if !std::mem::take(&mut self.is_fresh) {
            return !matches!(self.engine, Engine::None);
        }
        if self.method == Method::Unknown {
            self.method = if first == 0x28 {
                Method::Zstd
            } else {
                Method::Zlib
            };
        }
        match (&mut self.engine, self.method) {
            (Engine::Zlib(engine), _) => engine.reset(true),
            (Engine::Zstd(engine), _) => return engine.reinit().is_ok(),
            (Engine::None, Method::Zstd) => {
                let Ok(mut decoder) = Decoder::new() else {
                    return false;
                };
                let limit = zstd::zstd_safe::DParameter::WindowLogMax(WINDOW);
                if decoder.set_parameter(limit).is_err() {
                    return false;
                }
                self.engine = Engine::Zstd(Box::new(decoder));
            }
            (Engine::None, _) => self.engine = Engine::Zlib(Decompress::new(true)),
        }
        true
    }

    fn inflate(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> bool {
        if !self.ready(bytes[0]) {
            return false;
        }
        let (mut small, mut large);
        let out: &mut [u8] = if self.plain_left <= SMALL {
            small = [0; SMALL];
            &mut small
        } else {
            large = [0; STEP];
            &mut large
        };
        let mut rest = bytes;
        loop {
            let (read, written, is_end) = match &mut self.engine {
                Engine::None => return false,
                Engine::Zlib(engine) => {
                    let before = (engine.total_in(), engine.total_out());
                    let Ok(status) = engine.decompress(rest, out, FlushDecompress::None) else {
                        return false;
                    };
                    (
                        (engine.total_in() - before.0) as usize,
                        (engine.total_out() - before.1) as usize,
                        status == Status::StreamEnd,
                    )
                }
                Engine::Zstd(engine) => {
                    let mut from = InBuffer::around(rest);
                    let mut to = OutBuffer::around(&mut *out);
                    let Ok(hint) = engine.run(&mut from, &mut to) else {
                        return false;
                    };
                    (from.pos(), to.pos(), hint == 0)
                }
            };
            // What holds more than it says is not of a server or a client, and may never end.
            let Some(left) = self.plain_left.checked_sub(written) else {
                return false;
            };
            self.plain_left = left;
            each(&out[..written]);
            rest = &rest[read..];
            if is_end || (rest.is_empty() && written < out.len()) || (read == 0 && written == 0) {
                return true;
            }
        }
    }
}

/// Returns whether a client's bytes are a compressed packet that holds a command.
pub(super) fn looks_compressed(bytes: &[u8]) -> bool {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return false;
    };
    let [l0, l1, l2, sequence, p0, p1, p2] = *header;
    let length = usize::from(l0) | usize::from(l1) << 8 | usize::from(l2) << 16;
    let plain = usize::from(p0) | usize::from(p1) << 8 | usize::from(p2) << 16;
    if sequence != 0 || rest.len() != length.min(rest.len()) || rest.len() < 2 {
        return false;
    }
    match plain {
        // As it is: the inner header has to fit.
        0 => super::command::looks_like_one(rest),
        _ => {
            let is_zlib =
                rest[0] == 0x78 && (usize::from(rest[0]) * 256 + usize::from(rest[1])) % 31 == 0;
            let is_zstd = rest.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]);
            plain > length && (is_zlib || is_zstd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packet(bytes: &[u8], plain: usize) -> Vec<u8> {
        let [a, b, c, _] = (bytes.len() as u32).to_le_bytes();
        let [d, e, f, _] = (plain as u32).to_le_bytes();
        [&[a, b, c, 0, d, e, f], bytes].concat()
    }

    #[test]
    fn a_packet_holds_no_more_than_it_says() {
        let zeros = zstd::bulk::compress(&vec![0; 8 << 20], 3).unwrap();
        let mut inflate = Inflate::default();
        let mut out = 0;
        assert!(!inflate.take(&packet(&zeros, 100_000), &mut |plain| out += plain.len()));
        assert!(out <= 100_000, "{out}");
    }

    #[test]
    fn all_forms_come_out() {
        let text: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| (n / 9).to_le_bytes())
            .collect();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        let zstd = zstd::bulk::compress(&text, 3).unwrap();
        for compressed in [
            packet(&zlib, text.len()),
            packet(&zstd, text.len()),
            packet(&text, 0),
        ] {
            let twice = [&compressed[..], &compressed[..]].concat();
            for step in [1, 7, 1000, twice.len()] {
                let mut inflate = Inflate::default();
                let mut out = Vec::new();
                for piece in twice.chunks(step) {
                    assert!(inflate.take(piece, &mut |plain| out.extend_from_slice(plain)));
                }
                assert!(out == [&text[..], &text[..]].concat(), "{step}");
            }
        }
    }

    #[test]
    fn nonsense_is_reported() {
        let mut inflate = Inflate::default();
        assert!(!inflate.take(&packet(b"not compressed at all", 100), &mut |_| {}));
    }
}
