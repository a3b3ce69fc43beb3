//! What all clients of one server share.

use crate::queues::ledger::Ledger;
use evenkeel_op::ErrorKind;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Queues that all clients share.
pub const QUEUES: [&str; 3] = ["q0", "q1", "q2"];

/// How often things were done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Statements of clients.
    pub statements: AtomicU64,
    /// KILLs, of queries and of connections.
    pub kills: AtomicU64,
    /// Connections that were reset, or got another user, while they owned a row.
    pub resets: AtomicU64,
    /// Statements that make, change, lock or compact a table.
    pub ddl: AtomicU64,
}

/// What all clients of one server share.
#[derive(Debug, Default)]
pub struct Soak {
    ledger: Mutex<Ledger>,
    /// Connections that may be killed, by their client.
    pub(super) connections: Mutex<BTreeMap<u64, u64>>,
    pub(super) is_over: AtomicBool,
    wrong: Mutex<Option<String>>,
    /// How often things were done.
    pub counts: Counts,
}

/// Why a client cannot continue its session.
pub(super) type Lost = ();

impl Soak {
    /// What is known of the rows.
    ///
    /// # Panics
    ///
    /// A client has panicked.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no client panics")
    }

    /// Tells all clients to end.
    pub fn ends(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// What was wrong, if anything was.
    pub fn wrong(&self) -> Option<String> {
        self.wrong.lock().expect("no client panics").clone()
    }

    pub(super) fn continues(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    pub(super) fn fails(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("no client panics");
        wrong.get_or_insert(what);
        self.ends();
    }

    pub(super) fn check(&self, what: &str, reported: Result<(), String>) {
        if let Err(why) = reported {
            self.fails(format!("{what}: {why}"));
        }
    }

    /// A session of client `who`, which may be killed from now on. `None` when it is over.
    pub(super) fn session(&self, options: &ConnectOptions, who: u64) -> Option<Session> {
        while self.continues() {
            match Session::open(options) {
                Ok(mut session) => {
                    let mut connections = self.connections.lock().expect("no client panics");
                    connections.insert(who, session.id());
                    drop(connections);
                    if session.run("USE shop").is_ok() {
                        return Some(session);
                    }
                }
                Err(_) if !self.continues() => {}
                // MySQL 9.7 does that to a client once in many thousands of KILLs of others.
                Err(why) if why.chain().contains(" was cut off: ") => {}
                Err(why) => self.fails(format!("a connection: {}", why.chain())),
            }
        }
        None
    }

    /// Asks for one value. Where it is refused for a reason that is allowed, the session is given up.
    pub(super) fn value(&self, session: &mut Session, sql: &str) -> Result<Option<String>, Lost> {
        self.counts.statements.fetch_add(1, Ordering::Relaxed);
        session.value(sql).map_err(|why| self.allow(sql, &why))
    }

    pub(super) fn done(&self, session: &mut Session, sql: &str) -> Result<(), Lost> {
        self.counts.statements.fetch_add(1, Ordering::Relaxed);
        session.run(sql).map_err(|why| self.allow(sql, &why))
    }

    pub(super) fn allow(&self, sql: &str, why: &evenkeel_op::Error) {
        let said = why.chain();
        // Interrupted; the table's definition has changed.
        let is_allowed = ["ERROR 1317 (", "ERROR 1412 ("]
            .iter()
            .any(|code| said.contains(code));
        let is_lost = matches!(why.kind(), ErrorKind::Unreachable | ErrorKind::LockTimeout);
        if !is_allowed && !is_lost {
            self.fails(format!("{sql}: {said}"));
        }
    }
}
