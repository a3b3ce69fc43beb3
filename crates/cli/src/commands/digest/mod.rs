//! `digest`.

mod asked;
mod history;
mod plans;

use super::named_files::{check_parts, refuse_twice};
use super::page_file::PageFile;
use super::remembered::{self, Asking};
use super::traffic_file::{Reading, TrafficFile};
use crate::args;
use crate::show::Ui;
use crate::show::answers::{DigestAnswer, DigestedFile};
pub(super) use asked::{about, moment};
use asked::{earlier, filter, key, rules};
use evenkeel_op::{Error, Result, exit};
use evenkeel_traffic::digest::fingerprint::Mode;
use evenkeel_traffic::digest::{self, Digest, Options, Summary};
use evenkeel_traffic::source::PerformanceSchema;
use evenkeel_traffic::{Seen, SourceKind, Statement, capture};
use std::cmp::Reverse;
use std::path::PathBuf;

/// Runs the command.
pub fn run(args: &args::Digest, ui: &Ui) -> Result<u8> {
    if args.kept.history_name.as_deref() == Some("") {
        return Err(Error::usage("--history-name is empty: a history's periods follow each other under a name")
            .hint("leave it out, and the path of the log is the name; or name what the log is of: --history-name shop"));
    }
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
        ([one], None) => Some(earlier(one, rules, ui.cancel())?),
        ([one], Some(kept)) => {
            Some(kept.or_earlier(one, args, |path| earlier(path, rules, ui.cancel()))?)
        }
        _ => return Err(history::two_periods_and_logs()),
    };
    refuse_twice(logs)?;
    let server = args.server.as_deref();
    let server = server
        .map(|place| remembered::open(place, &asking(args), ui))
        .transpose()?;
    let inputs = opened(args, logs, ui)?;
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
        files.push(read_memory(server, &mut add, ui)?);
    }
    let summary = sorted(digest.end(), args);
    let changes = before.map(|before| digest::changes(&before, &summary));
    let top = usize::from(args.top);
    let is_whole = files.iter().all(DigestedFile::is_whole);
    let plans = explainer.explain(&summary, top, ui)?;
    let added = kept.map(|kept| kept.add(args, logs, &files, &summary, ui));
    // What could not be kept costs no answer.
    let (kept, failed) = match added {
        Some(Ok(kept)) => (Some(kept), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let answer = DigestAnswer::new(files, rules, &summary, changes.as_deref(), top);
    ui.answer(&answer.with_history(kept).with_plans(&plans));
    if let Some(file) = html {
        let page = digest::page(&summary, changes.as_deref(), &plans, top, about());
        file.write(&page.to_html())?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(match is_whole {
        true => plans::code(&plans),
        false => exit::PARTIAL,
    })
}

/// Opens all logs, each a file of its own.
fn opened(args: &args::Digest, logs: &[PathBuf], ui: &Ui) -> Result<Vec<TrafficFile>> {
    let open = |path: &PathBuf| TrafficFile::open(path, reading(args), ui);
    let inputs = logs.iter().map(open).collect::<Result<Vec<_>>>();
    ui.cancel().check()?;
    let inputs = inputs?;
    check_parts(&inputs.iter().collect::<Vec<_>>(), ui)?;
    Ok(inputs)
}

fn asking(args: &args::Digest) -> Asking<'_> {
    Asking {
        verb: "digest",
        defaults_file: args.defaults_file.as_deref(),
        interval: args.interval,
        span: Some(args.span),
    }
}

/// Reads what a server remembers, and says what was missed.
fn read_memory(
    mut server: PerformanceSchema,
    each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
    ui: &Ui,
) -> Result<DigestedFile> {
    let file = server.place().to_owned();
    let mut each = |seen: Seen<'_>| match seen {
        Seen::Statement(statement) => each(statement),
        Seen::Silent(waited) => {
            ui.warn(&remembered::silent(&file, waited));
            Ok(())
        }
        Seen::Pause => Ok(()),
    };
    let coverage = server.watch(&mut each, ui.cancel())?;
    ui.cancel().check()?;
    if let Some(damage) = server.damage() {
        ui.warn(&format!(
            "{file}: what ran after that is not counted: {}",
            damage.chain()
        ));
    }
    if let Some(forgotten) = remembered::forgotten(&coverage) {
        ui.warn(&format!("{file}: {forgotten}"));
    }
    Ok(DigestedFile {
        file,
        source: SourceKind::PerformanceSchema.name(),
        entries: coverage.statements,
        unreadable: coverage.unseen + u64::from(server.damage().is_some()),
        untimed: 0,
        own_clocks: 0,
    })
}

/// Returns how files are read.
fn reading(args: &args::Digest) -> Reading<'_> {
    Reading {
        source: args.source,
        port_flag: "--port",
        packets: capture::Options {
            ports: args.port.clone(),
            ..capture::Options::default()
        },
        identities: &args.identity,
    }
}

/// Has the classes in the order that was asked for.
fn sorted(mut summary: Summary, args: &args::Digest) -> Summary {
    { &mut summary.classes }.sort_by_key(|class| Reverse(key(class, args.sort)));
    summary
}
