//! A time that is two places in the log, because times in it go back: named, and one of them taken when
//! that is asked for.

use super::look::Look;
use super::reached::Reached;
use super::transaction::Transaction;
use crate::archive::LogPosition;
use evenkeel_op::{Error, Result};
use serde::Serialize;

/// What to do where times go back behind a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimesGoBack {
    /// Name both places and restore nothing.
    #[default]
    Refuse,
    /// Stop before the first transaction that is of the point or later.
    First,
    /// Continue behind the last one that is earlier.
    Last,
}

/// Two places that one time may mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TwoPlaces {
    /// Which was taken: `first` or `last`.
    pub taken: &'static str,
    /// Where the first transaction of the point or later begins.
    pub first: LogPosition,
    /// That transaction.
    pub first_later: Option<Transaction>,
    /// Behind the last earlier transaction.
    pub last: LogPosition,
    /// That transaction.
    pub last_earlier: Option<Transaction>,
    /// How many earlier ones are between the two places.
    pub earlier: u64,
}

/// Chooses between the two places of a time, where there are two.
///
/// Errors: `Refused`, naming both, when nobody chose.
pub(super) fn choose(look: Look, go_back: TimesGoBack) -> Result<(Reached, Option<TwoPlaces>)> {
    let Some((last, earlier)) = look.last else {
        return Ok((look.first, None));
    };
    let first = look.first;
    let both = |taken| TwoPlaces {
        taken,
        first: first.to.clone(),
        first_later: first.next.clone(),
        last: last.to.clone(),
        last_earlier: last.last.clone(),
        earlier,
    };
    match go_back {
        TimesGoBack::First => Ok((first.clone(), Some(both("first")))),
        TimesGoBack::Last => Ok((last.clone(), Some(both("last")))),
        TimesGoBack::Refuse => Err(refused(&both(""))),
    }
}

fn refused(both: &TwoPlaces) -> Error {
    let (later, last) = (shown(&both.first_later), shown(&both.last_earlier));
    let error = Error::refused(format!(
        "times in the binary log go backward around the point: {later} is the first transaction \
         at or after it, but {} later ones have an earlier time, the last of them {last}",
        both.earlier
    ))
    .hint("a session changed its time (SET timestamp), or the clock was set");
    let first = match gtid(&both.first_later) {
        Some(gtid) => format!("before:{gtid}"),
        None => both.first.to_string(),
    };
    let last = match gtid(&both.last_earlier) {
        Some(gtid) => format!("gtid:{gtid}"),
        None => both.last.to_string(),
    };
    error
        .hint(format!("to stop before the first: --to {first}"))
        .hint(format!("to continue through the last: --to {last}"))
        .hint("or choose in advance, with exit code 3: --times-go-back first, or last")
}

fn gtid(one: &Option<Transaction>) -> Option<&str> {
    one.as_ref()?.gtid.as_deref()
}

fn shown(one: &Option<Transaction>) -> String {
    let Some(one) = one else {
        return "one".to_owned();
    };
    let gtid = one.gtid.as_ref().map(|gtid| format!("{gtid} "));
    let time = one.time.map(|time| format!(" of {time}"));
    format!(
        "{}at {}{}",
        gtid.unwrap_or_default(),
        one.at,
        time.unwrap_or_default()
    )
}
