//! Backs up a server's files: once everything, then only what changed.

mod engine;
mod freeze;
mod held;
pub(crate) mod read;
mod request;
pub(crate) mod settle;
mod source_file;
mod survey;

pub use engine::assess as assess_engine;
pub use freeze::Moments;
pub use freeze::hold::{HeldImage, hold};
pub use request::{ApplierWish, BackupRequest, LockWish, RunKind, SnapshotChoice, Source};
pub use survey::layout_of;
pub use survey::stands_still::stands_still;

use crate::engine::Tool;
use crate::facts::{Facts, VOLUME_ROOT};
use crate::left_out::LeftOut;
use crate::report::{CorruptPage, GenerationReport};
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_repository::{Begin, Compression, Repository, Writer};
use evenkeel_server::coordinates::Coordinates;
use evenkeel_snapshot::Checked;
use freeze::Frozen;
use read::{ReadTotals, read_file};
use settle::Settled;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use survey::method::{Method, Moment};
use survey::origin::{self, Origin};
use survey::volumes;

/// A finished run.
#[derive(Debug, Clone)]
pub struct Done {
    /// The generation, as it is reported.
    pub report: GenerationReport,
    /// Pages that failed their checksum and were stored as they are.
    pub corrupt: Vec<CorruptPage>,
    /// When the image was taken, by this process's clock.
    pub instant: Moments,
    /// Why everything was read though there is a generation before it; nothing where only changes were.
    pub read_everything: Option<&'static str>,
}

/// Backs up, and returns what it came to. On an error the repository is as it was, and the server
/// has no lock, snapshot or stopped process of ours.
pub fn backup(request: &BackupRequest, run: Run<'_>) -> Result<Done> {
    let begun = Instant::now();
    let mut survey = survey::survey(request, run)?;
    survey::refuse_within(&survey.files, &request.repository)?;
    let repository = Repository::open_or_create(&request.repository)?;
    survey.settings.kept_for = repository.id().to_string();
    let server = ServerFacts::of(&survey);
    let origin = Origin::of(&survey);
    let writer = repository.begin(begin(request, origin.name()))?;
    // Only now: no other run can write beside this one.
    if !request.new_source {
        origin::refuse_other(&repository, &origin)?;
    }
    for note in writer.notes() {
        run.progress.note(note.clone());
    }
    fail::fail_point!("backup::begun");
    let base = writer.base();
    let token = base.as_ref().map(|base| base.token.as_str());
    let taken = match survey.engine.take() {
        Some(tool) => take_streamed(&survey, &tool, &writer, request, run, begun)?,
        None => take_frozen(survey, &server, &writer, request, token, run, begun)?,
    };
    let Taken {
        stored,
        snapshot,
        coordinates,
        instant,
        read_everything,
    } = taken;
    let committed = stored.and_then(|(facts, corrupt)| {
        let json =
            |error: serde_json::Error| Error::failed("failed to write the facts").because(error);
        let facts = serde_json::to_value(facts).map_err(json)?;
        let coordinates = serde_json::to_value(&coordinates).map_err(json)?;
        fail::fail_point!("backup::stored");
        Ok((writer.commit(facts, coordinates)?, corrupt))
    });
    fail::fail_point!("backup::committed");
    match committed {
        Ok((info, corrupt)) => {
            if let Some(snapshot) = snapshot {
                keep(snapshot, &info.token, corrupt.is_empty(), run);
            }
            let manifest = repository.manifest(info.generation)?;
            let mut report = crate::facts::report_of(&manifest)?;
            report.seconds = begun.elapsed().as_secs_f64();
            Ok(Done {
                report,
                corrupt,
                instant,
                read_everything,
            })
        }
        Err(error) => {
            // A snapshot that cannot be removed now is removed by the next run.
            let _ = snapshot.map(|snapshot| snapshot.abandon());
            Err(error)
        }
    }
}

/// Keeps the snapshot as the base of the next run. The generation exists already: without a base the next run
/// reads everything. So it does after one that stored corrupt pages: those do not change, and a run that reads
/// only what did would take them for sound.
fn keep(snapshot: Checked, token: &str, is_sound: bool, run: Run<'_>) {
    let outcome = match is_sound {
        true => snapshot.commit(token),
        false => snapshot.abandon(),
    };
    if let Err(error) = outcome {
        run.progress.warn(format!(
            "the snapshot could not be kept, so the next run will read everything: {}",
            error.chain()
        ));
    }
}

/// Says that the snapshot was lost, where that is why it could not be read.
fn lost(frozen: &Frozen, error: Error) -> Error {
    match frozen.snapshot.stayed_frozen() {
        Err(lost) if error.kind() == ErrorKind::Failed => lost.because(error),
        _ => error,
    }
}

/// What a run has stored, before it is committed.
struct Taken {
    stored: Result<(Facts, Vec<CorruptPage>)>,
    /// Holds the frozen files, to be kept or let go.
    snapshot: Option<Checked>,
    coordinates: Coordinates,
    instant: Moments,
    read_everything: Option<&'static str>,
}

/// Freezes the files and stores them.
fn take_frozen(
    survey: survey::Survey,
    server: &ServerFacts,
    writer: &Writer,
    request: &BackupRequest,
    token: Option<&str>,
    run: Run<'_>,
    begun: Instant,
) -> Result<Taken> {
    let frozen = freeze::freeze(survey, request, token, run)?;
    fail::fail_point!("backup::frozen");
    let stored = store(&frozen, writer, request, run).map_err(|error| lost(&frozen, error));
    let stored = stored.map(|(totals, settled)| {
        let facts = facts(&frozen, &totals, &settled, server, begun.elapsed());
        (facts, settled.corrupt)
    });
    let why = || frozen.snapshot.nothing_to_compare_with();
    let read_everything = token.and_then(|_| why());
    // A snapshot that did not last, or was not read to the end, goes here.
    let checked = stored.and_then(|stored| Ok((stored, frozen.snapshot.check()?)));
    let (stored, snapshot) = match checked {
        Ok((stored, snapshot)) => (Ok(stored), Some(snapshot)),
        Err(error) => (Err(error), None),
    };
    Ok(Taken {
        stored,
        read_everything,
        snapshot,
        coordinates: frozen.coordinates,
        instant: frozen.instant,
    })
}

/// Stores what the server's own tool copies.
fn take_streamed(
    survey: &survey::Survey,
    tool: &Tool,
    writer: &Writer,
    request: &BackupRequest,
    run: Run<'_>,
    begun: Instant,
) -> Result<Taken> {
    let has_base = writer.base().is_some();
    let taken = engine::take(survey, tool, writer, request, run)?;
    let facts = taken.facts(survey, begun.elapsed());
    Ok(Taken {
        stored: Ok((facts, taken.settled.corrupt)),
        snapshot: None,
        coordinates: taken.coordinates,
        instant: taken.instant,
        read_everything: Some("the server's own tool copies all files").filter(|_| has_base),
    })
}

fn begin(request: &BackupRequest, source: String) -> Begin {
    let kind = match request.kind {
        RunKind::Auto => evenkeel_repository::RunKind::Incremental,
        RunKind::Full => evenkeel_repository::RunKind::Full,
        RunKind::Against(number) => evenkeel_repository::RunKind::Against(number),
    };
    let mut begin = Begin::new(kind, source);
    begin.compression = match request.compression {
        // More threads than processors wait for each other, whatever else runs.
        Compression::ByLoad if request.workers > crate::default_workers() => {
            Compression::Level(request.compression.usual_level())
        }
        asked => asked,
    };
    begin
}

/// Stores every file, directory and link of the image.
fn store(
    frozen: &Frozen,
    writer: &Writer,
    request: &BackupRequest,
    run: Run<'_>,
) -> Result<(ReadTotals, Settled)> {
    let totals = read::read(frozen, writer, request, run)?;
    // The roots too: a server cannot work in a directory that is not its own.
    let roots = frozen.files.roots.iter().map(|root| (&root.id, &root.path));
    let roots = roots.filter(|(id, _)| *id != VOLUME_ROOT);
    let dirs = frozen.files.dirs.iter().map(|(name, path)| (name, path));
    for (name, path) in roots.chain(dirs) {
        writer.add(read_file::dir_meta(name, path)?)?;
    }
    let settled = settle::settle(frozen, &totals.findings, request, run)?;
    run.progress.end();
    Ok((totals, settled))
}

/// What is known of the server before anything is frozen.
struct ServerFacts {
    version: Option<String>,
    program: Option<String>,
    volumes: BTreeMap<String, String>,
}

impl ServerFacts {
    fn of(survey: &survey::Survey) -> Self {
        let program = survey
            .files
            .pid
            .and_then(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
        Self {
            version: survey
                .abilities
                .as_ref()
                .map(|abilities| abilities.version_text.clone()),
            program: program.map(|path| path.to_string_lossy().into_owned()),
            volumes: volumes::places(&survey.layout, &survey.files),
        }
    }
}

fn facts(
    frozen: &Frozen,
    totals: &ReadTotals,
    settled: &Settled,
    server: &ServerFacts,
    elapsed: Duration,
) -> Facts {
    let method = match frozen.choice.method {
        Method::Still => "/stopped",
        Method::Splice => "/splice",
        Method::Pause => "/pause",
        Method::Atomic => "",
    };
    let moment = match frozen.choice.moment {
        Moment::None => "none",
        Moment::BlockCommit => "block-commit",
        Moment::BlockCommitAndStop => "block-commit-stop",
        Moment::GlobalRead => "global-read",
        Moment::Stop => "stop",
    };
    let roots = frozen.files.roots.iter();
    Facts {
        snapshot: format!("{}{method}", frozen.snapshot.name()),
        moment: moment.to_owned(),
        bytes_read: totals.bytes_read.load(Ordering::Relaxed),
        bytes_changed: totals.bytes_changed.load(Ordering::Relaxed),
        pages_checked: totals.findings.checked(),
        pages_torn: settled.torn,
        pages_corrupt: settled.corrupt.len() as u64,
        corrupt: settled.corrupt.clone(),
        seconds: elapsed.as_secs_f64(),
        image_at: frozen.instant.ended_at(),
        rested_s: totals.rested.as_secs_f64(),
        lock_ms: frozen.held.lock.as_secs_f64() * 1000.0,
        write_pause_ms: frozen.held.writes_stopped.as_secs_f64() * 1000.0,
        applier_ms: frozen.applier_stood.as_secs_f64() * 1000.0,
        source_coordinates: frozen.source_coordinates.clone(),
        server_version: server.version.clone(),
        server_program: server.program.clone(),
        settings: frozen.files.settings.clone(),
        roots: roots
            .map(|root| (root.id.clone(), root.path.display().to_string()))
            .collect(),
        volumes: server.volumes.clone(),
        tables: frozen.tables.clone(),
        left_out: Some(LeftOut::of(&frozen.files.excluded)),
    }
}
