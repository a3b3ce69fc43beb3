//! Backs up through the server's own hot-copy tool, where the filesystem can freeze nothing.
//!
//! ```text
//! tool ──► pipe ──► xbstream ──► leaves of 256 blocks ──► workers: check, compare, compress
//!   └──► standard error: its locks, its last words
//! ```
//!
//! The tool copies every page and follows the redo log, so it reads everything each time; what is as
//! in the base is not stored again. It takes its locks itself, at the end of the copy.

mod blocks;
mod files;
mod find;
mod notes;
mod xbstream;

pub use find::assess;
pub(super) use find::find;

use super::freeze::Moments;
use super::request::{BackupRequest, Source};
use super::settle::{self, Settled};
use super::survey::Survey;
use crate::engine::{self, OptionFile, Ticks, Tool};
use crate::facts::Facts;
use crate::left_out::LeftOut;
use crate::tables::{self, TableRecord};
use blocks::Streamed;
use evenkeel_op::{Error, Result, Run, Unit};
use evenkeel_repository::Writer;
use evenkeel_server::abilities::{Abilities, HotCopyTool};
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::tables::ServerTables;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Threads with which the tool copies, at most: more only makes the disk seek.
const TOOL_THREADS: usize = 4;

/// What a copy came to.
pub(super) struct Taken {
    pub(super) coordinates: Coordinates,
    pub(super) settled: Settled,
    pub(super) instant: Moments,
    streamed: Streamed,
    ticks: Ticks,
    tool: Tool,
    tables: Option<TableRecord>,
}

/// Runs the tool and stores what it sends.
pub(super) fn take(
    survey: &Survey,
    tool: &Tool,
    writer: &Writer,
    request: &BackupRequest,
    run: Run<'_>,
) -> Result<Taken> {
    let Source::Live(connect) = &request.source else {
        return Err(Error::usage(
            "the hot-copy tool can copy only a running server",
        ));
    };
    let before = coordinates_now(connect)?;
    let mut listed = tables::listed_now(connect, &request.limits)?;
    // Not only after everything was copied: engines that are not covered.
    tables::of_server(&listed, &survey.files, |file| file.path.clone())?;
    let options = OptionFile::of(connect)?;
    let command = command(tool, &options, survey, request);
    run.progress
        .phase(&format!("streaming from {}", tool.name), None, Unit::Bytes);
    fail::fail_point!("backup::engine::starting");
    let begin = Instant::now();
    let ended = engine::run(tool, command, &request.limits, run, |pipe, noted| {
        blocks::store(pipe, noted, survey, writer, request, run)
    })?;
    let end = Instant::now();
    run.progress.end();
    fail::fail_point!("backup::engine::streamed");
    let mut streamed = ended.taken;
    add_dirs(&survey.files, &streamed.dirs, writer)?;
    let coordinates = notes::coordinates(&streamed.notes)?;
    notes::check(&coordinates, &before, &coordinates_now(connect)?)?;
    listed.keep_common(&tables::listed_now(connect, &request.limits)?);
    let tables = Some(all_tables(&listed, &survey.files, &streamed)?);
    let (suspects, more) = streamed.totals.findings.take();
    let corrupt = settle::judge(suspects, more, request, run)?;
    streamed.notes.clear();
    Ok(Taken {
        coordinates,
        settled: Settled { corrupt, torn: 0 },
        instant: Moments { begin, end },
        streamed,
        ticks: ended.ticks,
        tool: tool.clone(),
        tables,
    })
}

fn coordinates_now(connect: &ConnectOptions) -> Result<Coordinates> {
    let mut session = Session::open(connect)?;
    let abilities = Abilities::probe(&mut session)?;
    Coordinates::read(&mut session, &abilities)
}

/// Compares what came with what the server had before and after.
fn all_tables(
    listed: &ServerTables,
    files: &ServerFiles,
    streamed: &Streamed,
) -> Result<TableRecord> {
    let names = streamed.names.iter().map(String::as_str);
    let dirs = files.dirs.iter().map(|(name, _)| name);
    let dirs = dirs.chain(&streamed.dirs).map(String::as_str);
    let checked = tables::of_copy(listed, files, names, dirs)?;
    // What was made, renamed or dropped meanwhile has its name once it is prepared, and not before.
    if checked.lacking.is_empty() || streamed.names.iter().any(|name| is_of_ddl(name)) {
        return Ok(checked.record);
    }
    Err(tables::lacking(&checked.lacking, files)
        .hint("if tables were created, renamed or dropped meanwhile, run it again"))
}

/// Whether the tool says by a file that a table was made, renamed or dropped while it copied.
fn is_of_ddl(name: &str) -> bool {
    let end = name.rsplit_once('.').map(|(_, end)| end);
    matches!(end, Some("new" | "ren" | "del"))
}

/// What is there and did not come.
fn left_out(files: &ServerFiles, streamed: &Streamed) -> Vec<LeftOut> {
    let came = |file: &FoundFile| {
        let own = file.path.file_name().unwrap_or_default().to_string_lossy();
        let stem = file
            .name
            .rsplit_once('.')
            .map_or(&*file.name, |(stem, _)| stem);
        // What lies elsewhere comes on top; a table that was re-created comes as .new.
        [
            file.name.clone(),
            format!("{}/{own}", files::ROOT),
            format!("{stem}.new"),
        ]
        .iter()
        .any(|name| streamed.names.contains(name))
    };
    let others = files.files.iter().filter(|file| {
        // The redo log comes by another name.
        file.class != FileClass::InnodbRedo && !came(file) && file.path.exists()
    });
    let others = others.map(|file| (file.path.as_path(), file.size));
    let mut rules = LeftOut::of(&files.excluded);
    rules.extend(LeftOut::of_files("not copied by the server's tool", others));
    rules
}

/// Returns what is run. Nothing of the connection is in it.
/// Returns which tool makes the stream.
fn maker(survey: &Survey) -> HotCopyTool {
    let abilities = survey.abilities.as_ref();
    abilities.map_or(HotCopyTool::XtraBackup, |server| server.hot_copy_tool)
}

fn command(tool: &Tool, options: &OptionFile, survey: &Survey, request: &BackupRequest) -> Command {
    let with = |option: &str, path: &Path| {
        let mut whole = std::ffi::OsString::from(option);
        whole.push(path);
        whole
    };
    let mut command = Command::new(&tool.program);
    // It has to be the first.
    command.arg(options.option());
    command.args(["--backup", "--stream=xbstream"]);
    command.arg(format!(
        "--parallel={}",
        request.workers.clamp(1, TOOL_THREADS)
    ));
    // Nothing is written there, but it has to be named, and to exist.
    command.arg("--target-dir=/tmp");
    match maker(survey) {
        // Corrupt pages come through, so that they can be reported by table and index.
        HotCopyTool::MariaDbBackup => command.arg("--log-innodb-page-corruption"),
        HotCopyTool::XtraBackup => command.arg(with("--datadir=", &survey.files.datadir)),
    };
    command
}

/// Adds the server's directories, which a stream does not name, and those that it does.
fn add_dirs(files: &ServerFiles, named: &BTreeSet<String>, writer: &Writer) -> Result<()> {
    let inside = |name: &str| name == files::ROOT || name.starts_with("data/");
    let mut added = BTreeSet::new();
    for (name, path) in files.dirs.iter().filter(|(name, _)| inside(name)) {
        // It may have been dropped since; then the copy has nothing of it.
        if path.is_dir() || named.contains(name) {
            writer.add(files::dir_meta(name, path, &files.datadir)?)?;
            added.insert(name.clone());
        }
    }
    for name in named.iter().filter(|name| !added.contains(*name)) {
        let path = files::original(name, &files.datadir);
        writer.add(files::dir_meta(name, &path, &files.datadir)?)?;
    }
    Ok(())
}

impl Taken {
    /// Returns the facts of the generation.
    pub(super) fn facts(&self, survey: &Survey, elapsed: Duration) -> Facts {
        let totals = &self.streamed.totals;
        let files = &survey.files;
        let datadir = files.datadir.display().to_string();
        Facts {
            snapshot: engine::snapshot_of(self.tool.name),
            moment: "tool".to_owned(),
            bytes_read: totals.bytes_read.load(Ordering::Relaxed),
            bytes_changed: totals.bytes_changed.load(Ordering::Relaxed),
            pages_checked: totals.findings.checked(),
            pages_torn: 0,
            pages_corrupt: self.settled.corrupt.len() as u64,
            corrupt: self.settled.corrupt.clone(),
            seconds: elapsed.as_secs_f64(),
            image_at: self.instant.ended_at(),
            rested_s: totals.rested.as_secs_f64(),
            lock_ms: self.ticks.lock.as_secs_f64() * 1000.0,
            write_pause_ms: self.ticks.writes_stopped.as_secs_f64() * 1000.0,
            server_version: survey.abilities.as_ref().map(|a| a.version_text.clone()),
            server_program: None,
            settings: notes::settings(&files.settings),
            // Wherever they lay: the tool puts everything into one directory.
            roots: [(files::ROOT.to_owned(), datadir)].into(),
            volumes: Default::default(),
            source_coordinates: Vec::new(),
            applier_ms: 0.0,
            tables: self.tables.clone(),
            left_out: Some(left_out(files, &self.streamed)),
        }
    }
}

#[cfg(test)]
mod tests;
