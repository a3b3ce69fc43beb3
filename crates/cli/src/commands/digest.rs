//! `digest`.

use super::page_file::PageFile;
use super::traffic_file::{Reading, TrafficFile};
use crate::args::{self, DigestRules, DigestSort};
use crate::show::Ui;
use crate::show::answers::{DigestAnswer, earlier_digest};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, exit, units};
use evenkeel_report::About;
use evenkeel_traffic::digest::fingerprint::{Mode, Rules};
use evenkeel_traffic::digest::{self, Class, Digest, Earlier, Options};
use evenkeel_traffic::{Filter, Statement, capture};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::path::Path;

/// Runs the command.
pub fn run(args: &args::Digest, ui: &Ui) -> Result<u8> {
    let rules = match args.fingerprint {
        DigestRules::Evenkeel => Rules::Evenkeel,
        DigestRules::Pt => Rules::Percona,
    };
    let options = Options {
        classes: args.classes as usize,
        rules,
        mode: Mode::of(&args.sql_mode),
        filter: filter(args)?,
    };
    // What cannot be read or written is said before an hour of reading.
    let before = args
        .compare
        .as_deref()
        .map(|path| earlier(path, rules))
        .transpose()?;
    let reading = || Reading {
        source: args.source,
        port_flag: "--port",
        packets: capture::Options {
            ports: args.port.clone(),
            ..capture::Options::default()
        },
        identities: &args.identity,
    };
    let open = |path| TrafficFile::open(path, reading(), ui);
    let inputs = args.files.iter().map(|path| open(path));
    let inputs = inputs.collect::<Result<Vec<_>>>();
    ui.cancel().check()?;
    let inputs = inputs?;
    let taken = args.files.iter().chain(&args.compare);
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
    let mut summary = digest.end();
    summary
        .classes
        .sort_by_key(|class| std::cmp::Reverse(key(class, args.sort)));
    let changes = before.map(|before| digest::changes(&before, &summary));
    let top = usize::from(args.top);
    let unread = files.iter().map(|file| file.unreadable).sum::<u64>();
    ui.answer(&DigestAnswer::new(
        files,
        rules,
        &summary,
        changes.as_deref(),
        top,
    ));
    if let Some(file) = html {
        file.write(&digest::page(&summary, changes.as_deref(), top, about()).to_html())?;
    }
    Ok(if unread > 0 {
        exit::PARTIAL
    } else {
        exit::DONE
    })
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
pub(super) fn moment(text: &str) -> Result<i64> {
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
            .hint("how long ago: 90m, 2h")
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

pub(super) fn about() -> About {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    About {
        command: super::bench::about::command(words.skip(1), None),
        when: Zoned::now().strftime("%-d %B %Y, %H:%M %Z").to_string(),
        program: format!("evenkeel {}", env!("CARGO_PKG_VERSION")),
        ..About::default()
    }
}
