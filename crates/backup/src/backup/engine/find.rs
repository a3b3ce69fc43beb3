//! Whether the server's own hot-copy tool can copy it, and which one that is.

use super::super::request::{ApplierWish, BackupRequest, LockWish, SnapshotChoice, Source};
use crate::engine::{Tool, Wanted};
use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::files::ServerFiles;
use std::path::Path;

/// Finds the tool for a running server, and refuses what it could not copy.
pub(in super::super) fn find(
    request: &BackupRequest,
    files: &ServerFiles,
    abilities: Option<&Abilities>,
) -> Result<Tool> {
    let Some(abilities) = abilities else {
        return Err(
            Error::usage("the hot-copy tool can copy only a running server")
                .hint("for a stopped server, use --snapshot copy"),
        );
    };
    if files.has_queues() {
        return Err(Error::refused(
            "the server has queues (ENGINE=QUEUE), and the hot-copy tool does not copy their files",
        )
        .hint("choose another --snapshot, such as btrfs or LVM; or drop the queues"));
    }
    if let Some(root) = files
        .roots
        .iter()
        .find(|root| root.id.starts_with("tablespaces-"))
    {
        return Err(Error::refused(format!(
            "tables lie outside the data directory, in {}: evenkeel cannot restore the tool's \
             copy of them",
            root.path.display()
        ))
        .hint(
            "choose another --snapshot, or move the tables (ALTER TABLE … without DATA DIRECTORY)",
        ));
    }
    if request.applier != ApplierWish::GoesOn {
        return Err(
            Error::usage("the SQL thread would be stopped for as long as the tool copies")
                .hint("remove --stop-applier, or choose another --snapshot"),
        );
    }
    if request.lock != LockWish::Auto {
        return Err(Error::usage("the hot-copy tool takes its own locks")
            .hint("remove --lock, or choose another --snapshot"));
    }
    Wanted::by(abilities).find(request.engine_tool.as_deref())
}

/// Returns what a tool would do for a running server, or why there is none, for `doctor`.
pub fn assess(files: &ServerFiles, abilities: &Abilities) -> Result<String> {
    let nowhere = Source::Live(Box::default());
    let request = BackupRequest::new(Path::new(""), nowhere, SnapshotChoice::Engine);
    let tool = find(&request, files, Some(abilities))?;
    Ok(format!(
        "{} {} copies the files and follows the redo log; it reads everything each time, and \
         commits wait at the end",
        tool.name, tool.version
    ))
}
