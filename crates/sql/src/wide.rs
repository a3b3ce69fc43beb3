//! Character sets of which a character's second byte may look like a quote, a backslash or a delimiter.

/// How bytes beyond ASCII make characters, as far as it matters for what the ASCII among them is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wide {
    /// Every byte below 128 stands for itself: UTF-8, latin1 and most others.
    #[default]
    No,
    /// gbk, and gb18030, whose characters of four bytes have digits in them and nothing else.
    Gbk,
    /// big5
    Big5,
    /// sjis and cp932.
    Sjis,
}

impl Wide {
    /// Returns what a character set is, as the server calls it.
    #[must_use]
    pub fn of(character_set: &str) -> Self {
        match character_set {
            "gbk" | "gb18030" => Self::Gbk,
            "big5" => Self::Big5,
            "sjis" | "cp932" => Self::Sjis,
            _ => Self::No,
        }
    }

    /// Returns what the character set of a collation is, by the collation's number.
    #[must_use]
    pub const fn of_collation(collation: u8) -> Self {
        match collation {
            1 | 84 => Self::Big5,
            13 | 88 | 95 | 96 => Self::Sjis,
            28 | 87 | 248..=250 => Self::Gbk,
            _ => Self::No,
        }
    }

    /// Returns whether a byte may be the first of two.
    #[must_use]
    pub const fn is_first(self, byte: u8) -> bool {
        match self {
            Self::No => false,
            Self::Gbk => matches!(byte, 0x81..=0xFE),
            Self::Big5 => matches!(byte, 0xA1..=0xF9),
            Self::Sjis => matches!(byte, 0x81..=0x9F | 0xE0..=0xFC),
        }
    }

    /// Returns whether a character of two bytes begins here.
    #[must_use]
    pub fn is_pair(self, rest: &[u8]) -> bool {
        let [first, second, ..] = rest else {
            return false;
        };
        let is_second = match self {
            Self::No => return false,
            Self::Gbk => matches!(second, 0x40..=0x7E | 0x80..=0xFE),
            Self::Big5 => matches!(second, 0x40..=0x7E | 0xA1..=0xFE),
            Self::Sjis => matches!(second, 0x40..=0x7E | 0x80..=0xFC),
        };
        is_second && self.is_first(*first)
    }
}
