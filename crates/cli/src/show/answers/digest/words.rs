//! Times and texts as people read them.

use crate::show::obeyed::is_obeyed;
use evenkeel_op::units;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::Duration;

/// Writes a time of this zone.
pub(super) fn local(time: Timestamp) -> String {
    let zoned = time.to_zoned(TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Writes a time: three digits that count.
pub(in crate::show::answers) fn micros(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1000.0 => (us, "µs"),
        us if us < 1_000_000.0 => (us / 1000.0, "ms"),
        us if us < 120_000_000.0 => (us / 1_000_000.0, "s"),
        us => {
            return units::duration(Duration::try_from_secs_f64(us / 1e6).unwrap_or(Duration::MAX));
        }
    };
    match value {
        large if large >= 100.0 => format!("{large:.0} {unit}"),
        middle if middle >= 10.0 => format!("{middle:.1} {unit}"),
        small => format!("{small:.2} {unit}"),
    }
}

/// Makes one line of a text in which a terminal finds nothing to obey.
pub(in crate::show::answers) fn plain(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace(is_obeyed, "\u{fffd}")
}

/// Cuts a text.
pub(in crate::show::answers) fn short(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// Returns a time that was kept as nanoseconds since 1970, where there is one.
pub(super) fn time(ns: i64) -> Option<Timestamp> {
    match ns {
        i64::MIN | i64::MAX => None,
        ns => Timestamp::from_nanosecond(i128::from(ns)).ok(),
    }
}
