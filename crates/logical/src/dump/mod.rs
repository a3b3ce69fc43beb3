//! One consistent view of a server's tables, written in parallel as files.
//!
//! | file | what |
//! |---|---|
//! | `request` | what to dump, and how |
//! | `filter` | which objects are meant, and which rows |
//! | `place`, `output`, `bucket`, `file_names` | a directory, or a prefix of a bucket, that is a dump only once its manifest is in it |
//! | `catalog`, `table`, `column` | the tables with their columns and keys, and whether they changed meanwhile |
//! | `definitions` | the files of what is not rows |
//! | `snapshot` | N connections that all see one point in time |
//! | `chunks`, `predicate` | ranges of a table's key, sized by the rows seen |
//! | `history` | old rows of system-versioned tables |
//! | `encode` | a row's cells as tab-separated text or as INSERT |
//! | `mask` | other values in the place of those that are not to be seen |
//! | `write`, `compression` | one chunk: encoded, hashed, compressed |
//! | `work`, `threads` | N threads, the largest tables first |
//! | `stream_rows` | rows as encoded bytes, however long a row is |
//! | `stream`, `script` | all of it as one ordered script |
//! | `sum` | rows as a number that no order changes, to compare by |
//! | `manifest` | what is in the directory |
//! | `journal` | what was written so far, for whoever continues |
//! | `kept`, `untouched`, `statement`, `cascades`, `shapes` | what of it the new view shows too, proved by the binary log |

mod bucket;
mod cascades;
mod catalog;
mod chunks;
mod column;
mod compression;
mod definitions;
mod encode;
mod file_names;
mod filter;
mod history;
mod journal;
mod kept;
mod location;
mod manifest;
mod mask;
mod members;
mod output;
mod predicate;
mod request;
mod script;
mod shapes;
mod snapshot;
mod statement;
mod stream;
mod stream_rows;
mod sum;
mod table;
mod threads;
mod untouched;
mod work;
mod write;

pub use compression::Compression;
pub use encode::Format;
pub(crate) use encode::csv::is_hex;
pub use evenkeel_server::throttle::Limits as Throttling;
pub use filter::Filter;
pub(crate) use history::end_of_time;
pub use kept::Resumed;
pub use location::DumpLocation;
pub use manifest::{
    ChunkEntry, ColumnEntry, MANIFEST, MANIFEST_SCHEMA, Manifest, ObjectsEntry, RowTime,
    SchemaEntry, ServerEntry, TableEntry,
};
pub use mask::{MaskKey, Masked, Masks};
pub(crate) use members::has_empty_member;
pub use request::{Directory, Leftover, Request};
pub(crate) use sum::{Sum, count};

use catalog::Look;
use evenkeel_op::{Cancel, Error, Progress, Result, Run, Unit};
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::lock::Held;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::throttle::Throttle;
use journal::{Journal, Left, LeftTable, View};
use kept::{Grounds, Kept};
use output::Output;
use snapshot::Snapshot;
use std::io::Write;
use std::time::Instant;
use table::DumpTable;

/// What was dumped.
#[derive(Debug, Clone)]
pub struct Report {
    /// Tables.
    pub tables: u64,
    /// Rows.
    pub rows: u64,
    /// Files of rows.
    pub chunks: u64,
    /// Bytes of rows before they were packed.
    pub bytes: u64,
    /// Bytes of rows as they lie in the files.
    pub bytes_stored: u64,
    /// Wall clock time in seconds.
    pub seconds: f64,
    /// Of it, how long readers rested because of others, in seconds.
    pub rested: f64,
    /// How long the lock stood.
    pub held: Held,
    /// Where in the binary log the view is.
    pub coordinates: Coordinates,
    /// The system-versioned tables of which only the rows of today were dumped, by schema and name.
    pub history_left_out: Vec<String>,
    /// What became of what was there, when a dump was resumed.
    pub resumed: Option<Resumed>,
    /// What was masked; none: nothing.
    pub masked: Option<Masked>,
}

impl Report {
    /// Adds what was left out, and what was masked.
    fn beside(mut self, look: &Look, request: &Request, tables: &[DumpTable]) -> Self {
        self.history_left_out = history::left_out(&look.objects, request.filter.history);
        self.masked = request.filter.masks.reported(tables);
        self
    }
}

/// Tries at a snapshot during which no table changed its shape.
const TRIES: usize = 5;

/// Looks at what there is before anything is made or locked, and says what of the request is not there.
fn first_look(
    options: &ConnectOptions,
    request: &Request,
    progress: &dyn Progress,
) -> Result<(Session, Look)> {
    let mut session = catalog::session(options)?;
    let look = Look::at(&mut session, &request.filter)?;
    look.tables(&request.filter)?;
    look.unmatched
        .warnings()
        .for_each(|text| progress.warn(text));
    Ok((session, look))
}

/// Takes the place of a dump, unless it is another's or there is nothing to put there.
fn look_and_take(
    options: &ConnectOptions,
    request: &Request,
    directory: &Directory,
    progress: &dyn Progress,
) -> Result<((Session, Look), Output)> {
    Output::refuse_others(&directory.place)?;
    let looked = first_look(options, request, progress)?;
    let output = Output::begin(&directory.place, directory.leftover)?;
    Ok((looked, output))
}

/// What a dump begins with.
struct Begun {
    session: Session,
    snapshot: Snapshot,
    look: Look,
    tables: Vec<DumpTable>,
    throttle: Throttle,
    view: View,
}

/// Takes the view and says what it holds.
fn begin(
    options: &ConnectOptions,
    request: &Request,
    (mut session, before): (Session, Look),
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Begun> {
    let throttle = Throttle::open(options, &request.throttle)?;
    let clock = untouched::clock(&mut session)?;
    let looked = (&mut session, before);
    let (snapshot, mut look) = one_instant(options, looked, request, progress, cancel)?;
    look.objects.set_definer(&request.definer);
    let tables = look.tables(&request.filter)?;
    request.filter.masks.clean(&mut look.objects, &tables);
    progress.note(format!(
        "one view over {}, locked for {}",
        evenkeel_op::units::count(request.threads, "connection"),
        evenkeel_op::units::duration(snapshot.held.lock)
    ));
    warn(&look, &tables, request, progress);
    fail::fail_point!("dump.snapshot-taken");
    let mut view = View::new(request, snapshot.coordinates.clone());
    untouched::describe(&mut view, clock, &mut session)?;
    Ok(Begun {
        session,
        snapshot,
        look,
        tables,
        throttle,
        view,
    })
}

/// Dumps into a directory. An error leaves one that says it is unfinished, and no lock.
///
/// Errors: `Usage` for a directory that holds something else, `Busy` for one that another dump
/// writes to, `LockTimeout`, `Unreachable`, `Refused` as the server has them; `Failed` names the
/// table that was changed meanwhile.
pub fn dump(
    options: &ConnectOptions,
    request: &Request,
    directory: &Directory,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Report> {
    let begun = Instant::now();
    let (looked, output) = look_and_take(options, request, directory, progress)?;
    let left = output.dir().and_then(|dir| Left::read(&dir));
    let is_left = left.is_some();
    let Begun {
        mut session,
        snapshot,
        look,
        tables,
        throttle,
        view,
    } = begin(options, request, looked, progress, cancel)?;
    let grounds = Grounds {
        options,
        session: &mut session,
        look: &look,
        tables: &tables,
        view: &view,
        output: &output,
        compression: request.compression,
        threads: request.threads,
    };
    let Kept {
        tables: kept,
        resumed,
    } = grounds.decide(left, progress, cancel)?;
    let journal = journal(&output, view, &look, tables.iter().zip(&kept))?;
    fail::fail_point!("dump.kept");
    rows_begin(&tables, resumed.rows, progress);
    let objects = output.write_objects(&look.objects)?;
    let schemas = definitions::write(&look.objects, &output)?;
    let chunks = work::all(
        snapshot.connections,
        &tables,
        request,
        work::WorkContext {
            output: &output,
            journal: journal.as_ref(),
            kept,
        },
        &throttle,
        Run { progress, cancel },
    )?;
    progress.end();
    look.still_holds(&mut session, &request.filter, &tables)?;
    fail::fail_point!("dump.before-manifest");
    let facts = manifest::Facts {
        request,
        started: snapshot.started,
        server: ServerEntry::of(&mut session)?,
        coordinates: snapshot.coordinates,
        one_view: snapshot.one_view,
        objects,
        schemas,
        chunks,
    };
    let manifest = Manifest::of(&tables, facts);
    output.finish(&manifest)?;
    let mut report = report(&manifest, begun, &throttle, snapshot.held);
    report.resumed = is_left.then_some(resumed);
    Ok(report.beside(&look, request, &tables))
}

/// Begins the journal of a dump in a directory; elsewhere there is none.
fn journal<'a>(
    output: &Output,
    view: View,
    look: &Look,
    tables: impl Iterator<Item = (&'a DumpTable, &'a Option<LeftTable>)>,
) -> Result<Option<Journal>> {
    let Some(dir) = output.dir() else {
        return Ok(None);
    };
    let shapes = tables.map(|(table, kept)| (table, look.shape(table), kept.as_ref()));
    Journal::begin(&dir, view, shapes).map(Some)
}

fn report(manifest: &Manifest, begun: Instant, throttle: &Throttle, held: Held) -> Report {
    let sum = |pick: fn(&ChunkEntry) -> u64| -> u64 {
        let chunks = manifest.tables.iter().flat_map(|table| &table.chunks);
        chunks.map(pick).sum()
    };
    Report {
        tables: manifest.tables.len() as u64,
        rows: sum(|chunk| chunk.rows),
        chunks: sum(|_| 1),
        bytes: sum(|chunk| chunk.bytes),
        bytes_stored: sum(|chunk| chunk.bytes_stored),
        seconds: begun.elapsed().as_secs_f64(),
        rested: throttle.rested().as_secs_f64(),
        held,
        coordinates: manifest.coordinates.clone(),
        history_left_out: Vec::new(),
        resumed: None,
        masked: None,
    }
}

fn rows_begin(tables: &[DumpTable], there: u64, progress: &dyn Progress) {
    let rows: u64 = tables.iter().map(|table| table.rows).sum();
    progress.phase(
        "dumping rows",
        Some(rows.saturating_sub(there)),
        Unit::Items,
    );
}

/// Dumps as one script for the `mariadb` and `mysql` clients; the format and compression of the
/// request do not count. A script whose last line does not say that it is the end is not whole.
///
/// Errors: as [`dump`]; `Failed` when `to` takes no more.
pub fn stream(
    options: &ConnectOptions,
    request: &Request,
    to: &mut (dyn Write + Send),
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Report> {
    let begun = Instant::now();
    let looked = first_look(options, request, progress)?;
    let Begun {
        mut session,
        snapshot,
        look,
        mut tables,
        throttle,
        ..
    } = begin(options, request, looked, progress, cancel)?;
    rows_begin(&tables, 0, progress);
    tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
    let server = ServerEntry::of(&mut session)?;
    let what = format!(
        "evenkeel dump of {} ({}) as of {}",
        server.place, server.version, snapshot.started
    );
    let mut out = stream::Out::begin(to, &look.objects, &what)?;
    stream::all(
        snapshot.connections,
        (&look.objects, &tables),
        request,
        &throttle,
        &mut out,
        Run { progress, cancel },
    )?;
    progress.end();
    look.still_holds(&mut session, &request.filter, &tables)?;
    let sums = out.end(&look.objects)?;
    Ok(Report {
        tables: tables.len() as u64,
        rows: sums.rows,
        chunks: sums.ranges,
        bytes: sums.bytes,
        bytes_stored: sums.bytes,
        seconds: begun.elapsed().as_secs_f64(),
        rested: throttle.rested().as_secs_f64(),
        held: snapshot.held,
        coordinates: snapshot.coordinates,
        history_left_out: Vec::new(),
        resumed: None,
        masked: None,
    }
    .beside(&look, request, &tables))
}

/// Takes a snapshot between two equal looks at what there is: nothing was made, dropped or changed
/// around the point in time, so what was looked at is what the snapshot sees.
fn one_instant(
    options: &ConnectOptions,
    (session, mut before): (&mut Session, Look),
    request: &Request,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(Snapshot, Look)> {
    for _ in 0..TRIES {
        let snapshot = Snapshot::take(options, request, progress, cancel)?;
        fail::fail_point!("dump.seen");
        let after = Look::at(session, &request.filter)?;
        match after.change_since(&before) {
            None => return Ok((snapshot, after)),
            Some(what) => progress.note(format!("{what} just now: trying again")),
        }
        before = after;
    }
    Err(
        Error::failed("schema objects keep changing: no consistent view is possible")
            .hint("run no DDL during the first moments of a dump"),
    )
}

/// Says what a dump cannot hold as it should.
fn warn(look: &Look, tables: &[DumpTable], request: &Request, progress: &dyn Progress) {
    if request.filter.history {
        for name in history::left_out(&look.objects, true) {
            progress.warn(format!(
                "{name} numbers its old rows by transaction, and no other server knows these numbers: only its current rows are dumped"
            ));
        }
    }
    for table in tables.iter().filter(|t| t.has_rows && !t.transactional) {
        progress.warn(format!(
            "{} uses {}, which has no transactions: it is dumped as of a later time than the other tables",
            table.shown(),
            table.engine
        ));
    }
    for database in &look.objects.databases {
        for view in &database.views {
            if let Some(why) = &view.broken {
                let name = &view.program.name;
                progress.warn(format!("view {}.{name} is broken: {why}", database.name));
            }
        }
    }
}
