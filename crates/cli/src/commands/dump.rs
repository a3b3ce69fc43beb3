//! `dump`.

use crate::args::{self, Dump, DumpFormat, DumpLock};
use crate::settings;
use crate::show::Face;
use crate::show::answers::DumpAnswer;
use evenkeel_logical::dump::{self, Filter, Format, Request};
use evenkeel_logical::objects::Selection;
use evenkeel_op::{Error, Result, exit};
use evenkeel_server::lock::LockChoice;

/// The smallest size that files are cut to, in bytes: smaller ones are only more of them.
const CHUNK_MIN: u64 = 1 << 16;

/// Runs the command.
pub fn run(args: &args::Dump, face: &Face) -> Result<u8> {
    let request = request(args)?;
    let options = settings::connect(&args.connection, "dump", face)?;
    let report = dump::dump(&options, &request, face.progress(), face.cancel())?;
    face.answer(&DumpAnswer::new(&request, report));
    Ok(exit::DONE)
}

fn request(args: &Dump) -> Result<Request> {
    if args.chunk_size < CHUNK_MIN {
        return Err(Error::usage("--chunk-size is less than 64K"));
    }
    Ok(Request {
        output: args.output.clone(),
        overwrite_unfinished: args.overwrite_unfinished,
        threads: usize::from(args.threads),
        filter: Filter::new(selection(args)?, &args.conditions)?,
        format: match args.format {
            DumpFormat::Tab => Format::Tab,
            DumpFormat::Sql => Format::Sql,
        },
        compression: args.compress.parse()?,
        chunk_bytes: args.chunk_size,
        lock: match args.lock {
            DumpLock::Auto => Some(LockChoice::Auto),
            DumpLock::Stage => Some(LockChoice::BackupStage),
            DumpLock::Ftwrl => Some(LockChoice::GlobalRead),
            DumpLock::None => None,
        },
        limits: settings::limits(&args.locking),
    })
}

fn selection(args: &Dump) -> Result<Selection> {
    let patterns = |list: &[String]| list.iter().map(|text| Selection::pattern(text)).collect();
    Ok(Selection {
        databases: args.database.clone(),
        include: patterns(&args.table)?,
        exclude: patterns(&args.exclude)?,
        views: !args.no_views,
        triggers: !args.no_triggers,
        routines: !args.no_routines,
        events: !args.no_events,
        accounts: args.users,
    })
}
