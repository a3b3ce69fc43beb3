//! A dump's directory, loaded into a server in parallel.
//!
//! | file | what |
//! |---|---|
//! | `request` | what to load, and how |
//! | `source`, `open` | what there is to load: objects, tables, chunks |
//! | `choose` | what of it is wanted, and what others miss then |
//! | `into` | which schema is loaded under which name |
//! | `foreign` | directories that other programs wrote |
//! | `target` | sessions, what is in the way, `local_infile` |
//! | `lost` | what the target reads and does not keep, also reported |
//! | `fits` | what the target cannot hold, said before anything is made |
//! | `state` | how far it has come, in the target |
//! | `queue` | who loads which chunk |
//! | `chunk` | a file, unpacked and checked on its way |
//! | `rows` | N threads; a chunk and its note commit together |
//! | `insert` | rows as INSERT statements |
//! | `warned` | warnings of values that go in as they were |
//! | `build` | everything that is not rows |
//! | `verify` | are the rows there the rows here? |

mod build;
mod choose;
mod chunk;
mod csv;
mod fits;
mod foreign;
mod insert;
mod into;
mod lost;
mod open;
mod queue;
mod request;
mod rows;
mod source;
mod state;
mod target;
mod verify;
mod warned;

pub use request::{Method, Request};

use crate::objects::ObjectName;
use build::Builder;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::options::ConnectOptions;
use source::Source;
use state::LoadState;
use std::time::Instant;

/// What a load would do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// An earlier run of this load would be resumed.
    pub resumes: bool,
    /// What would be dropped first.
    pub drops: Vec<ObjectName>,
    /// Tables.
    pub tables: u64,
    /// Rows; `None` where the dump does not say how many there are.
    pub rows: Option<u64>,
    /// Of the dump, what would not be loaded.
    pub left_out: Vec<ObjectName>,
    /// What the user has to deal with.
    pub warnings: Vec<String>,
}

/// What was loaded.
#[derive(Debug)]
pub struct Report {
    /// An earlier run was resumed.
    pub resumed: bool,
    /// Tables.
    pub tables: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of these rows before they were packed; of another program's packed files, as they are.
    pub bytes: u64,
    /// Which point in time of its server's binary log the dump shows.
    pub coordinates: Coordinates,
    /// Files of rows.
    pub chunks: u64,
    /// Of these, how many this run brought in; earlier ones brought the others.
    pub chunks_loaded: u64,
    /// Of the dump, what was not to be loaded.
    pub left_out: Vec<ObjectName>,
    /// What the user has to deal with.
    pub warnings: Vec<String>,
    /// Objects that could not be made: everything else is there.
    pub failed: Vec<Error>,
    /// What this server reads in definitions and does not keep, a sentence each, also when an earlier run said so.
    pub lost: Vec<String>,
    /// Tables whose rows are not those of the dump, a sentence each; `None` when it was not asked for.
    pub differs: Option<Vec<String>>,
    /// Wall clock time in seconds.
    pub seconds: f64,
}

/// Says what a load would do, and changes nothing.
///
/// Errors: as [`load`], but for what is in the way.
pub fn plan(options: &ConnectOptions, request: &Request) -> Result<Plan> {
    let source = Source::open(request)?;
    let mut session = target::session(options, request)?;
    into::kept(&mut session, request)?;
    let resumes = resumed(&mut session, &source, request)?.is_some();
    let drops = match resumes {
        true => Vec::new(),
        false => target::in_the_way(&mut session, &source.objects)?,
    };
    Ok(Plan {
        resumes,
        drops,
        tables: source.tables.len() as u64,
        rows: source.rows(),
        left_out: source.left_out,
        warnings: source.warnings,
    })
}

/// Loads, or resumes a load that was interrupted.
///
/// Errors: `Usage` for what is no dump; `Refused` for what the server cannot hold, has already, or
/// does not allow, before anything was made; `Busy` while another load is at work there; `Failed`
/// names the file or the table. After an error the same request continues from where it was.
pub fn load(
    options: &ConnectOptions,
    request: &Request,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Report> {
    let begun = Instant::now();
    let mut source = Source::open(request)?;
    let mut session = target::session(options, request)?;
    into::kept(&mut session, request)?;
    state::only_one(&mut session)?;
    let earlier = resumed(&mut session, &source, request)?;
    tell(&mut session, &mut source, progress)?;
    fits::collations(&mut session, &mut source.objects, request)?;
    let abilities = Abilities::probe(&mut session)?;
    source.objects.translate(&abilities.table_dialect);
    let resumed = earlier.is_some();
    let state = match earlier {
        Some(state) => resume(state, progress),
        None => begin(&mut session, &source, request, progress, cancel)?,
    };
    let run = Run {
        builder: Builder {
            options,
            request,
            source: &source,
            state: &state,
            resumed,
            progress,
            cancel,
        },
    };
    let done = match state.finished {
        true => Ok(Done::default()),
        false => run.all(&mut session),
    };
    // Also after an error: the switch is not ours. The session may be gone by now.
    let closed = target::close_the_way(&mut session).or_else(|_| close_anew(options, request));
    let done = done?;
    closed?;
    let rows = match source.rows() {
        Some(rows) => rows,
        None => state::taken(&mut session)?.values().map(|one| one.0).sum(),
    };
    if done.failed.is_empty() {
        LoadState::end(&mut session)?;
    }
    Ok(Report {
        resumed,
        tables: source.tables.len() as u64,
        rows,
        bytes: source.tables.iter().map(source::SourceTable::bytes).sum(),
        coordinates: source.coordinates,
        chunks: source
            .tables
            .iter()
            .map(|one| one.chunks.len() as u64)
            .sum(),
        chunks_loaded: done.chunks,
        left_out: source.left_out,
        warnings: source.warnings,
        failed: done.failed,
        lost: state.lost.clone(),
        differs: done.differs,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// Completes what another program's files leave out, and tells what is worth telling of them.
fn tell(session: &mut Session, source: &mut Source, progress: &dyn Progress) -> Result<()> {
    for note in source.notes.iter().chain(&source.warnings) {
        progress.warn(note.clone());
    }
    if source.foreign && foreign::settle(session, &mut source.objects)? {
        progress.warn(
            "the dump does not contain the sql_mode of its stored programs or the time zone \
             of its events: they get this server's"
                .to_owned(),
        );
    }
    Ok(())
}

/// Puts `local_infile` back in a new session, unless another run is at work by now, which needs it
/// and puts it back itself.
fn close_anew(options: &ConnectOptions, request: &Request) -> Result<()> {
    let mut session = target::session(options, request)?;
    match state::only_one(&mut session) {
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        other => other.and_then(|()| target::close_the_way(&mut session)),
    }
}

/// Returns what an earlier run of this load noted.
///
/// Errors: `Usage` when it is this dump's, with other options; `Refused` when another dump's did not
/// come to its end.
fn resumed(session: &mut Session, source: &Source, request: &Request) -> Result<Option<LoadState>> {
    match LoadState::read(session)? {
        // It was killed when all was done.
        Some(state) if state.id != source.id && state.finished => Ok(None),
        Some(state) if state.id != source.id && state.dump == source.dump => {
            Err(Error::usage(format!(
                "a load of this dump was started with other options: {}; now they are {}",
                state.choices,
                request.choices()
            ))
            .hint("use the original options to resume it")
            .hint(format!(
                "to abandon it, drop what it created and the database {}",
                state::SCHEMA
            )))
        }
        Some(state) if state.id != source.id => Err(Error::refused(
            "another load on this server is unfinished",
        )
        .hint(format!(
            "run it again with the same options to resume it. To abandon it, drop \
             what it created and the database {}",
            state::SCHEMA
        ))),
        other => Ok(other),
    }
}

/// Says what the run that began said, which alone tried the tables.
fn resume(state: LoadState, progress: &dyn Progress) -> LoadState {
    progress.note("resuming an earlier run of this load".to_owned());
    for what in &state.lost {
        progress.warn(what.clone());
    }
    state
}

/// Looks whether everything fits and nothing is in the way, and begins the state.
fn begin(
    session: &mut Session,
    source: &Source,
    request: &Request,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<LoadState> {
    let found = target::in_the_way(session, &source.objects)?;
    if !found.is_empty() && !request.replace {
        return Err(target::refuse(&found));
    }
    fits::history(session, source)?;
    let lost = fits::all(session, &source.objects, progress, cancel)?;
    for what in &lost {
        progress.warn(what.clone());
    }
    session.run("SET SESSION foreign_key_checks = 0")?;
    for object in &found {
        session.run(&target::drop_statement(object))?;
        fail::fail_point!("load::dropped");
    }
    let state = LoadState::begin(session, source, &request.choices(), lost)?;
    fail::fail_point!("load::begun");
    Ok(state)
}

/// What a run has done.
#[derive(Default)]
struct Done {
    failed: Vec<Error>,
    chunks: u64,
    differs: Option<Vec<String>>,
}

/// One run.
struct Run<'a> {
    builder: Builder<'a>,
}

impl Run<'_> {
    /// Does what is not done; before anything can fire, the rows are verified.
    fn all(&self, session: &mut Session) -> Result<Done> {
        let Builder {
            options,
            request,
            source,
            state,
            progress,
            cancel,
            ..
        } = self.builder;
        let mut failed = self.builder.before_rows(session)?;
        let chunks = rows::load(session, (options, request), source, state, progress, cancel)?;
        fail::fail_point!("load::rows");
        let taken = state::taken(session)?;
        failed.extend(rows::missing(source, &taken));
        let differs = match request.verify {
            true => Some(verify::differences(
                (options, request),
                source,
                &taken,
                progress,
                cancel,
            )?),
            false => None,
        };
        failed.extend(self.builder.after_rows(session)?);
        Ok(Done {
            failed,
            chunks,
            differs,
        })
    }
}
