//! N connections that all see one point in time.

use super::request::Request;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::lock::{Held, LockChoice, Locker};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use jiff::Timestamp;

/// What every connection starts with. Rows come out as they are stored: no character set is
/// converted. The comments are MariaDB's and MySQL's own conditional syntax; each skips the
/// other's. A server that may not send for long (we compress) must not hang up.
const FIRST_STATEMENTS: [&str; 3] = [
    "SET NAMES utf8mb4",
    "SET SESSION character_set_results = NULL, time_zone = '+00:00', sql_mode = '', \
     /*M!100108 max_statement_time = 0, */ /*!50708 max_execution_time = 0, */ \
     wait_timeout = 31536000, net_write_timeout = 3600, sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
];
const SEE: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

/// Connections with a common view.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) connections: Vec<Connection>,
    pub(super) coordinates: Coordinates,
    pub(super) held: Held,
    /// Whether all connections are known to see the same point in time.
    pub(super) one_view: bool,
    /// When it was, in UTC.
    pub(super) started: String,
}

impl Snapshot {
    /// Opens the connections, and has them all look while the lock stands.
    pub(super) fn take(
        options: &ConnectOptions,
        request: &Request,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Self> {
        // Before any lock: each takes a moment, and a server may have no more to spare.
        let mut connections = Vec::new();
        for _ in 0..request.threads.max(1) {
            let mut connection = Connection::open(options, cancel)?;
            for statement in FIRST_STATEMENTS {
                connection.run(statement)?;
            }
            connections.push(connection);
        }
        match &request.lock {
            Some(choice) => under_lock(connections, choice, options, request, progress, cancel),
            None => without_lock(connections, options, progress),
        }
    }
}

fn under_lock(
    mut connections: Vec<Connection>,
    choice: &LockChoice,
    options: &ConnectOptions,
    request: &Request,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Snapshot> {
    let mut locker = Locker::open(options, request.limits.clone(), progress, cancel)?;
    locker.take(choice)?;
    let started = Timestamp::now().to_string();
    for connection in &mut connections {
        connection.run(SEE)?;
    }
    fail::fail_point!("dump.locked");
    let coordinates = tolerant(locker.coordinates(), progress)?;
    // Fails when the lock did not stand throughout: then the views may differ.
    let held = locker.release()?;
    Ok(Snapshot {
        connections,
        coordinates,
        held,
        one_view: true,
        started,
    })
}

/// Without a lock, it is the user's word that nobody writes. Coordinates that moved meanwhile belie
/// it; that they did not move proves nothing, because a commit is in the log before it is in sight.
fn without_lock(
    mut connections: Vec<Connection>,
    options: &ConnectOptions,
    progress: &dyn Progress,
) -> Result<Snapshot> {
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    let before = tolerant(Coordinates::read(&mut session, &abilities), progress)?;
    let started = Timestamp::now().to_string();
    for connection in &mut connections {
        connection.run(SEE)?;
    }
    let after = tolerant(Coordinates::read(&mut session, &abilities), progress)?;
    let quiet = before == after;
    if !quiet && connections.len() > 1 {
        return Err(Error::failed(
            "another session wrote while the connections opened their read views, and no lock prevented it",
        )
        .hint("use --lock auto, or --threads 1, which needs no lock, or stop all writes meanwhile"));
    }
    let one_view = connections.len() == 1;
    if !one_view {
        progress.warn(
            "without a lock, all tables are from one point in time only if no other session wrote"
                .to_owned(),
        );
    }
    Ok(Snapshot {
        connections,
        coordinates: if quiet {
            before
        } else {
            Coordinates::default()
        },
        held: Held::default(),
        one_view,
        started,
    })
}

/// An account that may lock but not see the coordinates still gets its dump.
fn tolerant(read: Result<Coordinates, Error>, progress: &dyn Progress) -> Result<Coordinates> {
    match read {
        Err(error) if error.kind() == ErrorKind::Refused => {
            progress.warn(format!("the coordinates are not known: {}", error.chain()));
            Ok(Coordinates::default())
        }
        other => other,
    }
}
