//! `dump`.

use crate::args::{self, Dump, DumpFormat, DumpLock};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::DumpAnswer;
use evenkeel_logical::dump::{
    self, Compression, Directory, DumpLocation, Filter, Format, Leftover, Masks, Request,
    Throttling,
};
use evenkeel_logical::objects::Selection;
use evenkeel_op::{Error, Result, exit};
use evenkeel_server::lock::LockChoice;
use evenkeel_server::options::ConnectOptions;
use std::io;
use std::path::Path;

/// The smallest size that files are cut to, in bytes: smaller ones are only more of them.
const CHUNK_MIN: u64 = 1 << 16;

/// Runs the command.
pub fn run(args: &args::Dump, ui: &Ui) -> Result<u8> {
    let mut request = request(args)?;
    let options = settings::connect(&args.connection, "dump", ui)?;
    let named = args.throttle_host.as_deref().map(|host| at(host, &options));
    request.throttle.replicas = named.into_iter().collect();
    let (progress, cancel) = (ui.progress(), ui.cancel());
    if is_stream(args) {
        let report = dump::stream(&options, &request, &mut io::stdout(), progress, cancel)?;
        ui.answer_aside(&DumpAnswer::new(None, report));
        return Ok(exit::DONE);
    }
    let directory = Directory {
        place: place(&args.output, ui)?,
        leftover: leftover(args),
    };
    let report = dump::dump(&options, &request, &directory, progress, cancel)?;
    ui.answer(&DumpAnswer::new(Some(&args.output), report));
    Ok(exit::DONE)
}

/// Returns the directory or the bucket that a word means.
pub(super) fn place(word: &Path, ui: &Ui) -> Result<DumpLocation> {
    Ok(match settings::is_url(word) {
        true => DumpLocation::Store(ui.location(word, None)?.store()),
        false => DumpLocation::Directory(word.to_owned()),
    })
}

fn leftover(args: &Dump) -> Leftover {
    match (args.resume, args.overwrite_unfinished) {
        (true, _) => Leftover::GoOn,
        (_, true) => Leftover::Clear,
        _ => Leftover::Refuse,
    }
}

/// Returns whether the dump is a script on standard output.
pub(super) fn is_stream(args: &Dump) -> bool {
    args.output.as_os_str() == "-"
}

/// Returns options that lead to another host with the same account.
fn at(host: &str, options: &ConnectOptions) -> ConnectOptions {
    let (name, port) = match host
        .rsplit_once(':')
        .map(|(name, port)| (name, port.parse()))
    {
        Some((name, Ok(port))) => (name, Some(port)),
        _ => (host, None),
    };
    ConnectOptions {
        host: Some(name.to_owned()),
        port: port.or(options.port),
        ..options.clone()
    }
}

fn request(args: &Dump) -> Result<Request> {
    if args.chunk_size < CHUNK_MIN {
        return Err(Error::usage("--chunk-size is less than 64K"));
    }
    if is_stream(args) {
        let given = [
            (
                args.format.is_some_and(|format| format != DumpFormat::Sql),
                "that --format",
            ),
            (args.compress.is_some(), "--compress"),
            (args.overwrite_unfinished, "--overwrite-unfinished"),
            (args.resume, "--resume"),
        ];
        if let Some((_, flag)) = given.into_iter().find(|(is_given, _)| *is_given) {
            return Err(
                Error::usage(format!("{flag} cannot be used with --output -"))
                    .hint("a script is SQL, and can be piped through a compressor"),
            );
        }
    }
    Ok(Request {
        threads: usize::from(args.threads),
        filter: Filter::new(selection(args)?, &args.conditions)?
            .with_history(args.history)
            .with_masks(masks(args)?),
        format: match args.format {
            Some(DumpFormat::Sql) => Format::Sql,
            Some(DumpFormat::Csv) => Format::Csv,
            Some(DumpFormat::CsvHeader) => Format::CsvHeader,
            Some(DumpFormat::Tab) | None => Format::Tab,
        },
        compression: match &args.compress {
            Some(how) => how.parse()?,
            None => Compression::default(),
        },
        chunk_bytes: args.chunk_size,
        lock: match args.lock {
            DumpLock::Auto => Some(LockChoice::Auto),
            DumpLock::Stage => Some(LockChoice::BackupStage),
            DumpLock::Ftwrl => Some(LockChoice::GlobalRead),
            DumpLock::None => None,
        },
        limits: settings::limits(&args.locking),
        definer: args.definer.parse()?,
        throttle: Throttling {
            threads_running: args.max_threads_running,
            lag: args.max_lag,
            replicas: Vec::new(),
        },
    })
}

fn masks(args: &Dump) -> Result<Masks> {
    let key = args.mask_key_file.as_deref().map(settings::mask_key);
    let masks = Masks::new(&args.masks, key.transpose()?)?;
    if args.resume && !masks.can_be_repeated() {
        return Err(Error::usage(
            "--resume needs --mask-key-file: the existing files were masked with a key that was discarded",
        )
        .hint("start again with --overwrite-unfinished, or give each run the same --mask-key-file"));
    }
    Ok(masks)
}

fn selection(args: &Dump) -> Result<Selection> {
    Ok(Selection {
        databases: args.database.clone(),
        include: Selection::patterns(&args.table)?,
        exclude: Selection::patterns(&args.exclude)?,
        views: !args.no_views,
        triggers: !args.no_triggers,
        routines: !args.no_routines,
        events: !args.no_events,
        accounts: args.users,
    })
}
