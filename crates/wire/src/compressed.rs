//! The compressed protocol: each packet has seven bytes of header, and zlib's stream or the bytes as they are.
//! What is in it, put together, is the stream of packets that there would be without it.

use crate::packet::broken;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, Read, Write};

/// Three bytes of length, one that counts, three of the length before compression: 0 where nothing is compressed.
const HEADER: usize = 7;
/// The longest that either length can say.
const LONGEST: usize = 0xFF_FFFF;

/// A stream whose other side compresses. What is sent goes as it is: commands are short.
#[derive(Debug)]
pub(crate) struct Compressed<S> {
    stream: S,
    /// The packet that is on its way, of which `have` bytes are here.
    arriving: Vec<u8>,
    have: usize,
    /// What was in the packet before, read up to `at`.
    plain: Vec<u8>,
    at: usize,
    /// The number of the next packet that is sent.
    sequence: u8,
    inflate: Decompress,
}

impl<S> Compressed<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            arriving: Vec::new(),
            have: 0,
            plain: Vec::new(),
            at: 0,
            sequence: 0,
            inflate: Decompress::new(true),
        }
    }

    /// Returns the stream beneath.
    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the stream beneath, to look at.
    pub(crate) fn beneath(&self) -> &S {
        &self.stream
    }

    /// Begins a new exchange: its first packet has number 0.
    pub(crate) fn restart(&mut self) {
        self.sequence = 0;
    }

    /// Returns how long the packet is, as far as that is known.
    fn wanted(&self) -> usize {
        match self.have < HEADER {
            true => HEADER,
            false => HEADER + number(&self.arriving[..3]),
        }
    }

    fn unpack(&mut self) -> io::Result<()> {
        let (header, body) = self.arriving[..self.have].split_at(HEADER);
        self.sequence = header[3].wrapping_add(1);
        self.have = 0;
        self.at = 0;
        self.plain.clear();
        let length = number(&header[4..]);
        if length == 0 {
            self.plain.extend_from_slice(body);
            return Ok(());
        }
        self.plain.resize(length, 0);
        self.inflate.reset(true);
        let end = self
            .inflate
            .decompress(body, &mut self.plain, FlushDecompress::Finish);
        let is_whole = matches!(end, Ok(Status::StreamEnd))
            && self.inflate.total_out() == length as u64
            && self.inflate.total_in() == body.len() as u64;
        match is_whole {
            true => Ok(()),
            false => {
                self.plain.clear();
                Err(broken("a compressed packet cannot be decompressed"))
            }
        }
    }
}

impl<S: Read> Compressed<S> {
    /// Reads the next packet; false at the stream's end. Where the stream has nothing for now, the next call
    /// continues with what is here.
    fn arrive(&mut self) -> io::Result<bool> {
        loop {
            let wanted = self.wanted();
            if self.have == wanted {
                return self.unpack().map(|()| true);
            }
            if self.arriving.len() < wanted {
                self.arriving.resize(wanted, 0);
            }
            match self.stream.read(&mut self.arriving[self.have..wanted])? {
                0 if self.have == 0 => return Ok(false),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.have += read,
            }
        }
    }
}

impl<S: Read> Read for Compressed<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.plain.len() && !into.is_empty() {
            if !self.arrive()? {
                return Ok(0);
            }
        }
        let count = into.len().min(self.plain.len() - self.at);
        into[..count].copy_from_slice(&self.plain[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl<S: Write> Write for Compressed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        if bytes.is_empty() {
            return Ok(0);
        }
        let [low, middle, high, _] = (bytes.len() as u32).to_le_bytes();
        let header = [low, middle, high, self.sequence, 0, 0, 0];
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&[&header[..], bytes].concat())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns the number in three bytes.
fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};
    use proptest::prelude::*;

    /// A stream that has a few bytes at a time, and nothing for now in between.
    struct Drops<'a> {
        bytes: &'a [u8],
        step: usize,
        rests: bool,
    }

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.rests = !self.rests;
            if self.rests {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let count = into.len().min(self.step).min(self.bytes.len());
            into[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    fn drops(bytes: &[u8], step: usize) -> Compressed<Drops<'_>> {
        Compressed::new(Drops {
            bytes,
            step,
            rests: false,
        })
    }

    /// Reads to the end, or to an error that is no rest.
    fn read_all(stream: &mut Compressed<Drops<'_>>, piece: usize) -> io::Result<Vec<u8>> {
        let (mut all, mut into) = (Vec::new(), vec![0; piece]);
        loop {
            match stream.read(&mut into) {
                Ok(0) => return Ok(all),
                Ok(read) => all.extend_from_slice(&into[..read]),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn packet(bytes: &[u8], deflated: bool) -> Vec<u8> {
        let mut body = Vec::with_capacity(bytes.len() * 2 + 100);
        let mut plain = 0;
        if deflated {
            let mut compress = Compress::new(Compression::fast(), true);
            let end = compress.compress_vec(bytes, &mut body, FlushCompress::Finish);
            assert_eq!(end.unwrap(), Status::StreamEnd);
            plain = bytes.len() as u32;
        } else {
            body.extend_from_slice(bytes);
        }
        let length = (body.len() as u32).to_le_bytes();
        [&length[..3], &[0], &plain.to_le_bytes()[..3], &body].concat()
    }

    #[test]
    fn the_longest_packet_is_read() {
        let bytes: Vec<u8> = (0..LONGEST).map(|n| (n / 7) as u8).collect();
        let sent = [packet(&bytes, true), packet(b"end", false)].concat();
        let read = read_all(&mut drops(&sent, usize::MAX), 1 << 16).unwrap();
        assert!(read == [&bytes[..], b"end"].concat());
    }

    #[test]
    fn what_is_no_packet_is_an_error() {
        let whole = packet(&[7; 1000], true);
        let cut = read_all(&mut drops(&whole[..whole.len() - 1], 9), 64);
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        // More is in it than it says, and less.
        for plain in [999u32, 1001] {
            let mut wrong = whole.clone();
            wrong[4..7].copy_from_slice(&plain.to_le_bytes()[..3]);
            let error = read_all(&mut drops(&wrong, 9), 64).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{plain}");
        }
    }

    #[test]
    fn what_is_sent_says_that_it_is_not_compressed() {
        let mut stream = Compressed::new(Vec::new());
        stream.write_all(b"abc").unwrap();
        stream.write_all(b"d").unwrap();
        stream.restart();
        stream.write_all(b"e").unwrap();
        let sent = [
            &b"\x03\0\0\0\0\0\0abc"[..],
            b"\x01\0\0\x01\0\0\0d",
            b"\x01\0\0\0\0\0\0e",
        ];
        assert_eq!(stream.stream, sent.concat());
    }

    proptest! {
        #[test]
        fn what_was_sent_is_read(
            packets in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 1..3000), any::<bool>()), 0..20),
            step in 1usize..5000,
            piece in 1usize..5000,
        ) {
            let (mut sent, mut all) = (Vec::new(), Vec::new());
            for (bytes, deflated) in packets {
                sent.extend(packet(&bytes, deflated));
                all.extend(bytes);
            }
            prop_assert_eq!(read_all(&mut drops(&sent, step), piece).unwrap(), all);
        }

        #[test]
        fn any_bytes_end_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000),
            step in 1usize..100,
        ) {
            let _ = read_all(&mut drops(&bytes, step), 100);
        }
    }
}
