//! Numbers as people write and read them: sizes, rates, durations.

use crate::{Error, Result};
use std::fmt::Display;
use std::time::Duration;

/// Returns `bytes` in binary units with one decimal: `"1.5 GiB"`, `"312 B"`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const NAMES: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would print as "1024.0": step up before it does.
    while value >= 1023.95 && unit + 1 < NAMES.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", NAMES[unit])
}

/// Returns a number and what is counted, in the singular for one: `"1 file"`, `"2 files"`. Only for words
/// whose plural is an `s` more.
#[must_use]
pub fn count(count: impl Display, what: &str) -> String {
    let number = count.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Returns a duration in the unit a person would use: `"430 ms"`, `"12.3 s"`, `"4 m 10 s"`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.01 {
        format!("{:.1} ms", seconds * 1000.0)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else if seconds < 3600.0 {
        format!(
            "{} m {} s",
            duration.as_secs() / 60,
            duration.as_secs() % 60
        )
    } else {
        format!(
            "{} h {} m",
            duration.as_secs() / 3600,
            duration.as_secs() / 60 % 60
        )
    }
}

/// Returns a span of time as people set one: `"500 ms"`, `"1 s"`, `"30 m"`, `"1 d"`.
#[must_use]
pub fn span(span: Duration) -> String {
    let ms = span.as_millis();
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
    ];
    let whole = units
        .into_iter()
        .find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ms"));
    format!("{} {name}", ms / unit)
}

/// Parses a size: a number, then nothing or K, M, G, T (binary, as the MySQL programs read them),
/// optionally followed by `B` or `iB`.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let bad = || Error::usage(format!("'{text}' is not a size")).hint("write it like 64M or 1.5G");
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let number: f64 = trimmed[..digits].parse().map_err(|_| bad())?;
    let unit = trimmed[digits..].trim().to_ascii_uppercase();
    let unit = unit
        .strip_suffix("IB")
        .or_else(|| unit.strip_suffix('B'))
        .unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(bad()),
    };
    let value = number * (1u64 << shift) as f64;
    if value > u64::MAX as f64 {
        return Err(bad());
    }
    Ok(value as u64)
}

/// The longest duration: what is longer cannot be added to every time.
const LONGEST_S: f64 = 36_500.0 * 86_400.0;

/// Parses a duration: a number, then `ms`, `s` (or nothing), `m`, `h` or `d`.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let bad = || {
        Error::usage(format!("'{text}' is not a duration"))
            .hint("write it like 500ms, 30s, 10m, 2h or 7d")
    };
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let number: f64 = trimmed[..digits].parse().map_err(|_| bad())?;
    let seconds = match trimmed[digits..].trim() {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86400.0,
        _ => return Err(bad()),
    };
    if seconds > LONGEST_S {
        return Err(Error::usage(format!("'{text}' is too long"))
            .hint("give less than a hundred years: 36500d"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back() {
        assert_eq!(parse_bytes("64M").unwrap(), 64 << 20);
        assert_eq!(parse_bytes("1.5 GiB").unwrap(), 3 << 29);
        assert_eq!(parse_bytes("12kb").unwrap(), 12 << 10);
        assert!(parse_bytes("12Q").is_err());
        assert!(parse_bytes("").is_err());
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn one_is_singular() {
        let seen = [0, 1, 2].map(|number| count(number, "file"));
        assert_eq!(seen, ["0 files", "1 file", "2 files"]);
    }

    #[test]
    fn spans_read_as_they_were_set() {
        for (set, read) in [
            ("1s", "1 s"),
            ("90", "90 s"),
            ("30m", "30 m"),
            ("24h", "1 d"),
            ("1.5", "1500 ms"),
            ("0", "0 ms"),
        ] {
            assert_eq!(span(parse_duration(set).unwrap()), read);
        }
    }

    #[test]
    fn durations_read_back_and_well() {
        assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse_duration("10m").unwrap(), Duration::from_secs(600));
        assert!(parse_duration("ten").is_err());
        // Added to a time, it would be none.
        assert!(parse_duration("5000000000000000h").is_err());
        assert_eq!(duration(Duration::from_millis(430)), "430 ms");
        assert_eq!(duration(Duration::from_secs(250)), "4 m 10 s");
    }
}
