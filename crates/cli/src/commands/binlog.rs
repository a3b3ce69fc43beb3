//! `binlog`: archive binary logs, and show what is archived.

use crate::args::{Binlog, BinlogArchive, BinlogVerb};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::ExtractAnswer;
use evenkeel_backup::archive::{self, ArchiveRequest};
use evenkeel_op::{Result, Run, exit};

/// Runs the command.
pub fn run(args: &Binlog, ui: &Ui) -> Result<u8> {
    match &args.verb {
        BinlogVerb::Archive(args) => archive(args, ui),
        BinlogVerb::List(args) => {
            let repository = ui.repository(&args.repository)?;
            let repository = settings::unlock(repository, &args.keys, "binlog", ui.cancel())?;
            ui.answer(&archive::list(&repository)?);
            Ok(exit::DONE)
        }
        BinlogVerb::Extract(args) => {
            let repository = ui.repository(&args.repository)?;
            let repository = settings::unlock(repository, &args.keys, "binlog", ui.cancel())?;
            let (source, timeline) = (args.source.as_deref(), args.timeline.as_deref());
            let files = archive::extract(&repository, source, timeline, &args.into)?;
            ui.answer(&ExtractAnswer { files });
            Ok(exit::DONE)
        }
    }
}

fn archive(args: &BinlogArchive, ui: &Ui) -> Result<u8> {
    let place = ui.repository(&args.repository)?;
    let request = ArchiveRequest {
        repository: settings::unlock_archive(place, args, ui.cancel())?,
        server: settings::connect(&args.connection, "binlog", ui)?,
        until_current: args.until_current,
        allow_gap: args.allow_gap,
        rotate_bytes: args.rotate_bytes,
        rotate_after: args.rotate_seconds,
        semi_sync: args.semi_sync,
        compress: args.compress,
    };
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let report = archive::archive(&request, run)?;
    let partial = !report.gaps.is_empty() || report.does_not_follow.is_some();
    ui.answer(&report);
    Ok(if partial { exit::PARTIAL } else { exit::DONE })
}
