//! Values that are more than a word.

use evenkeel_op::Error;
use evenkeel_repository::Recipient;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A word that is never shown again.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// `ID=DIR`: where a root of the backed-up server is to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedRoot {
    /// The root's name in the generation: `data`, `redo`, `undo`, …
    pub id: String,
    /// The directory on this host.
    pub dir: PathBuf,
}

impl FromStr for MappedRoot {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((id, dir)) if !id.is_empty() && !dir.is_empty() => Ok(Self {
                id: id.to_owned(),
                dir: PathBuf::from(dir),
            }),
            _ => Err(Error::usage(format!("'{text}' is not of the form ID=DIR"))
                .hint("write it like redo=/fast/redo")
                .hint("'evenkeel generations REPOSITORY N' names the roots")),
        }
    }
}

/// Parses a size in bytes: `64M`, `1.5G`.
pub fn size(text: &str) -> Result<u64, Error> {
    evenkeel_op::units::parse_bytes(text)
}

/// Parses a span of time: `500ms`, `30s`, `10m`.
pub fn span(text: &str) -> Result<Duration, Error> {
    evenkeel_op::units::parse_duration(text)
}

/// Parses an age after which something is removed. A number alone would be seconds, which nobody means.
pub fn age(text: &str) -> Result<Duration, Error> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(Error::usage(format!("'{text}' has no unit"))
            .hint(format!("give one: {text}d for days, {text}h for hours"))),
        Err(_) => span(text),
    }
}

/// Parses the number of a generation.
pub fn generation(text: &str) -> Result<u32, Error> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        Error::usage(format!("'{text}' is not a generation"))
            .hint("generations are numbered from 1; 'evenkeel generations REPOSITORY' lists them")
    })
}

/// How much of something: a share of it, or an amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// A share, 0 to 1.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

/// Parses a share, `5` or `2.5%`, or a size in bytes, `10G`.
pub fn amount(text: &str) -> Result<Amount, Error> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(Amount::Share(share / 100.0)),
        Ok(_) => Err(
            Error::usage(format!("'{text}' is not a percentage or a size"))
                .hint("write a percentage from 0 to 100, or a size with its unit: 10G"),
        ),
        Err(_) => size(text).map(Amount::Bytes),
    }
}

/// One of several equal parts: `3/30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which, from 1.
    pub part: u32,
    /// How many there are.
    pub of: u32,
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let both = text.split_once('/');
        let both = both.and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match both {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err(Error::usage(format!("'{text}' is not of the form K/N"))
                .hint("write it like 3/30 for the third of thirty parts")),
        }
    }
}

/// Parses a share between 0 and 100, with or without `%`.
pub fn percent(text: &str) -> Result<u8, String> {
    match text.trim_end_matches('%').parse() {
        Ok(share) if share <= 100 => Ok(share),
        _ => Err("write a whole number from 0 to 100".to_owned()),
    }
}

/// Parses the public key of an age identity.
pub fn recipient(text: &str) -> Result<Recipient, Error> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show() {
        assert_eq!(format!("{:?}", Hidden("x".into())), "***");
    }

    #[test]
    fn roots_need_both_sides() {
        let root: MappedRoot = "redo=/fast/a=b".parse().unwrap();
        assert_eq!(
            (root.id.as_str(), root.dir.to_str()),
            ("redo", Some("/fast/a=b"))
        );
        assert!("redo".parse::<MappedRoot>().is_err());
        assert!("=x".parse::<MappedRoot>().is_err());
    }

    #[test]
    fn amounts_are_shares_or_sizes() {
        assert_eq!(amount("5").unwrap(), Amount::Share(0.05));
        assert_eq!(amount("2.5%").unwrap(), Amount::Share(0.025));
        assert_eq!(amount("1K").unwrap(), Amount::Bytes(1024));
        assert!(amount("101%").is_err());
        let third: Part = "3/30".parse().unwrap();
        assert_eq!(third, Part { part: 3, of: 30 });
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn generations_begin_with_one() {
        assert_eq!(generation("1").unwrap(), 1);
        for wrong in ["0", "-1", "latest", "4294967296"] {
            assert!(generation(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_end_at_a_hundred() {
        assert_eq!(percent("50%"), Ok(50));
        assert!(percent("101").is_err());
    }
}
