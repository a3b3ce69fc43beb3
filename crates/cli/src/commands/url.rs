//! `url`.

use crate::args::{self, UrlCoded, UrlGrep, UrlMode, UrlStats, UrlTable, UrlTrain, UrlVerb};
use crate::opened;
use crate::show::Ui;
use crate::show::answers::{UrlStatsAnswer, UrlTrainAnswer};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, Unit, exit};
use evenkeel_urlcodec::lines::{self, Measure};
use evenkeel_urlcodec::{CodeTable, MAX_LEN, MAX_TRAINING, Mode, Training, by_host, train};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

/// Bytes that are gathered before they are written.
const BATCH: usize = 256 << 10;

/// Runs the command.
pub fn run(args: &args::Url, ui: &Ui) -> Result<u8> {
    match &args.verb {
        UrlVerb::Train(args) => trained(args, ui),
        UrlVerb::Compress(args) => compress(args, ui),
        UrlVerb::Decompress(args) => decompress(args, ui),
        UrlVerb::Grep(args) => grep(args, ui),
        UrlVerb::Stats(args) => stats(args, ui),
    }
}

fn trained(args: &UrlTrain, ui: &Ui) -> Result<u8> {
    let begun = Instant::now();
    if args.output.exists() {
        return Err(
            Error::usage(format!("{} already exists", args.output.display()))
                .hint("name another file: codes made with a table can only be read with it"),
        );
    }
    let mut text = Vec::new();
    open(&args.file, ui)?
        .take(MAX_TRAINING as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|error| unread(&args.file, error))?;
    let texts: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let training = Training {
        mode: match args.mode {
            UrlMode::Dense => Mode::Dense,
            UrlMode::Fast => Mode::Fast,
        },
        bytes: usize::try_from(args.table_size).unwrap_or(usize::MAX),
    };
    let table = train(&texts, training, ui.progress(), ui.cancel())?;
    let own = measure(&table, &texts, ui)?;
    let (near, far) = by_host(&texts);
    let held_out = if args.no_held_out || near.is_empty() || far.is_empty() {
        None
    } else {
        let second = train(&near, training, ui.progress(), ui.cancel())?;
        Some(measure(&second, &far, ui)?)
    };
    write_new(&args.output, table.file())?;
    let path = args.output.display().to_string();
    let answer = UrlTrainAnswer::new(path, &table, &own, held_out.as_ref(), begun.elapsed());
    ui.answer(&answer);
    Ok(exit::DONE)
}

fn measure(table: &CodeTable, texts: &[&[u8]], ui: &Ui) -> Result<Measure> {
    let progress = ui.progress();
    progress.phase("measuring", Some(texts.len() as u64), Unit::Items);
    let mut measure = Measure::default();
    for some in texts.chunks(1_000) {
        ui.cancel().check()?;
        for text in some {
            measure.add(table, text)?;
        }
        progress.advance(some.len() as u64);
    }
    progress.end();
    Ok(measure)
}

/// Writes a new file, completely or not at all.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: io::Error| {
        Error::failed(format!("failed to write {}", path.display())).because(error)
    };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(path)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

fn compress(args: &UrlCoded, ui: &Ui) -> Result<u8> {
    let table = table(&args.table, ui)?;
    for_lines(&args.file, ui, |line, out| {
        let code = table
            .compress(line)
            .ok_or_else(|| lines::too_long(line.len()))?;
        lines::write(&code, out);
        Ok(())
    })
}

fn decompress(args: &UrlCoded, ui: &Ui) -> Result<u8> {
    let table = table(&args.table, ui)?;
    for_lines(&args.file, ui, |line, out| {
        let text = table.decompress(&code(line)?, MAX_LEN).map_err(|error| {
            Error::failed("a line cannot be decompressed")
                .because(error)
                .hint(format!(
                    "was it compressed with table {}? If with another, give --table",
                    table.id()
                ))
        })?;
        if text.contains(&b'\n') {
            return Err(Error::failed(
                "a string contains a line break, and would look like two lines",
            )
            .hint("this command did not compress it: decompress it in the server"));
        }
        out.extend_from_slice(&text);
        out.push(b'\n');
        Ok(())
    })
}

fn grep(args: &UrlGrep, ui: &Ui) -> Result<u8> {
    let table = table(&args.codes.table, ui)?;
    let (low, high) = table.prefix(args.prefix.as_encoded_bytes());
    for_lines(&args.codes.file, ui, |line, out| {
        let code = code(line)?;
        if low <= code && code < high {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        Ok(())
    })
}

fn stats(args: &UrlStats, ui: &Ui) -> Result<u8> {
    let table = table(&args.table, ui)?;
    let mut measure = Measure::default();
    for_lines(&args.file, ui, |line, _| measure.add(&table, line))?;
    ui.answer(&UrlStatsAnswer::new(&table, &measure));
    Ok(exit::DONE)
}

fn code(line: &[u8]) -> Result<Vec<u8>> {
    lines::read(line).ok_or_else(|| {
        Error::failed("a line is not a code").hint("use the output of 'evenkeel url compress'")
    })
}

fn table(args: &UrlTable, ui: &Ui) -> Result<CodeTable> {
    table_at(args.table.as_deref(), ui)
}

/// Reads a table; without a path, the one that is built in.
pub(super) fn table_at(path: Option<&Path>, ui: &Ui) -> Result<CodeTable> {
    match path {
        None => CodeTable::shipped(),
        Some(path) => CodeTable::read(opened::read(path, "table file", ui.cancel())?),
    }
}

/// Gives each line of a file to `work`, and prints what that appends.
fn for_lines(
    path: &Path,
    ui: &Ui,
    mut work: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<u8> {
    // A code has two digits for each byte, and a string may be longer compressed.
    const LONGEST: u64 = 16 * MAX_LEN as u64;
    let mut input = open(path, ui)?;
    let (mut line, mut out) = (Vec::new(), Vec::with_capacity(2 * BATCH));
    let mut number = 0_u64;
    ui.progress().phase("reading lines", None, Unit::Items);
    loop {
        line.clear();
        let read = (&mut input).take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(|error| unread(path, error))? == 0 {
            break;
        }
        number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        work(&line, &mut out).map_err(|error| {
            Error::new(
                error.kind(),
                format!("failed at line {number} of {}", path.display()),
            )
            .because(error)
        })?;
        if number.is_multiple_of(1_000) {
            ui.cancel().check()?;
            ui.progress().advance(1_000);
        }
        if out.len() >= BATCH {
            written(&mut out)?;
        }
    }
    ui.progress().end();
    written(&mut out)?;
    Ok(exit::DONE)
}

/// Writes what was gathered, which is not an answer but data: it arrives, or the command fails.
fn written(out: &mut Vec<u8>) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(out)
        .and_then(|()| stdout.flush())
        .map_err(|error| Error::failed("failed to write the lines").because(error))?;
    out.clear();
    Ok(())
}

fn open(path: &Path, ui: &Ui) -> Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = opened::open(path).map_err(|error| unread(path, error))?;
    opened::wait(&file, ui.cancel()).map_err(|error| unread(path, error))?;
    ui.cancel().check()?;
    Ok(Box::new(BufReader::with_capacity(BATCH, file)))
}

fn unread(path: &Path, error: io::Error) -> Error {
    unreadable("file", path, error).hint("to read standard input, give -")
}
