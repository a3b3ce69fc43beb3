//! `capture`.

mod origin;
mod output;
mod tap;
mod uprobes;

use crate::args::{self, CaptureFormat};
use crate::show::answers::CaptureAnswer;
use crate::show::{Form, Statements, Ui};
use evenkeel_op::{Error, Result, exit, units};
use evenkeel_traffic::capture::Options;
use evenkeel_traffic::digest::fingerprint::Mode;
use evenkeel_traffic::digest::is_counted;
use evenkeel_traffic::kept::CaptureEnd;
use evenkeel_traffic::{Coverage, Filter, Seen, SourceKind, Statement};
use evenkeel_wire::watch::redacted;
use origin::{Origin, Shared};
use output::Output;
use std::path::Path;

/// Texts shorter than this are of no use, longer ones are kept for each statement that waits for its answer.
const TEXTS: std::ops::RangeInclusive<u64> = 64..=64 << 20;
/// Runs the command.
pub fn run(args: &args::Capture, ui: &Ui) -> Result<u8> {
    let shared = Shared::default();
    let origin = Origin::open(args, options(args)?, &shared, ui);
    let filter = filter(args)?;
    ui.cancel().check()?;
    let mut origin = origin?;
    // Of what comes as it happens, each statement is shown at once; an interface says when there is a pause.
    let is_live = is_piped(args) || args.follow || args.server.is_some();
    let kind = origin.kind();
    let statements = Statements::new(form(args, ui), kind, is_live);
    shared.begin(Shown {
        out: Output::of(args, kind, statements, ui)?,
        filter,
        kind,
        shown: 0,
        unanswered: 0,
        others: 0,
        textless: 0,
        failure: None,
    });
    let read = origin.read(&shared, ui);
    let Some(mut shown) = shared.end() else {
        return Ok(exit::DONE);
    };
    if !shown.out.is_kept() {
        shown.out.pause()?;
    }
    let coverage = match read {
        // Whoever reads what we show has seen enough.
        _ if shown.out.is_closed() => return Ok(exit::DONE),
        Ok(coverage) => coverage,
        Err(failure) => return Err(broken_off(shown, failure)),
    };
    if let Some(failure) = shown.failure.take() {
        return Err(broken_off(shown, failure));
    }
    let answer = end(args, &origin, &coverage, shown)?;
    ui.answer_aside(&answer);
    if coverage.statements == 0 && origin.could_hear(&coverage) && answer.complete {
        ui.warn(&unheard(args));
    }
    ui.cancel().check()?;
    Ok(match answer.complete {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}

/// Finishes what is written of a capture that failed; returns the failure, with what is kept.
fn broken_off(shown: Shown, failure: Error) -> Error {
    let is_kept = shown.out.is_kept();
    let ended = shown.out.end(CaptureEnd {
        damage: Some(failure.chain()),
        ..CaptureEnd::default()
    });
    match (is_kept, ended) {
        (true, Ok(_)) => failure.hint("what was captured until then is kept, and can be read"),
        (true, Err(_)) => failure.hint("the files that were complete are kept, and can be read"),
        (false, _) => failure,
    }
}

/// Finishes what is written, and says how much was seen.
fn end(
    args: &args::Capture,
    origin: &Origin,
    coverage: &Coverage,
    shown: Shown,
) -> Result<CaptureAnswer> {
    let counts = [shown.shown, shown.unanswered];
    let mut missing = origin.missing(coverage);
    // Of other sources, coverage counts them.
    if shown.textless > 0 && shown.kind == SourceKind::PerformanceSchema {
        let textless = units::count(shown.textless, "statement");
        missing.push(format!(
            "{textless} without text or values: the server does not remember those of prepared statements"
        ));
    }
    let written = shown.out.end(CaptureEnd {
        coverage: *coverage,
        is_cut: origin.is_cut(),
        refused: origin.refused(),
        damage: origin.loss(),
    })?;
    let mut answer = CaptureAnswer::new(
        coverage,
        counts,
        origin.is_cut(),
        origin.damage(),
        origin.seen_by(),
        missing,
    );
    answer.tells_apart(shown.others);
    if let Some(written) = written {
        answer.keeps(args.kept.directory.as_deref(), written);
    }
    Ok(answer)
}

fn is_piped(args: &args::Capture) -> bool {
    let files = [&args.pcap, &args.log];
    files
        .into_iter()
        .flatten()
        .any(|path| path == Path::new("-"))
}

/// Shows statements as they come.
struct Shown {
    out: Output,
    filter: Filter,
    kind: SourceKind,
    shown: u64,
    unanswered: u64,
    /// Commands that are no statements.
    others: u64,
    /// Statements whose text, or whose values, are not known.
    textless: u64,
    /// What went wrong while there was nothing to read.
    failure: Option<Error>,
}

impl Shown {
    fn see(&mut self, seen: Seen<'_>) -> Result<()> {
        match seen {
            Seen::Statement(statement) if self.kind.is_told_by_server() => {
                // Not every server leaves them out.
                let hidden = redacted(statement.sql, Mode::default());
                self.take(&with_text(statement, hidden.as_deref()))
            }
            Seen::Statement(statement) => self.take(statement),
            Seen::Pause => self.pause(),
            // Whoever asks says so.
            Seen::Silent(_) => Ok(()),
        }
    }

    fn take(&mut self, statement: &Statement<'_>) -> Result<()> {
        self.others += u64::from(!is_counted(statement));
        let is_open = statement.total_ns.is_none() && statement.is_asked();
        self.unanswered += u64::from(is_open && self.kind.knows_latency());
        self.textless += u64::from(statement.is_unseen);
        if self.filter.keeps(statement) && self.out.take(statement)? {
            self.shown += 1;
        }
        Ok(())
    }

    /// Shows what was held back.
    fn pause(&mut self) -> Result<()> {
        self.out.pause()?;
        match self.is_closed() {
            true => Err(Error::failed("standard output is closed")),
            false => Ok(()),
        }
    }

    /// The same within a read, which cannot fail for this reason; returns whether to go on.
    fn pause_within(&mut self) -> bool {
        self.failure = self.failure.take().or(self.pause().err());
        self.failure.is_none()
    }

    fn is_closed(&self) -> bool {
        self.out.is_closed()
    }
}

/// Returns a statement with another text, if there is one.
fn with_text<'a>(statement: &Statement<'a>, text: Option<&'a [u8]>) -> Statement<'a> {
    let cut = statement
        .sql_bytes
        .saturating_sub(statement.sql.len() as u64);
    let sql = text.unwrap_or(statement.sql);
    Statement {
        sql,
        sql_bytes: sql.len() as u64 + cut,
        ..statement.clone()
    }
}

/// Returns what is captured.
fn place(args: &args::Capture) -> String {
    let ports: Vec<String> = args.port.iter().map(u16::to_string).collect();
    let interface = args.interface.as_deref().unwrap_or_default();
    format!("port {} on {interface}", ports.join(", "))
}

/// Returns what may be why there was no statement.
fn unheard(args: &args::Capture) -> String {
    match args.interface.as_deref() {
        Some(interface) => format!(
            "no client spoke to {}: if the server listens on another port, name it with --port; {}a Unix socket has \
             no packets",
            place(args),
            match interface {
                "any" => "",
                _ => "if clients come another way, capture with --interface any; ",
            }
        ),
        None => {
            let ports: Vec<String> = args.port.iter().map(u16::to_string).collect();
            format!(
                "no client spoke to port {}: if the server listens on another one, name it with --port",
                ports.join(", ")
            )
        }
    }
}

fn filter(args: &args::Capture) -> Result<Filter> {
    let pattern = args.matching.as_deref().map(Filter::pattern);
    let min = args.min_latency.unwrap_or_default();
    Ok(Filter {
        since_ns: None,
        until_ns: None,
        users: args.user.clone(),
        schemas: args.database.clone(),
        hosts: args.host.clone(),
        pattern: pattern.transpose()?,
        min_ns: u64::try_from(min.as_nanos()).unwrap_or(u64::MAX),
    })
}

fn options(args: &args::Capture) -> Result<Options> {
    if !TEXTS.contains(&args.max_text) {
        return Err(Error::usage("--max-text is out of range").hint(
            "give a size from 64 bytes to 64M; each unanswered statement may take that much memory",
        ));
    }
    Ok(Options {
        ports: args.port.clone(),
        text_bytes: usize::try_from(args.max_text).unwrap_or(usize::MAX),
        // For a replay. A checksum of a short result would tell what is in it.
        checksums: args.kept.directory.is_some() && !args.kept.redact,
        values: args.kept.directory.is_some() && !args.kept.redact,
    })
}

fn form(args: &args::Capture, ui: &Ui) -> Form {
    match (args.format, ui.is_json()) {
        (Some(CaptureFormat::Json), _) | (None, true) => Form::Json,
        (Some(CaptureFormat::Line) | None, _) => Form::Line,
        (Some(CaptureFormat::Sql), _) => Form::Sql,
        (Some(CaptureFormat::Slowlog), _) => Form::SlowLog,
    }
}
