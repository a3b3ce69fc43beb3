//! A point in time, as people type it.

use crate::archive::LogPosition;
use evenkeel_binlog::{Gtid, number_of};
use evenkeel_op::{Error, Result};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// A point in time, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// Before the first transaction that was committed in this second or a later one.
    Time(jiff::Timestamp),
    /// After this transaction.
    After(Gtid),
    /// Before this transaction.
    Before(Gtid),
    /// After the last transaction that ends here or before.
    Position(LogPosition),
}

impl Point {
    /// Reads `2026-11-20 10:41:07` (in `zone` where it names none), `gtid:0-1-23`,
    /// `before:0-1-23` or `binlog.000042:1234`.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self> {
        if let Some(gtid) = text.strip_prefix("gtid:") {
            return gtid.parse().map(Self::After);
        }
        if let Some(gtid) = text.strip_prefix("before:") {
            return gtid.parse().map(Self::Before);
        }
        if let Some((file, position)) = text.rsplit_once(':')
            && number_of(file).is_some()
            && let Ok(position) = position.parse()
        {
            let file = file.to_owned();
            return Ok(Self::Position(LogPosition { file, position }));
        }
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(Self::Time(time));
        }
        let local: DateTime = text.parse().map_err(|_| {
            Error::usage(format!("'{text}' is not a point in time"))
                .hint("a time: '2026-11-20 10:41:07', or with its zone: 2026-11-20T10:41:07Z")
                .hint("a transaction: gtid:0-1-23 (with it) or before:0-1-23 (without it)")
                .hint("a position: binlog.000042:1234")
        })?;
        // In the hour in which clocks are set back, a local time is two moments.
        let moment = zone.to_ambiguous_timestamp(local).unambiguous();
        moment
            .map(Self::Time)
            .map_err(|error| clocks_are_changed(text, local, zone).because(error))
    }
}

/// Says of a local time that is no one moment which ones may be meant: its offset before the change, and after.
fn clocks_are_changed(text: &str, local: DateTime, zone: &TimeZone) -> Error {
    let (what, offsets) = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { before, after } => (
            "occurs twice here, because clocks are set back then",
            [before, after],
        ),
        AmbiguousOffset::Gap { before, after } => (
            "does not occur here, because clocks are set forward then",
            [before, after],
        ),
        AmbiguousOffset::Unambiguous { offset } => {
            ("is not a time that this host knows", [offset; 2])
        }
    };
    let [first, second] = offsets.map(|offset| {
        let sign = if offset.seconds() < 0 { '-' } else { '+' };
        let minutes = offset.seconds().unsigned_abs() / 60;
        let time = local.strftime("%FT%T");
        format!("{time}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    });
    Error::usage(format!("'{text}' {what}")).hint(format!(
        "give it with its UTC offset: {first} (before the change) or {second} (after it)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Point> {
        Point::parse(text, &TimeZone::fixed(jiff::tz::offset(1)))
    }

    #[test]
    fn a_local_time_that_is_two_moments_is_refused() {
        let vienna = "CET-1CEST,M3.5.0,M10.5.0/3";
        let zone = TimeZone::posix(vienna).unwrap();
        for (text, what) in [
            ("2026-10-25 02:30:00", "occurs twice"),
            ("2026-03-29 02:30:00", "does not occur"),
        ] {
            let error = Point::parse(text, &zone).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
            // What is offered can be typed, and is what happens in this zone.
            let hint = &error.hints()[0];
            let is_time = |word: &&str| word.starts_with("20") && word.contains('T');
            let offered = hint.split_whitespace().filter(is_time);
            let offered: Vec<_> = offered.map(|word| parse(word).unwrap()).collect();
            let at = |hour: &str| {
                let utc = format!("{}T{hour}:30:00Z", &text[..10]);
                Point::Time(utc.parse().unwrap())
            };
            let real = match what {
                "occurs twice" => [at("00"), at("01")],
                _ => [at("01"), at("00")],
            };
            assert_eq!(offered, real, "{hint}");
        }
        let new_york = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        let error = Point::parse("2026-11-01 01:30:00", &new_york).unwrap_err();
        let hint = &error.hints()[0];
        assert!(
            hint.contains("-04:00 (before") && hint.contains("-05:00 (after"),
            "{hint}"
        );
        let before = Point::parse("2026-10-25 01:59:59", &zone).unwrap();
        assert_eq!(before, Point::Time("2026-10-24T23:59:59Z".parse().unwrap()));
        let said = Point::parse("2026-10-25T02:30:00+02:00", &zone).unwrap();
        assert_eq!(said, Point::Time("2026-10-25T00:30:00Z".parse().unwrap()));
    }

    #[test]
    fn points_are_read() {
        let time = |text: &str| Point::Time(text.parse().unwrap());
        assert_eq!(
            parse("2026-11-20 10:41:07").unwrap(),
            time("2026-11-20T09:41:07Z")
        );
        assert_eq!(
            parse("2026-11-20T10:41:07Z").unwrap(),
            time("2026-11-20T10:41:07Z")
        );
        let place = LogPosition {
            file: "binlog.000042".to_owned(),
            position: 1234,
        };
        assert_eq!(parse("binlog.000042:1234").unwrap(), Point::Position(place));
        let gtid = "0-1-23".parse().unwrap();
        assert_eq!(parse("gtid:0-1-23").unwrap(), Point::After(gtid));
        assert_eq!(parse("before:0-1-23").unwrap(), Point::Before(gtid));
        for none in ["", "10:41", "gtid:0-1", "yesterday", "binlog:12"] {
            assert!(parse(none).is_err(), "{none}");
        }
    }
}
