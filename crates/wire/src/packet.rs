//! Packets: three bytes of length, one that counts, the payload. A payload of 16 MiB - 1 continues
//! in the next packet.

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::Range;

/// The longest payload of one packet; one of this length continues in the next.
const LONGEST: usize = 0xFF_FFFF;
/// Length of a packet's header.
const HEADER: usize = 4;
/// The read buffer's usual size: several of a server's writes, and still in the processor's cache.
const BUFFER: usize = 256 * 1024;
/// A buffer that grew beyond this for a large packet shrinks again.
const KEPT: usize = 4 << 20;
/// The longest joined payload: MySQL's own limit for max_allowed_packet.
const LIMIT: usize = 1 << 30;

/// Packets over a stream. Read ones are slices of one buffer, valid until the next is read.
#[derive(Debug)]
pub struct Packets<S> {
    stream: S,
    buffer: Vec<u8>,
    /// What was read and not taken yet is `buffer[at..end]`.
    at: usize,
    end: usize,
    /// The number that the next packet must have, in either direction.
    sequence: u8,
    /// Whether packets that have another number are refused.
    numbered: bool,
    limit: usize,
    /// A packet that was read and not taken yet.
    peeked: Option<Range<usize>>,
    /// A packet that is read in pieces.
    long: Option<Long>,
}

/// What is still to come of a packet that is read in pieces.
#[derive(Debug)]
struct Long {
    /// Bytes of the part that is being read.
    left: usize,
    /// Another part follows it.
    continues: bool,
    /// Bytes of all parts so far.
    sum: usize,
}

impl<S> Packets<S> {
    /// Starts on a stream at the beginning of a packet.
    pub fn new(stream: S) -> Self {
        Self::with_limit(stream, LIMIT)
    }

    /// Starts on a stream; joined payloads of more than `limit` bytes are errors.
    pub fn with_limit(stream: S, limit: usize) -> Self {
        Self {
            stream,
            buffer: vec![0; BUFFER.min(limit.max(64))],
            at: 0,
            end: 0,
            sequence: 0,
            numbered: true,
            limit,
            peeked: None,
            long: None,
        }
    }

    /// Returns the stream beneath.
    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the stream beneath, to look at.
    pub(crate) fn stream_ref(&self) -> &S {
        &self.stream
    }

    /// Returns whether everything that came was read.
    pub(crate) fn is_drained(&self) -> bool {
        self.at == self.end && self.peeked.is_none() && self.long.is_none()
    }

    /// Puts another stream in the place of this one, at the same packet: TLS or compression begins.
    ///
    /// Errors: `InvalidData` when the peer has sent more than it may by now. Bytes that came before
    /// the encryption must not pass for encrypted ones.
    pub(crate) fn upgrade<T>(
        self,
        wrap: impl FnOnce(S) -> io::Result<T>,
    ) -> io::Result<Packets<T>> {
        if self.at != self.end {
            return Err(broken("the server sent data out of turn"));
        }
        Ok(Packets {
            stream: wrap(self.stream)?,
            buffer: self.buffer,
            at: 0,
            end: 0,
            sequence: self.sequence,
            numbered: self.numbered,
            limit: self.limit,
            peeked: None,
            long: None,
        })
    }

    /// Returns the stream, at the beginning of a packet.
    ///
    /// Errors: `InvalidData` when the peer has sent more than it may by now.
    pub(crate) fn into_stream(self) -> io::Result<S> {
        let mut stream = None;
        self.upgrade(|own| {
            stream = Some(own);
            Ok(())
        })?;
        stream.ok_or_else(|| broken("there is no stream"))
    }

    /// Returns the packet that was peeked at.
    pub(crate) fn peeked(&self) -> Option<&[u8]> {
        self.peeked.clone().map(|range| &self.buffer[range])
    }

    /// Takes the packet that was peeked at.
    pub(crate) fn take_peeked(&mut self) -> Option<&[u8]> {
        self.peeked.take().map(|range| &self.buffer[range])
    }

    /// Returns whether a packet is being read in pieces.
    pub(crate) fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// Returns a piece that [`Packets::more`] has read.
    pub(crate) fn piece(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Takes packets whatever their numbers are: those within compressed ones are numbered as it comes.
    pub(crate) fn ignore_numbers(&mut self) {
        self.numbered = false;
    }

    /// Begins a new exchange: its first packet has number 0.
    pub(crate) fn restart(&mut self) {
        self.sequence = 0;
    }
}

impl<S: Read> Packets<S> {
    /// Reads the next packet, joined with those it continues in.
    ///
    /// Errors: the stream's own; `UnexpectedEof` at its end; `InvalidData` for a packet out of
    /// order or beyond the limit.
    #[allow(clippy::should_implement_trait)] // An iterator could not lend its buffer.
    pub fn next(&mut self) -> io::Result<&[u8]> {
        self.peek()?;
        Ok(self.take_peeked().unwrap_or_default())
    }

    /// Reads the next packet and keeps it until it is taken: whoever must decide first whether to
    /// lend it or to report an error looks at it in between.
    pub(crate) fn peek(&mut self) -> io::Result<()> {
        if self.peeked.is_none() {
            self.peeked = Some(self.read()?);
        }
        Ok(())
    }

    /// Begins to read the next packet in pieces if its payload is longer than `whole` bytes; else
    /// it stays where it is, and must be read as one.
    pub(crate) fn begin_long(&mut self, whole: usize) -> io::Result<bool> {
        if self.peeked.is_some() {
            return Ok(false);
        }
        self.fill(HEADER)?;
        let header = &self.buffer[self.at..];
        let length =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        if length <= whole {
            return Ok(false);
        }
        self.long = Some(Long {
            left: 0,
            continues: true,
            sum: 0,
        });
        Ok(true)
    }

    /// Reads on in a packet that comes in pieces; `None` at its end.
    pub(crate) fn more(&mut self) -> io::Result<Option<Range<usize>>> {
        while let Some(Long {
            left,
            continues,
            sum,
        }) = &self.long
        {
            let (left, sum) = (*left, *sum);
            if left > 0 {
                self.fill(1)?;
                let count = left.min(self.end - self.at);
                let start = self.at;
                self.at += count;
                if let Some(long) = &mut self.long {
                    long.left -= count;
                }
                return Ok(Some(start..start + count));
            }
            if !continues {
                self.long = None;
                break;
            }
            let length = self.header(0)?;
            self.at += HEADER;
            if sum + length > self.limit {
                return Err(too_long());
            }
            self.long = Some(Long {
                left: length,
                continues: length == LONGEST,
                sum: sum + length,
            });
        }
        Ok(None)
    }

    fn read(&mut self) -> io::Result<Range<usize>> {
        while self.more()?.is_some() {}
        // All offsets are from `self.at`: filling may move what lies there.
        let mut joined = self.header(0)?;
        let mut taken = HEADER + joined;
        self.fill(taken)?;
        let mut last = joined;
        while last == LONGEST {
            last = self.header(taken)?;
            if joined + last > self.limit {
                return Err(too_long());
            }
            self.fill(taken + HEADER + last)?;
            let from = self.at + taken + HEADER;
            // Over the header, so that the payload is in one piece.
            self.buffer
                .copy_within(from..from + last, self.at + HEADER + joined);
            joined += last;
            taken += HEADER + last;
        }
        let start = self.at + HEADER;
        self.at += taken;
        Ok(start..start + joined)
    }

    /// Reads the header that lies `offset` bytes ahead and returns the length it gives.
    fn header(&mut self, offset: usize) -> io::Result<usize> {
        self.fill(offset + HEADER)?;
        let at = self.at + offset;
        let header = &self.buffer[at..at + HEADER];
        let length =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        if self.numbered && header[3] != self.sequence {
            return Err(broken("packets out of order"));
        }
        self.sequence = header[3].wrapping_add(1);
        if length > self.limit {
            return Err(too_long());
        }
        Ok(length)
    }

    /// Reads until `wanted` bytes lie at `self.at`.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.end - self.at >= wanted {
            return Ok(());
        }
        self.make_room(wanted);
        while self.end - self.at < wanted {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn make_room(&mut self, wanted: usize) {
        let held = self.end - self.at;
        if self.buffer.len() > KEPT && wanted <= BUFFER && held <= BUFFER {
            let mut small = vec![0; BUFFER];
            small[..held].copy_from_slice(&self.buffer[self.at..self.end]);
            self.buffer = small;
            (self.at, self.end) = (0, held);
        } else if self.buffer.len() - self.at < wanted || held == 0 {
            self.buffer.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, held);
        }
        if self.buffer.len() < wanted {
            // In steps of a half, or a row of many packets would be copied for each of them.
            let grown = wanted.max(self.buffer.len() * 3 / 2);
            self.buffer.resize(grown, 0);
        }
    }
}

impl<S: Write> Packets<S> {
    /// Sends a payload, in as many packets as it takes.
    pub(crate) fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        self.send_both(&[], payload)
    }

    /// Sends a payload that begins with a few bytes, and continues with as many as there are: no copy
    /// is made of the whole.
    pub(crate) fn send_both(&mut self, first: &[u8], rest: &[u8]) -> io::Result<()> {
        let (mut first, mut rest) = (first, rest);
        loop {
            let length = (first.len() + rest.len()).min(LONGEST);
            let (now, later) = rest.split_at(length - first.len());
            let [low, middle, high, _] = (length as u32).to_le_bytes();
            // In one write: the header alone would wait for an answer on TCP.
            let mut packet = Vec::with_capacity(HEADER + length);
            packet.extend_from_slice(&[low, middle, high, self.sequence]);
            packet.extend_from_slice(first);
            packet.extend_from_slice(now);
            self.sequence = self.sequence.wrapping_add(1);
            self.stream.write_all(&packet)?;
            (first, rest) = (&[], later);
            if length < LONGEST {
                return self.stream.flush();
            }
        }
    }
}

/// A packet is longer than the limit.
#[derive(Debug)]
struct PacketTooLong;

impl fmt::Display for PacketTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a packet is longer than any server may send")
    }
}

impl std::error::Error for PacketTooLong {}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, PacketTooLong)
}

/// Returns whether reading ended with a packet beyond the limit.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<PacketTooLong>())
}

/// Returns the error for bytes that no server sends.
pub(crate) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream that gives a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(self.1).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn sent(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut packets = Packets::new(Vec::new());
        for payload in payloads {
            packets.send(payload).unwrap();
        }
        packets.stream
    }

    #[test]
    fn long_payloads_are_joined() {
        for extra in [0, 1, 70_000] {
            for times in [1, 2] {
                let long: Vec<u8> = (0..LONGEST * times + extra).map(|n| n as u8).collect();
                let bytes = sent(&[vec![1], long.clone(), vec![2; 5]]);
                let mut packets = Packets::new(Drops(&bytes, usize::MAX));
                assert_eq!(packets.next().unwrap(), [1]);
                assert!(packets.next().unwrap() == long, "{extra} {times}");
                assert_eq!(packets.next().unwrap(), [2; 5]);
                assert_eq!(
                    packets.next().unwrap_err().kind(),
                    io::ErrorKind::UnexpectedEof
                );
            }
        }
    }

    #[test]
    fn long_payloads_come_in_pieces() {
        for length in [3000, LONGEST, LONGEST + 70_000, LONGEST * 2] {
            let long: Vec<u8> = (0..length).map(|n| (n / 3) as u8).collect();
            let bytes = sent(&[vec![1], long.clone(), vec![2; 5], long.clone(), vec![3]]);
            let mut packets = Packets::new(Drops(&bytes, usize::MAX));
            assert!(!packets.begin_long(2999).unwrap());
            assert_eq!(packets.next().unwrap(), [1]);
            assert!(packets.begin_long(2999).unwrap());
            let mut pieces = Vec::new();
            while let Some(range) = packets.more().unwrap() {
                pieces.extend_from_slice(packets.piece(range));
            }
            assert!(pieces == long && !packets.is_long(), "{length}");
            assert_eq!(packets.next().unwrap(), [2; 5]);
            // Given up in the middle, it is passed over.
            assert!(packets.begin_long(2999).unwrap());
            packets.more().unwrap();
            assert_eq!(packets.next().unwrap(), [3]);
            assert!(packets.buffer.len() == BUFFER);
        }
    }

    #[test]
    fn a_packet_beyond_the_limit_is_an_error_before_it_is_read() {
        let mut packets = Packets::with_limit(Drops(&[0xFF, 0xFF, 0xFF, 0], 1), 1000);
        let error = packets.next().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(packets.buffer.len() <= 1000);
    }

    #[test]
    fn a_packet_out_of_order_is_an_error() {
        let mut packets = Packets::new(Drops(&[1, 0, 0, 7, 9], 9));
        assert!(packets.next().unwrap_err().to_string().contains("order"));
    }

    #[test]
    fn a_buffer_that_grew_shrinks() {
        let bytes = sent(&[vec![7; KEPT * 2], vec![1; 10], vec![2; 10]]);
        let mut packets = Packets::new(Drops(&bytes, 100_000));
        packets.next().unwrap();
        assert!(packets.buffer.len() > KEPT);
        packets.next().unwrap();
        packets.next().unwrap();
        assert!(packets.buffer.len() <= KEPT);
    }

    proptest! {
        #[test]
        fn what_was_sent_is_read(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 0..300),
            step in 1usize..5000,
        ) {
            let bytes = sent(&payloads);
            // A small limit makes a small buffer, which has to move often.
            let mut packets = Packets::with_limit(Drops(&bytes, step), 4000);
            for payload in &payloads {
                prop_assert_eq!(packets.next().unwrap(), &payload[..]);
            }
        }

        #[test]
        fn any_bytes_end_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), step in 1usize..100) {
            let mut packets = Packets::with_limit(Drops(&bytes, step), 1 << 16);
            while packets.next().is_ok() {}
            prop_assert!(packets.buffer.len() <= (1 << 16) * 2);
        }
    }
}
