//! Times and numbers as the logs write them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SECOND: i64 = 1_000_000_000;

/// Reads `2026-11-28T08:17:20.994310Z`, also with an offset.
pub(super) fn iso(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    // At most the year and what is between it and the time are looked at twice.
    (text.as_bytes().get(10) == Some(&b'T')).then_some(())?;
    let time: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// Reads `261128  8:17:13`, a time of the server's zone.
pub(super) fn short(text: &[u8], zone: &TimeZone) -> Option<i64> {
    let (date, time) = (text.get(..6)?, text.get(6..)?);
    time.starts_with(b" ").then_some(())?;
    let two = |at: usize| number(&date[at..at + 2]).and_then(|n| i8::try_from(n).ok());
    let mut parts = time.trim_ascii().split(|byte| *byte == b':');
    let mut part = || number(parts.next()?).and_then(|n| i8::try_from(n).ok());
    let (hour, minute, second) = (part()?, part()?, part()?);
    let year = 2000 + i16::from(two(0)?);
    let civil = DateTime::new(year, two(2)?, two(4)?, hour, minute, second, 0).ok()?;
    let time = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// Whether a text is made of what times are made of, though it may be none.
pub(super) fn is_like_one(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"-:.+TZ ".contains(byte);
    text.len() >= "261128  8:17:13".len() && text.iter().all(is_part)
}

/// Reads digits, and nothing else.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

/// Reads `0.000125` as nanoseconds.
pub(super) fn seconds(text: &[u8]) -> Option<i64> {
    let point = memchr::memchr(b'.', text);
    let whole = i64::try_from(number(&text[..point.unwrap_or(text.len())])?).ok()?;
    let part = match point.map(|at| &text[at + 1..]) {
        None => 0,
        Some(digits) => {
            let digits = &digits[..digits.len().min(9)];
            let scale = 10_i64.pow(9 - u32::try_from(digits.len()).ok()?);
            i64::try_from(number(digits)?).ok()? * scale
        }
    };
    whole.checked_mul(SECOND)?.checked_add(part)
}
