//! Packets of one direction, out of bytes that come as they come. Of a long payload only the beginning is kept; all of
//! it can be looked at as it passes.

/// A payload of this length continues in the next packet.
pub(super) const LONGEST: usize = 0xFF_FFFF;
/// Length of a packet's header.
pub(super) const HEADER: usize = 4;
/// A buffer that grew beyond this for a long payload is freed after it.
const KEPT: usize = 16 << 10;

/// A payload, joined where it took several packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Its beginning: all of it unless it is longer than what is kept.
    pub(super) head: &'a [u8],
    /// What follows that, if nobody was shown it yet.
    pub(super) tail: &'a [u8],
    /// It was shown as it passed, all of it.
    pub(super) has_passed: bool,
    /// How long it is.
    pub(super) length: u64,
    /// Bytes with all headers.
    pub(super) bytes: u64,
    /// The number of its first packet.
    pub(super) sequence: u8,
    /// When its first byte came.
    pub(super) begun_ns: i64,
}

/// Cuts bytes into packets.
#[derive(Debug)]
pub(super) struct Framer {
    keep: usize,
    header: [u8; HEADER],
    /// Bytes of the header that are there.
    have: usize,
    /// Bytes of the packet that are still to come.
    left: usize,
    /// The header is complete, or an earlier part of the payload came before it.
    is_inside: bool,
    /// Another packet of the same payload follows this one.
    continues: bool,
    head: Vec<u8>,
    /// There is more than the head, and it is shown as it passes.
    passes: bool,
    length: u64,
    bytes: u64,
    sequence: u8,
    begun_ns: i64,
}

impl Framer {
    pub(super) fn new(keep: usize) -> Self {
        Self {
            keep,
            header: [0; HEADER],
            have: 0,
            left: 0,
            is_inside: false,
            continues: false,
            head: Vec::new(),
            passes: false,
            length: 0,
            bytes: 0,
            sequence: 0,
            begun_ns: 0,
        }
    }

    /// Forgets what came of a packet; the next byte is the first of one.
    pub(super) fn restart(&mut self) {
        (self.have, self.left) = (0, 0);
        (self.is_inside, self.continues) = (false, false);
    }

    /// Returns whether the next byte is the first of a payload.
    pub(super) fn is_between(&self) -> bool {
        self.have == 0 && !self.is_inside
    }

    /// Takes bytes off `rest` until a payload is complete. One that is longer than what is kept, and comes in pieces,
    /// is shown to `passes` from its first byte.
    pub(super) fn next<'a, 'b: 'a>(
        &'a mut self,
        rest: &mut &'b [u8],
        at_ns: i64,
        passes: &mut dyn FnMut(&[u8]),
    ) -> Option<Packet<'a>> {
        if self.is_between()
            && let Some((header, after)) = rest.split_first_chunk::<HEADER>()
        {
            let length = length_of(*header);
            if length < LONGEST && length <= after.len() {
                let (payload, after) = after.split_at(length);
                *rest = after;
                let (head, tail) = payload.split_at(length.min(self.keep));
                return Some(Packet {
                    head,
                    tail,
                    has_passed: false,
                    length: length as u64,
                    bytes: (HEADER + length) as u64,
                    sequence: header[3],
                    begun_ns: at_ns,
                });
            }
        }
        self.gather(rest, at_ns, passes).then_some(Packet {
            head: &self.head,
            tail: &[],
            has_passed: self.passes,
            length: self.length,
            bytes: self.bytes,
            sequence: self.sequence,
            begun_ns: self.begun_ns,
        })
    }

    /// The same for what came in several pieces; returns whether it is complete.
    fn gather(&mut self, rest: &mut &[u8], at_ns: i64, passes: &mut dyn FnMut(&[u8])) -> bool {
        while !rest.is_empty() || (self.have == HEADER && self.left == 0) {
            if self.is_between() {
                self.begin(at_ns);
            }
            if self.have < HEADER {
                let count = rest.len().min(HEADER - self.have);
                let (taken, after) = rest.split_at(count);
                self.header[self.have..self.have + count].copy_from_slice(taken);
                self.have += count;
                *rest = after;
                if self.have == HEADER {
                    self.open();
                }
                continue;
            }
            let count = rest.len().min(self.left);
            let (taken, after) = rest.split_at(count);
            let room = self.keep.saturating_sub(self.head.len());
            let (kept, beyond) = taken.split_at(count.min(room));
            self.head.extend_from_slice(kept);
            if !beyond.is_empty() {
                if !std::mem::replace(&mut self.passes, true) {
                    passes(&self.head);
                }
                passes(beyond);
            }
            self.left -= count;
            *rest = after;
            if self.left > 0 {
                continue;
            }
            self.have = 0;
            if !self.continues {
                self.is_inside = false;
                return true;
            }
        }
        false
    }

    fn begin(&mut self, at_ns: i64) {
        self.head.clear();
        if self.head.capacity() > KEPT {
            self.head = Vec::new();
        }
        (self.length, self.bytes, self.begun_ns) = (0, 0, at_ns);
        self.passes = false;
    }

    fn open(&mut self) {
        let length = length_of(self.header);
        if !self.is_inside {
            self.sequence = self.header[3];
        }
        self.is_inside = true;
        self.continues = length == LONGEST;
        self.left = length;
        self.length += length as u64;
        self.bytes += (HEADER + length) as u64;
    }
}

/// Returns the length that a header gives.
pub(super) fn length_of(header: [u8; HEADER]) -> usize {
    usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lengths(framer: &mut Framer, pieces: &[&[u8]]) -> Vec<(u64, u8, Vec<u8>)> {
        let mut found = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(packet) = framer.next(&mut rest, 0, &mut |_| {}) {
                found.push((packet.length, packet.sequence, packet.head.to_vec()));
            }
        }
        found
    }

    #[test]
    fn long_payloads_are_joined_and_cut() {
        for extra in [0, 3] {
            let mut bytes = vec![0xFF, 0xFF, 0xFF, 0];
            bytes.resize(HEADER + LONGEST, 7);
            bytes.extend_from_slice(&[extra, 0, 0, 1]);
            bytes.extend(vec![8; usize::from(extra)]);
            bytes.extend_from_slice(&[1, 0, 0, 2, 9]);
            let (first, second) = bytes.split_at(100_000);
            let found = lengths(&mut Framer::new(10), &[first, second]);
            let length = LONGEST as u64 + u64::from(extra);
            assert_eq!(found, [(length, 0, vec![7; 10]), (1, 2, vec![9])]);
        }
    }

    proptest! {
        #[test]
        fn long_payloads_pass_from_their_first_byte(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..10),
            step in 1usize..300,
        ) {
            let mut bytes = Vec::new();
            for payload in &payloads {
                bytes.extend_from_slice(&[payload.len() as u8, 0, 0, 5]);
                bytes.extend_from_slice(payload);
            }
            let (mut framer, mut found, mut passed) = (Framer::new(20), Vec::new(), Vec::new());
            for piece in bytes.chunks(step) {
                let mut rest = piece;
                while let Some(packet) = framer.next(&mut rest, 0, &mut |bytes| passed.extend_from_slice(bytes)) {
                    found.push(match packet.has_passed {
                        true => std::mem::take(&mut passed),
                        false => [packet.head, packet.tail].concat(),
                    });
                }
            }
            prop_assert_eq!(found, payloads);
        }

        #[test]
        fn cuts_change_nothing(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..30),
            cuts in proptest::collection::vec(0usize..900, 0..20),
        ) {
            let mut bytes = Vec::new();
            for payload in &payloads {
                bytes.extend_from_slice(&[payload.len() as u8, 0, 0, 5]);
                bytes.extend_from_slice(payload);
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let found = lengths(&mut Framer::new(20), &pieces);
            let expected: Vec<_> = payloads
                .iter()
                .map(|p| (p.len() as u64, 5, p[..p.len().min(20)].to_vec()))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
