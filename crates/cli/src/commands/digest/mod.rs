//! `digest`.

mod history;
mod plans;
mod remembered;

use super::page_file::PageFile;
use super::traffic_file::TrafficFile;
use crate::args::{self, DigestRules, DigestSort};
use crate::show::Ui;
use crate::show::answers::{DigestAnswer, earlier_digest};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, exit, units};
use evenkeel_report::About;
use evenkeel_traffic::digest::fingerprint::{Mode, Rules};
use evenkeel_traffic::digest::{self, Class, Digest, Earlier, Options};
use evenkeel_traffic::history::Wanted;
use evenkeel_traffic::{Filter, Statement, capture};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(args: &args::Digest, ui: &Ui) -> Result<u8> {
    let mut compare = args.compare.clone();
    let mut logs = args.files.clone();
    if args.kept.history.is_none() {
        // `--compare BEFORE.json LOG`: only periods come in pairs.
        logs.splice(0..0, compare.drain(compare.len().min(1)..));
    }
    match logs.is_empty() && args.server.is_none() {
        true => history::show(args, &compare, ui),
        false => read(args, &logs, &compare, ui),
    }
}

fn read(args: &args::Digest, logs: &[PathBuf], compare: &[PathBuf], ui: &Ui) -> Result<u8> {
    let rules = rules(args);
    let options = Options {
        classes: args.classes as usize,
        rules,
        mode: Mode::of(&args.sql_mode),
        filter: filter(args)?,
    };
    // What cannot be read or written is said before an hour of reading.
    let mut kept = history::Kept::open(args, ui)?;
    let explainer = plans::Explainer::of(args, ui)?;
    let before = match (compare, &mut kept) {
        ([], _) => None,
        ([one], None) => Some(earlier(one, rules)?),
        ([one], Some(kept)) => Some(kept.or_earlier(one, args, |path| earlier(path, rules))?),
        _ => return Err(history::two_periods_and_logs()),
    };
    let packets = || capture::Options {
        ports: args.port.clone(),
        ..capture::Options::default()
    };
    let open = |path| TrafficFile::open(path, args.source, ("--port", packets()), ui);
    let server = remembered::open(args, ui)?;
    let inputs = logs.iter().map(|path| open(path));
    let inputs = inputs.collect::<Result<Vec<_>>>();
    ui.cancel().check()?;
    let inputs = inputs?;
    let taken = logs.iter().chain(compare).chain(&args.kept.history);
    let html = args.html.as_deref();
    let html = html.map(|path| PageFile::begin(path, taken)).transpose()?;
    let mut digest = Digest::new(options);
    let mut files = Vec::new();
    let mut add = |statement: &Statement<'_>| {
        digest.add(statement);
        Ok(())
    };
    for input in inputs {
        files.push(input.read(&mut add, ui)?);
        ui.cancel().check()?;
    }
    if let Some(server) = server {
        files.push(remembered::read(server, &mut add, ui)?);
    }
    let mut summary = digest.end();
    summary
        .classes
        .sort_by_key(|class| std::cmp::Reverse(key(class, args.sort)));
    let changes = before.map(|before| digest::changes(&before, &summary));
    let top = usize::from(args.top);
    let unread = files.iter().map(|file| file.unreadable).sum::<u64>();
    let added = kept.map(|kept| kept.add(args, logs, &files, &summary));
    // What could not be kept costs no answer.
    let (kept, failed) = match added {
        Some(Ok(kept)) => (Some(kept), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let plans = explainer.explain(&summary, top, ui)?;
    let answer = DigestAnswer::new(files, rules, &summary, changes.as_deref(), top);
    ui.answer(&answer.with_history(kept).with_plans(&plans));
    if let Some(file) = html {
        let page = digest::page(&summary, changes.as_deref(), &plans, top, about());
        file.write(&page.to_html())?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(if unread > 0 {
        exit::PARTIAL
    } else {
        plans::code(&plans)
    })
}

fn rules(args: &args::Digest) -> Rules {
    match args.fingerprint {
        DigestRules::Evenkeel => Rules::Evenkeel,
        DigestRules::Pt => Rules::Percona,
    }
}

fn key(class: &Class, sort: DigestSort) -> u64 {
    match sort {
        DigestSort::Time => class.sum_ns,
        DigestSort::Count => class.count,
        DigestSort::Latency => class.within_us(0.95).unwrap_or(0),
        DigestSort::Errors => class.errors,
    }
}

fn filter(args: &args::Digest) -> Result<Filter> {
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
fn earlier(path: &Path, rules: Rules) -> Result<Vec<Earlier>> {
    let text = std::fs::read(path).map_err(|error| unreadable("earlier digest", path, error))?;
    earlier_digest(&text, rules).map_err(|why| {
        Error::usage(format!("{} {why}", path.display()))
            .hint("give it what 'evenkeel digest --json' printed, with the same --fingerprint")
    })
}

pub(in crate::commands) fn about() -> About {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    About {
        command: crate::commands::bench::about::command(words.skip(1), None),
        when: Zoned::now().strftime("%-d %B %Y, %H:%M %Z").to_string(),
        program: format!("evenkeel {}", env!("CARGO_PKG_VERSION")),
        ..About::default()
    }
}
