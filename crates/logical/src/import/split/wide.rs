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

    /// Returns whether a character of two bytes begins here.
    pub(crate) fn is_pair(self, rest: &[u8]) -> bool {
        let [first, second, ..] = rest else {
            return false;
        };
        match self {
            Self::No => false,
            Self::Gbk => {
                matches!(first, 0x81..=0xFE) && matches!(second, 0x40..=0x7E | 0x80..=0xFE)
            }
            Self::Big5 => {
                matches!(first, 0xA1..=0xF9) && matches!(second, 0x40..=0x7E | 0xA1..=0xFE)
            }
            Self::Sjis => {
                matches!(first, 0x81..=0x9F | 0xE0..=0xFC)
                    && matches!(second, 0x40..=0x7E | 0x80..=0xFC)
            }
        }
    }
}
