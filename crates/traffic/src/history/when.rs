//! Which periods are meant by a time.

use super::Period;
use evenkeel_op::{Error, Result, units};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// What someone asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The period with this number.
    Number(u64),
    /// Those whose middle is in this time: from, and to before, in nanoseconds since 1970. Of a log that was rotated at
    /// midnight, the first statement may have begun the day before.
    Time(i64, i64),
}

impl Wanted {
    /// Reads `3`, `today`, `yesterday`, `2026-11-24`, `2026-11-24T10:00/2h`; days are those of `zone`.
    ///
    /// # Errors
    ///
    /// `Usage` for anything else.
    pub fn of(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self> {
        if let Ok(number) = text.parse::<u64>() {
            return Ok(Self::Number(number));
        }
        time(text, now, zone).ok_or_else(|| {
            Error::usage(format!("'{text}' is not a period"))
                .hint("a period is its number as --periods shows it, or a time")
                .hint("a time: today, yesterday, 2026-11-24, or a begin and a length: 2026-11-24T10:00/2h")
        })
    }

    fn has(&self, period: &Period) -> bool {
        match self {
            Self::Number(number) => period.number == *number,
            Self::Time(from, to) => {
                let (begin, end) = (period.about.from_ns, period.about.to_ns);
                let middle = begin.saturating_add(end.saturating_sub(begin) / 2);
                (*from..*to).contains(&middle)
            }
        }
    }
}

fn time(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Wanted> {
    let today = || now.to_zoned(zone.clone()).date();
    match text {
        "today" => return day(today(), zone),
        "yesterday" => return day(today().yesterday().ok()?, zone),
        _ => {}
    }
    if let Some((begin, length)) = text.split_once('/') {
        let begin = match begin.parse::<Timestamp>() {
            Ok(begin) => begin,
            Err(_) => begin
                .parse::<DateTime>()
                .ok()?
                .to_zoned(zone.clone())
                .ok()?
                .timestamp(),
        };
        let length = units::parse_duration(length).ok()?;
        return Some(Wanted::Time(
            nanoseconds(begin)?,
            nanoseconds(begin.checked_add(length).ok()?)?,
        ));
    }
    // A date with a time of day would be read as its day.
    let is_date = text.len() == "2026-11-24".len();
    is_date
        .then(|| text.parse::<Date>().ok())
        .flatten()
        .and_then(|date| day(date, zone))
}

fn day(date: Date, zone: &TimeZone) -> Option<Wanted> {
    let begin = |date: Date| -> Option<Zoned> { date.to_zoned(zone.clone()).ok() };
    let next = date.checked_add(Span::new().days(1)).ok()?;
    Some(Wanted::Time(
        nanoseconds(begin(date)?.timestamp())?,
        nanoseconds(begin(next)?.timestamp())?,
    ))
}

fn nanoseconds(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}

/// Returns the periods that are meant, of one name.
///
/// # Errors
///
/// `Usage` where there is none, or where they are of several names.
pub fn meant<'a>(
    periods: &'a [Period],
    wanted: &Wanted,
    typed: &str,
    name: Option<&str>,
) -> Result<Vec<&'a Period>> {
    let named = periods
        .iter()
        .filter(|period| name.is_none_or(|name| period.about.name == name));
    let found: Vec<&Period> = named.filter(|period| wanted.has(period)).collect();
    let Some(first) = found.first() else {
        return Err(
            Error::usage(format!("the history has no period that '{typed}' means"))
                .hint("see which it has: evenkeel digest --history PLACE --periods"),
        );
    };
    if let Some(other) = found.iter().find(|one| one.about.name != first.about.name) {
        return Err(Error::usage(format!(
            "'{typed}' means periods of '{}' and of '{}'",
            first.about.name, other.about.name
        ))
        .hint(format!("say whose: --history-name {}", first.about.name)));
    }
    Ok(found)
}

/// Returns the periods that are meant: of one name, and by the same rules.
///
/// # Errors
///
/// `Usage` where there is none, or where they are of several names, or by other rules.
pub fn chosen<'a>(
    periods: &'a [Period],
    wanted: &Wanted,
    typed: &str,
    name: Option<&str>,
    rules: &str,
) -> Result<Vec<&'a Period>> {
    let found = meant(periods, wanted, typed, name)?;
    if found.iter().any(|one| one.about.rules != rules) {
        return Err(Error::usage(format!(
            "'{typed}' means periods with fingerprints of other rules"
        ))
        .hint(format!(
            "choose those: --fingerprint {}",
            found[0].about.rules
        )));
    }
    Ok(found)
}
