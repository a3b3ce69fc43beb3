//! Pairs of views, each of one place in the source's binary log: what the source's view sees is what the replica's
//! view sees, if the replica is equal, however much is written meanwhile.
//!
//! In this order: the replica's SQL thread is stopped (guarded by a watchdog); the source looks, and says where in its
//! binary log that is; the SQL thread is started with UNTIL that place; the replica looks; the SQL thread is started
//! for good. From then on nothing is paused: InnoDB keeps what the views see.
//!
//! On MariaDB a view knows its own place, so no lock is needed, and each connection has a place of its own. On MySQL
//! the views are made under a global read lock, which makes commits wait for as long as that takes.

use super::request::ChecksumRequest;
use super::sides::Sides;
use evenkeel_op::{Cancel, Error, ErrorKind, Result, Run};
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::lock::{Held, Limits, LockChoice, Locker};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{Advance, Position, StopLimits, Stopped};
use evenkeel_wire::Connection;
use std::time::{Duration, Instant};

/// What both sides read with: values as they are kept, whatever the server's settings are.
const FIRST_STATEMENTS: [&str; 3] = [
    "SET NAMES utf8mb4",
    // Keys may be dates that are none.
    "SET SESSION time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES', \
     /*M!100108 max_statement_time = 0, */ /*!50708 max_execution_time = 0, */ \
     wait_timeout = 31536000, net_write_timeout = 3600, sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
];
const SEE: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
/// Gone back to after each statement, so that no table stays locked against changes of its definition.
const MARK: &str = "SAVEPOINT evenkeel";
const BACK: &str = "ROLLBACK TO SAVEPOINT evenkeel";
/// How often it is tried again, when the SQL thread was somewhere else than it should be.
const TRIES: usize = 3;
/// How long the SQL thread stands at most before the watchdog starts it, besides the waits that have a deadline.
pub(crate) const HOLD: Duration = Duration::from_secs(60);
/// How long the source's lock may last.
const LOCKED: Duration = Duration::from_secs(10);
/// Events that are no transactions are short, and few.
const FEW_BYTES: u64 = 1 << 20;

/// Two views of one place.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) source: View,
    pub(crate) replica: View,
}

/// A connection that sees one point in time.
#[derive(Debug)]
pub(crate) struct View(Connection);

impl View {
    pub(crate) fn open(options: &ConnectOptions, cancel: &Cancel) -> Result<Self> {
        let mut connection = Connection::open(options, cancel)?;
        for statement in FIRST_STATEMENTS {
            connection.run(statement)?;
        }
        Ok(Self(connection))
    }

    /// Has reads fail if the server says nothing for so long.
    pub(crate) fn set_silence(&mut self, silence: Duration) {
        self.0.set_silence(silence);
    }

    fn see(&mut self) -> Result<()> {
        self.0.run(SEE)?;
        self.0.run(MARK)?;
        Ok(())
    }

    /// Runs a statement and hands over each row's cells.
    pub(crate) fn each_row(
        &mut self,
        sql: &str,
        take: &mut dyn FnMut(&[Option<&str>]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = self.0.query(sql)?;
        while let Some(row) = rows.next()? {
            let mut texts = Vec::new();
            let mut cells = row.cells();
            while !cells.is_empty() {
                let cell = cells.next().map_err(|_| senseless())?;
                let text = cell.map(|cell| std::str::from_utf8(cell).map_err(|_| senseless()));
                texts.push(text.transpose()?);
            }
            take(&texts)?;
        }
        drop(rows);
        self.0.run(BACK)?;
        Ok(())
    }

    /// Ends what a failed statement left, and finds out whether the connection is still there.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.0.run(BACK).map(|_| ())
    }

    /// Runs a statement and returns its first row; none of its cells may be NULL.
    pub(super) fn one_row(&mut self, sql: &str) -> Result<Option<Vec<String>>> {
        let mut first = None;
        self.each_row(sql, &mut |cells| {
            if first.is_none() {
                let texts: Option<Vec<String>> =
                    cells.iter().map(|cell| cell.map(str::to_owned)).collect();
                first = Some(
                    texts.ok_or_else(|| Error::failed("a value that should be there is NULL"))?,
                );
            }
            Ok(())
        })?;
        Ok(first)
    }
}

fn senseless() -> Error {
    Error::failed("the server sends a row that makes no sense")
}

/// Pairs of views, and what they cost.
#[derive(Debug)]
pub(crate) struct Aligned {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) places: Vec<Position>,
    /// How long the SQL thread stood, or was on its way.
    pub(super) applier_held: Duration,
    /// How long writes on the source waited.
    pub(super) writes_paused: Duration,
    pub(super) since: Instant,
}

/// Makes pairs of views.
///
/// Errors: those of the sessions; `LockTimeout` when the SQL thread could not be stopped or stayed at one place for too long,
/// or the source could not be locked; `Busy` beside another run.
pub(crate) fn align(sides: &mut Sides, request: &ChecksumRequest, run: Run<'_>) -> Result<Aligned> {
    again(run, || try_to(sides, request, run))
}

/// Tries again what fails because somebody else moved the SQL thread.
pub(crate) fn again<T>(run: Run<'_>, mut once: impl FnMut() -> Result<T>) -> Result<T> {
    let mut tries = 1;
    loop {
        match once() {
            Err(error) if error.kind() == ErrorKind::Failed && tries < TRIES => {
                run.progress
                    .note(format!("trying again: {}", error.chain()));
                tries += 1;
            }
            other => return other.map_err(in_our_words),
        }
    }
}

/// Whoever stops an applier for a backup has other options.
fn in_our_words(error: Error) -> Error {
    error.rehinted(|hint| {
        if hint.contains("--stop-applier") {
            return Some("or compare when it is over".to_owned());
        }
        if hint.contains("--kill-long-queries") {
            return Some("allow more time with --lock-deadline".to_owned());
        }
        let is_ours = hint.contains("--lock-hold-limit");
        is_ours.then(|| hint.replace("--lock-hold-limit", "--lock-deadline"))
    })
}

fn try_to(sides: &mut Sides, request: &ChecksumRequest, run: Run<'_>) -> Result<Aligned> {
    let count = request.limits.threads.max(1);
    let open = |options: &ConnectOptions| -> Result<Vec<View>> {
        (0..count)
            .map(|_| View::open(options, run.cancel))
            .collect()
    };
    // Before anything stands: each takes a moment.
    let (sources, replicas) = (open(&sides.source.options)?, open(&sides.replica.options)?);
    let deadline = request.limits.deadline;
    let limits = StopLimits {
        deadline,
        // The lock and the way there are waited for meanwhile.
        hold: deadline * 2 + HOLD,
    };
    let begun = Instant::now();
    let stopped = Stopped::stop(
        &sides.replica.options,
        sides.replica_pid,
        &request.watchdog,
        &limits,
        run.progress,
        run.cancel,
    )?;
    let Some(mut stopped) = stopped else {
        return Err(Error::refused("the replica does not replicate any more"));
    };
    let (groups, writes_paused) = look(sides, sources, deadline, run)?;
    fail::fail_point!("checksum::source_seen");
    let (mut pairs, mut places) = (Vec::new(), Vec::new());
    let mut replicas = replicas.into_iter();
    for group in groups {
        let place = &group.place;
        let session = &mut sides.source.session;
        stopped.advance(
            Advance {
                channel: &sides.channel,
                to: place,
                deadline,
                is_as_good: &mut |at| is_as_good(session, at, place),
            },
            run.cancel,
        )?;
        for (source, mut replica) in group.views.into_iter().zip(&mut replicas) {
            replica.see()?;
            pairs.push(Pair { source, replica });
        }
        places.push(group.place);
    }
    fail::fail_point!("checksum::replica_seen");
    // Fails when somebody else moved it meanwhile: then the views are of other places.
    stopped.start()?;
    Ok(Aligned {
        pairs,
        places,
        applier_held: begun.elapsed(),
        writes_paused,
        since: Instant::now(),
    })
}

/// Views of the source that see one place.
pub(crate) struct Group {
    pub(crate) place: Position,
    pub(crate) views: Vec<View>,
}

/// Has the source look, and returns how long writes waited for that.
pub(crate) fn look(
    sides: &mut Sides,
    mut views: Vec<View>,
    deadline: Duration,
    run: Run<'_>,
) -> Result<(Vec<Group>, Duration)> {
    if sides.source.abilities.binlog_snapshot {
        let groups = views.into_iter().map(|mut view| {
            view.see()?;
            let place = own_place(&mut view)?;
            Ok(Group {
                place,
                views: vec![view],
            })
        });
        return Ok((groups.collect::<Result<_>>()?, Duration::ZERO));
    }
    let limits = Limits {
        deadline,
        // Only views are made meanwhile: everything that writes there waits.
        hold: LOCKED,
        ..Limits::default()
    };
    let mut locker = Locker::open(&sides.source.options, limits, run.progress, run.cancel)?;
    locker.take(&LockChoice::GlobalRead)?;
    for view in &mut views {
        view.see()?;
    }
    let at = locker.coordinates()?;
    // Fails when the lock did not stand throughout: then the views may differ.
    let Held { writes_stopped, .. } = locker.release()?;
    let (Some(file), Some(position)) = (at.binlog_file, at.binlog_position) else {
        return Err(Error::refused("the source has no binary log"));
    };
    let place = Position { file, position };
    Ok((vec![Group { place, views }], writes_stopped))
}

/// Asks a view of MariaDB where in the binary log it is.
fn own_place(view: &mut View) -> Result<Position> {
    let (mut file, mut position) = (None, None);
    view.each_row("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'", &mut |cells| {
        if let [Some(name), Some(value)] = cells {
            match name.to_ascii_lowercase().as_str() {
                "binlog_snapshot_file" => file = Some((*value).to_owned()),
                "binlog_snapshot_position" => position = value.parse().ok(),
                _ => {}
            }
        }
        Ok(())
    })?;
    match (file.filter(|file| !file.is_empty()), position) {
        (Some(file), Some(position)) => Ok(Position { file, position }),
        _ => Err(Error::refused(
            "the source does not say where in its binary log a view is",
        )),
    }
}

/// Returns whether only what is no transaction lies between two places: a source may log such events at any time, after
/// it was asked for its place, too.
pub(crate) fn is_as_good(source: &mut Session, at: &Position, place: &Position) -> Result<bool> {
    if at == place {
        return Ok(true);
    }
    let (at, place) = match at.position < place.position {
        true => (at, place),
        false => (place, at),
    };
    if at.file != place.file || place.position - at.position >= FEW_BYTES {
        return Ok(false);
    }
    let sql = format!(
        "SHOW BINLOG EVENTS IN {} FROM {} LIMIT 8",
        quote(&at.file),
        at.position
    );
    // Who may not ask is told later that the place was not reached.
    let Ok(rows) = source.rows(&sql) else {
        return Ok(false);
    };
    let mut end = at.position;
    for row in &rows {
        if end == place.position {
            break;
        }
        let kind = row.get("Event_type").unwrap_or_default();
        let next = row.get("End_log_pos").and_then(|end| end.parse().ok());
        match next {
            Some(next) if is_no_transaction(kind) => end = next,
            _ => return Ok(false),
        }
    }
    Ok(end == place.position)
}

fn is_no_transaction(kind: &str) -> bool {
    matches!(
        kind,
        "Format_desc"
            | "Gtid_list"
            | "Previous_gtids"
            | "Binlog_checkpoint"
            | "Start_encryption"
            | "Rotate"
            | "Stop"
    )
}
