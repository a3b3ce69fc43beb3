//! How files are packed, and unpacked.

use evenkeel_op::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use std::str::FromStr;

/// The level of zstd when none is given: the fastest that still packs well.
const ZSTD_LEVEL: i32 = 1;
/// The level of gzip when none is given.
const GZIP_LEVEL: u32 = 6;

/// How files are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip at a level from 1 to 9.
    Gzip(u32),
    /// Zstandard at a level from 1 to 19.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd(ZSTD_LEVEL)
    }
}

impl Compression {
    /// Returns the name that the manifest gives it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip(_) => "gzip",
            Self::Zstd(_) => "zstd",
        }
    }

    /// Returns how files' names end.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip(_) => ".gz",
            Self::Zstd(_) => ".zst",
        }
    }
}

impl Compression {
    /// Unpacks a file.
    pub(super) fn reader(self, file: impl Read + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::None => Box::new(file),
            Self::Gzip(_) => Box::new(MultiGzDecoder::new(file)),
            Self::Zstd(_) => Box::new(zstd::Decoder::new(file)?),
        })
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Reads `none`, `gzip`, `zstd`, `gzip:9`, `zstd:3`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is not a compression"))
                .hint("use none, gzip or zstd, with a level if you like: zstd:3")
        };
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match (name, level) {
            ("none", None) => Ok(Self::None),
            ("gzip", None) => Ok(Self::Gzip(GZIP_LEVEL)),
            ("gzip", Some(level @ 1..=9)) => Ok(Self::Gzip(level)),
            ("zstd", None) => Ok(Self::Zstd(ZSTD_LEVEL)),
            ("zstd", Some(level @ 1..=19)) => Ok(Self::Zstd(level as i32)),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_are_read() {
        for (text, compression) in [
            ("none", Compression::None),
            ("gzip", Compression::Gzip(6)),
            ("gzip:9", Compression::Gzip(9)),
            ("zstd", Compression::Zstd(1)),
            ("zstd:19", Compression::Zstd(19)),
        ] {
            assert_eq!(text.parse::<Compression>().unwrap(), compression);
        }
        for text in ["", "lz4", "none:1", "gzip:10", "zstd:0", "zstd:x"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }
}
