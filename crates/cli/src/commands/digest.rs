//! `digest`.

use super::page_file::PageFile;
use super::piped::Piped;
use crate::args::{self, DigestRules, DigestSort, DigestSource};
use crate::show::Face;
use crate::show::answers::{DigestAnswer, DigestedFile, earlier_digest};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, exit, units};
use evenkeel_report::About;
use evenkeel_traffic::digest::fingerprint::{Mode, Rules};
use evenkeel_traffic::digest::{self, Class, Digest, Earlier, Options};
use evenkeel_traffic::source::{GeneralLog, Input, Kind, SlowLog};
use evenkeel_traffic::{Filter, Source, Statement};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::path::Path;

/// Runs the command.
pub fn run(args: &args::Digest, face: &Face) -> Result<u8> {
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
    let inputs = args.files.iter().map(|path| input(path, args.source, face));
    let inputs = inputs.collect::<Result<Vec<_>>>();
    face.cancel().check()?;
    let inputs = inputs?;
    let taken = args.files.iter().chain(&args.compare);
    let html = args.html.as_deref();
    let html = html.map(|path| PageFile::begin(path, taken)).transpose()?;
    let mut digest = Digest::new(options);
    let mut files = Vec::new();
    for (input, kind) in inputs {
        files.push(read(input, kind, &mut digest, face)?);
        face.cancel().check()?;
    }
    let mut summary = digest.end();
    summary
        .classes
        .sort_by_key(|class| std::cmp::Reverse(key(class, args.sort)));
    let changes = before.map(|before| digest::changes(&before, &summary));
    let top = usize::from(args.top);
    if let Some(file) = html {
        file.write(&digest::page(&summary, changes.as_deref(), top, about()).to_html())?;
    }
    let unread = files.iter().map(|file| file.unreadable).sum::<u64>();
    face.answer(&DigestAnswer::new(
        files,
        rules,
        &summary,
        changes.as_deref(),
        top,
    ));
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

fn input(path: &Path, source: Option<DigestSource>, face: &Face) -> Result<(Input, Kind)> {
    let input = match path == Path::new("-") {
        true => Input::of("standard input", Piped::stdin(face.cancel())?)?,
        false => Input::open(path)?,
    };
    let kind = match source {
        Some(DigestSource::SlowLog) => Some(Kind::SlowLog),
        Some(DigestSource::GeneralLog) => Some(Kind::GeneralLog),
        None => input.kind,
    };
    let kind = kind.ok_or_else(|| {
        Error::usage(format!(
            "{} is neither a slow query log nor a general query log",
            input.name
        ))
        .hint("if it is one whose beginning is damaged, say which with --source")
    })?;
    Ok((input, kind))
}

fn read(input: Input, kind: Kind, digest: &mut Digest, face: &Face) -> Result<DigestedFile> {
    let name = input.name.clone();
    let mut each = |statement: &Statement<'_>| {
        digest.add(statement);
        Ok(())
    };
    let zone = TimeZone::system();
    let (coverage, unread) = match kind {
        Kind::SlowLog => {
            let mut log = SlowLog::new(input, zone);
            (log.read(&mut each, face.cancel())?, log.unread().to_vec())
        }
        Kind::GeneralLog => {
            let mut log = GeneralLog::new(input, zone);
            (log.read(&mut each, face.cancel())?, log.unread().to_vec())
        }
    };
    if coverage.undecodable > 0 {
        let places = unread
            .iter()
            .map(|one| format!("line {}: {}", one.line, one.why));
        let mut places: Vec<String> = places.collect();
        if coverage.undecodable > unread.len() as u64 {
            places.push("…".to_owned());
        }
        let (noun, be) = match coverage.undecodable {
            1 => ("entry", "is"),
            _ => ("entries", "are"),
        };
        face.warn(&format!(
            "{name}: {} {noun} could not be read and {be} not counted ({})",
            coverage.undecodable,
            places.join("; ")
        ));
    }
    Ok(DigestedFile {
        file: name,
        source: kind.name(),
        entries: coverage.statements,
        unreadable: coverage.undecodable,
    })
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
fn moment(text: &str) -> Result<i64> {
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

fn about() -> About {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    About {
        command: format!("evenkeel {}", shell_words::join(words.skip(1))),
        when: Zoned::now().strftime("%-d %B %Y, %H:%M %Z").to_string(),
        program: format!("evenkeel {}", env!("CARGO_PKG_VERSION")),
        ..About::default()
    }
}
