//! What has been coded of a string so far, as the contexts that the next byte is guessed from.
//!
//! Everything here depends on earlier bytes only, and on them alone: the decoder has them too, and
//! order rests on it.

/// Where in a URL the next byte lies: before the host, host, path, query, fragment.
pub(crate) const PARTS: usize = 5;
const HOST: u8 = 1;
const PATH: u8 = 2;
const QUERY: u8 = 3;
const FRAGMENT: u8 = 4;

/// Kinds of contexts, by number: what [`History::key`] takes.
pub(crate) const KINDS: usize = 14;

/// For each kind, the one that is tried when this one knows nothing: what it has to improve on.
pub(crate) const BELOW: [usize; KINDS] = [0, 0, 1, 2, 3, 4, 5, 6, 2, 8, 3, 1, 3, 3];

/// Kinds 1..=6 are the last 1..=6 bytes.
pub(crate) const ORDERS: std::ops::RangeInclusive<usize> = 1..=6;

const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn fold(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte))
        .wrapping_add(1)
        .wrapping_mul(0x2F0B_4C47)
        .rotate_left(11)
}

/// The past of a string.
#[derive(Debug, Clone)]
pub(crate) struct History {
    last: u64,
    part: u8,
    /// The alphanumeric word that goes on, its separator first, and the one before it.
    word: u32,
    word_before: u32,
    /// What the host was, or is so far.
    host: u32,
    /// What came since the last `/`, `?`, `&`, `=`, `#`, and what lay before that.
    segment: u32,
    segment_before: u32,
    segments: u8,
    /// Sorts of the last bytes, four bits each.
    shape: u64,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            last: 0,
            part: 0,
            word: 0,
            word_before: 0,
            host: 0,
            segment: 0,
            segment_before: 0,
            segments: 0,
            shape: 0,
        }
    }

    /// The part of the URL.
    #[inline]
    pub(crate) fn part(&self) -> usize {
        usize::from(self.part)
    }

    /// The last byte.
    #[inline]
    pub(crate) fn last(&self) -> u8 {
        self.last as u8
    }

    /// Takes the next byte in.
    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        let slashes = self.last as u8 == b'/' && byte == b'/';
        self.last = self.last << 8 | u64::from(byte);
        let sort = sort(byte);
        self.shape = self.shape << 4 | u64::from(sort);
        if sort <= 4 {
            self.word = fold(self.word, byte);
        } else {
            self.word_before = self.word;
            self.word = fold(0, byte);
        }
        match (self.part, byte) {
            (0, b'/') if slashes => self.part = HOST,
            (HOST, b'/') => self.enter(PATH),
            (HOST | PATH, b'?') => self.enter(QUERY),
            (HOST..=QUERY, b'#') => self.enter(FRAGMENT),
            (HOST, _) => self.host = fold(self.host, byte),
            (PATH, b'/') | (QUERY, b'&' | b'=' | b';') => self.cut(byte),
            _ => self.segment = fold(self.segment, byte),
        }
    }

    #[inline]
    fn enter(&mut self, part: u8) {
        self.part = part;
        self.cut(part);
    }

    #[inline]
    fn cut(&mut self, byte: u8) {
        self.segment_before = self.segment;
        self.segment = fold(0, byte);
        self.segments = self.segments.saturating_add(1);
    }

    /// The context of a kind, hashed: bits 9 and up are spread, those below are zero.
    #[inline]
    pub(crate) fn key(&self, kind: usize) -> u64 {
        let part = u64::from(self.part);
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        let value = match kind {
            0 => part,
            1 => (self.last & 0xFF) | part << 8,
            2..=6 => self.last & ((1 << (8 * kind)) - 1),
            7 => self.last,
            8 => pair(self.word, u32::from(self.part)),
            9 => pair(self.word, self.word_before),
            10 => pair(self.host, self.segment),
            11 => self.shape & 0xFFFF_FFFF | part << 32,
            12 => pair(self.segment, self.segment_before),
            _ => pair(
                self.host,
                fold(u32::from(self.segments), sort(self.last as u8))
                    ^ (self.last as u32 & 0xFF) << 16,
            ),
        };
        let mut hash = (value ^ (kind as u64) << 57).wrapping_mul(SPREAD);
        hash ^= hash >> 32;
        hash = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (hash ^ hash >> 29) & !0x1FF
    }
}

/// What sort of byte it is; up to 4 those of words.
#[inline]
fn sort(byte: u8) -> u8 {
    match byte {
        b'a' | b'e' | b'i' | b'o' | b'u' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        b'0'..=b'9' => 4,
        b'/' => 5,
        b'.' => 6,
        b'-' => 7,
        b'_' => 8,
        b'%' => 9,
        b'?' | b'#' => 10,
        b'=' => 11,
        b'&' | b';' => 12,
        0x80.. => 13,
        _ => 14,
    }
}
