//! `capture`.

use super::piped::Piped;
use crate::args::{self, CaptureFormat};
use crate::show::answers::CaptureAnswer;
use crate::show::{Face, Form, Statements};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, exit};
use evenkeel_traffic::capture::{Capture, Options};
use evenkeel_traffic::{Filter, Source};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Texts shorter than this are of no use, longer ones are kept for each statement that waits for its answer.
const TEXTS: std::ops::RangeInclusive<u64> = 64..=64 << 20;

/// Runs the command.
pub fn run(args: &args::Capture, face: &Face) -> Result<u8> {
    let filter = filter(args)?;
    let options = options(args)?;
    let capture = Capture::new(open(&args.pcap, face)?, options);
    face.cancel().check()?;
    let mut capture = capture?;
    let mut out = Statements::new(form(args, face), args.pcap == Path::new("-"));
    let (mut shown, mut unanswered) = (0, 0);
    let read = capture.read(
        &mut |statement| {
            unanswered += u64::from(statement.total_ns.is_none() && statement.is_asked());
            if filter.keeps(statement) && out.show(statement)? {
                shown += 1;
            }
            Ok(())
        },
        face.cancel(),
    );
    out.flush()?;
    let coverage = match read {
        // Whoever reads what we show has seen enough.
        Err(_) if out.is_closed() => return Ok(exit::DONE),
        read => read?,
    };
    let answer = CaptureAnswer::new(
        &coverage,
        [shown, unanswered],
        capture.is_cut(),
        capture.damage(),
    );
    face.answer_aside(&answer);
    if coverage.statements == 0 && coverage.packets > 0 && answer.complete {
        let ports = args.port.iter().map(u16::to_string);
        face.warn(&format!(
            "no client spoke to port {}: if the server listens on another one, name it with --port",
            ports.collect::<Vec<_>>().join(", ")
        ));
    }
    face.cancel().check()?;
    Ok(match answer.complete {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}

fn open(path: &Path, face: &Face) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(Piped::stdin(face.cancel())?));
    }
    let failed = |error| unreadable("capture", path, error);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    Ok(Box::new(file))
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
    })
}

fn form(args: &args::Capture, face: &Face) -> Form {
    match (args.format, face.is_json()) {
        (Some(CaptureFormat::Json), _) | (None, true) => Form::Json,
        (Some(CaptureFormat::Line) | None, _) => Form::Line,
        (Some(CaptureFormat::Sql), _) => Form::Sql,
        (Some(CaptureFormat::Slowlog), _) => Form::SlowLog,
    }
}
