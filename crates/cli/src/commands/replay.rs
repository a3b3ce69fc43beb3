//! `replay`.

use super::digest::{about, moment};
use super::load::pair;
use super::named_files::check_parts;
use super::page_file::PageFile;
use super::traffic_file::{Reading, TrafficFile};
use crate::args;
use crate::opened;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{DigestedFile, ReplayAnswer, earlier_replay};
use evenkeel_op::{Cancel, Error, Result, Run, exit, open_files};
use evenkeel_traffic::digest::fingerprint::Mode;
use evenkeel_traffic::digest::{Earlier, changes};
use evenkeel_traffic::replay::{self, Choice, Options, Outcome, Plan, Planner, Speed};
use evenkeel_traffic::{Filter, capture};
use evenkeel_wire::Connection;
use std::collections::HashMap;
use std::path::Path;

/// How many classes are told apart.
const CLASSES: usize = 1000;

/// Runs the command.
pub(super) fn run(args: &args::Replay, ui: &Ui) -> Result<u8> {
    if let Some(rounds) = args.rounds.rounds {
        return super::rounds::run(args, usize::from(rounds), ui);
    }
    let choice = choice(args)?;
    let before = args.compare.as_deref();
    let before = before.map(|path| earlier(path, ui.cancel())).transpose()?;
    let connect = settings::connect(&args.connection, "replay", ui)?;
    let input = open(args, ui)?;
    let taken = [&args.file].into_iter().chain(&args.compare);
    let html = args.html.as_deref();
    let html = html.map(|path| PageFile::begin(path, taken)).transpose()?;
    // A server that is not there is said before an hour of reading.
    let version = Connection::open(&connect, ui.cancel())?
        .version()
        .to_owned();
    let (file, plan) = planned(args, choice, input, ui)?;
    let is_whole = file.is_whole();
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let outcome = replay::play(&plan, &connect, &options(args), run)?;
    let captured: Vec<Earlier> = plan.original.classes.iter().map(Earlier::of).collect();
    let latency = changes(&captured, &outcome.summary);
    let changes = before.map(|before| changes(&before, &outcome.summary));
    let top = usize::from(args.top);
    let code = code(&plan, &outcome, is_whole);
    let page = html.map(|html| {
        let page = replay::page(&plan, &outcome, &latency, changes.as_deref(), top, about());
        (html, page.to_html())
    });
    ui.answer(&ReplayAnswer::new(
        file,
        version,
        &plan,
        &outcome,
        &latency,
        changes.as_deref(),
        top,
    ));
    if let Some((html, page)) = page {
        html.write(&page)?;
    }
    Ok(code)
}

/// Opens the capture.
pub(super) fn open<'a>(args: &'a args::Replay, ui: &'a Ui) -> Result<TrafficFile> {
    let packets = capture::Options {
        ports: args.captured_port.clone(),
        checksums: !args.ignore_results,
        values: true,
        ..capture::Options::default()
    };
    let reading = Reading {
        source: args.source,
        port_flag: "--captured-port",
        packets,
        identities: &args.identity,
    };
    let file = TrafficFile::open(&args.file, reading, ui);
    // A pipe that ended because an end is wanted is none of what it seems.
    ui.cancel().check()?;
    let mut file = file?;
    file.want_one_source();
    check_parts(&[&file], ui)?;
    match file.is_redacted() {
        true => Err(Error::usage(format!(
            "{} was captured with --redact: its statements have no values",
            args.file.display()
        ))
        .hint("replay needs a capture without --redact; digest reads this one")),
        false => Ok(file),
    }
}

/// Reads the capture, and plans what each session does.
pub(super) fn planned(
    args: &args::Replay,
    mut choice: Choice,
    input: TrafficFile,
    ui: &Ui,
) -> Result<(DigestedFile, Plan)> {
    let source = input.source();
    choice.is_exact = source.has_exact_times();
    choice.knows_errors = source.knows_errors();
    let tmpdir = args.tmpdir.clone().unwrap_or_else(std::env::temp_dir);
    let mapped = choice.schemas.clone();
    let mut planner = Planner::new(choice, &tmpdir)?;
    let file = input.read(&mut |statement| planner.add(statement), ui)?;
    ui.cancel().check()?;
    let plan = planner.end()?;
    if plan.statements == 0 {
        return Err(nothing(&plan));
    }
    refuse_idle_options(&plan, mapped.keys())?;
    // Each session is a connection. Where there may not be enough, the report says what was lost.
    open_files::raise();
    Ok((file, plan))
}

/// Refuses options that change nothing: they are mistakes.
fn refuse_idle_options<'a>(plan: &Plan, mut names: impl Iterator<Item = &'a String>) -> Result<()> {
    if plan.original.total.count == 0 {
        return Err(Error::usage("the warm-up is as long as the capture")
            .hint("give a shorter --warm-up: nothing is left to be counted"));
    }
    let unused = names.find(|old| !plan.mapped.contains(*old));
    match unused {
        Some(name) => Err(
            Error::usage(format!("no captured session uses the database {name}"))
                .hint("--map-database takes the captured name first: old=new"),
        ),
        None => Ok(()),
    }
}

fn nothing(plan: &Plan) -> Error {
    let left = plan.reasons();
    let error = Error::usage("there is no statement to replay");
    match left.is_empty() {
        true => error.hint("is it the right file, and do the filters keep any statement?"),
        false => error.hint(format!("not replayed: {}", left.join("; "))),
    }
}

fn code(plan: &Plan, outcome: &Outcome, is_whole: bool) -> u8 {
    let differ: u64 = outcome.differences.iter().map(|one| one.counted()).sum();
    let is_all = is_whole && outcome.lost == 0 && plan.left.is_empty();
    match (differ, is_all) {
        // That a server or a session was lost says more than what differed until then.
        _ if outcome.lost > 0 => exit::PARTIAL,
        (1.., _) => exit::DIFFERS,
        (0, false) => exit::PARTIAL,
        (0, true) => exit::DONE,
    }
}

/// Returns which statements are replayed.
pub(super) fn choice(args: &args::Replay) -> Result<Choice> {
    let time = |text: &Option<String>| text.as_deref().map(moment).transpose();
    let hint = "write --map-database shop=shop_copy: the captured name, and the new one";
    let pairs = args.map_database.iter().map(|text| pair(text, hint));
    Ok(Choice {
        filter: Filter {
            since_ns: time(&args.since)?,
            until_ns: time(&args.until)?,
            users: args.only_user.clone(),
            schemas: args.only_database.clone(),
            hosts: args.only_host.clone(),
            ..Filter::default()
        },
        mode: Mode::of(&args.sql_mode),
        is_exact: true,
        knows_errors: true,
        read_only: args.read_only,
        schemas: pairs.collect::<Result<HashMap<_, _>>>()?,
        default_schema: args.default_database.clone(),
        warm_up: args.warm_up.unwrap_or_default(),
        classes: CLASSES,
        compare_results: !args.ignore_results,
    })
}

/// Returns how they are replayed.
pub(super) fn options(args: &args::Replay) -> Options {
    Options {
        speed: match args.speed {
            args::Speed::Times(times) => Speed::Times(times),
            args::Speed::Max => Speed::Max,
        },
        warm_up: args.warm_up.unwrap_or_default(),
        keep_commit_order: args.order == args::ReplayOrder::Commits,
        read_only: args.read_only,
        stop_on_loss: args.stop_on_loss,
    }
}

fn earlier(path: &Path, cancel: &Cancel) -> Result<Vec<Earlier>> {
    let text = opened::read(path, "earlier replay", cancel)?;
    earlier_replay(&text).map_err(|why| {
        Error::usage(format!("{} {why}", path.display()))
            .hint("give it what 'evenkeel replay --json' printed")
    })
}
