//! What the options of `digest` mean.

use crate::args::{self, DigestRules, DigestSort};
use crate::opened;
use crate::show::answers::earlier_digest;
use evenkeel_op::{Cancel, Error, Result, units};
use evenkeel_report::About;
use evenkeel_traffic::Filter;
use evenkeel_traffic::digest::fingerprint::Rules;
use evenkeel_traffic::digest::{Class, Earlier};
use evenkeel_traffic::history::Wanted;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::path::Path;

/// Returns by which rules statements are alike.
pub(super) fn rules(args: &args::Digest) -> Rules {
    match args.fingerprint {
        DigestRules::Evenkeel => Rules::Evenkeel,
        DigestRules::Pt => Rules::Percona,
    }
}

/// Returns by what classes are sorted, the highest first.
pub(super) fn key(class: &Class, sort: DigestSort) -> u64 {
    match sort {
        DigestSort::Time => class.sum_ns,
        DigestSort::Count => class.count,
        DigestSort::Latency => class.within_us(0.95).unwrap_or(0),
        DigestSort::Errors => class.errors,
    }
}

/// Returns which statements are counted.
pub(super) fn filter(args: &args::Digest) -> Result<Filter> {
    let time = |text: &Option<String>| text.as_deref().map(moment).transpose();
    let pattern = args.matching.as_deref().map(Filter::pattern);
    Ok(Filter {
        since_ns: time(&args.since)?,
        until_ns: time(&args.until)?,
        users: args.users.clone(),
        schemas: args.databases.clone(),
        hosts: args.hosts.clone(),
        pattern: pattern.transpose()?,
        min_ns: 0,
    })
}

/// Reads a time, or for how long ago it was; in nanoseconds since 1970.
pub(in crate::commands) fn moment(text: &str) -> Result<i64> {
    if let Some(Wanted::Time(begin, _)) = matches!(text, "today" | "yesterday")
        .then(|| Wanted::of(text, Timestamp::now(), &TimeZone::system()))
        .transpose()?
    {
        return Ok(begin);
    }
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.parse().ok()?;
        Some(local.to_zoned(TimeZone::system()).ok()?.timestamp())
    });
    let time = time.or_else(|| {
        let ago = units::parse_duration(text).ok()?;
        Timestamp::now().checked_sub(ago).ok()
    });
    let nanoseconds = time.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    nanoseconds.ok_or_else(|| {
        Error::usage(format!("'{text}' is not a time"))
            .hint("a time: '2026-11-28 10:00', or with its zone: 2026-11-28T10:00:00Z")
            .hint("how long ago: 90m, 2h; or the begin of a day: yesterday, today")
    })
}

/// Reads an earlier answer.
pub(super) fn earlier(path: &Path, rules: Rules, cancel: &Cancel) -> Result<Vec<Earlier>> {
    let text = opened::read(path, "earlier digest", cancel)?;
    earlier_digest(&text, rules).map_err(|why| {
        Error::usage(format!("{} {why}", path.display()))
            .hint("give it what 'evenkeel digest --json' printed, with the same --fingerprint")
    })
}

/// Returns what a page says of its command.
pub(in crate::commands) fn about() -> About {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    About {
        command: crate::commands::bench::about::command(words.skip(1), None),
        when: Zoned::now().strftime("%-d %B %Y, %H:%M %Z").to_string(),
        program: format!("evenkeel {}", env!("CARGO_PKG_VERSION")),
        ..About::default()
    }
}
