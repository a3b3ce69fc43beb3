//! Clients of all kinds that use a server's queues at once, and write down what they know.

mod client;
mod ddl;
mod kills;

pub use ddl::Own;

use super::QueueSite;
use super::ledger::{LOOK, Ledger, Seen};
use evenkeel_op::ErrorKind;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::traffic::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Queues that all clients share.
pub const QUEUES: [&str; 3] = ["q0", "q1", "q2"];

/// Clients that produce, and that consume.
const CLIENTS: u64 = 15;

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
    connections: Mutex<BTreeMap<u64, u64>>,
    is_over: AtomicBool,
    wrong: Mutex<Option<String>>,
    /// How often things were done.
    pub counts: Counts,
}

/// Why a client cannot continue its session.
type Lost = ();

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

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    fn fails(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("no client panics");
        wrong.get_or_insert(what);
        self.ends();
    }

    fn check(&self, what: &str, told: Result<(), String>) {
        if let Err(why) = told {
            self.fails(format!("{what}: {why}"));
        }
    }

    /// Runs all clients until they are told to end; `ends` decides when, and how.
    pub fn run(&self, site: &QueueSite, own: &mut Own, seed: u64, ends: impl FnOnce(&Self)) {
        self.is_over.store(false, Ordering::SeqCst);
        // A restarted server gives the numbers of old connections again.
        self.connections.lock().expect("no client panics").clear();
        let options = site.running.connect_options();
        let random = |who: u64| Random::new(seed.wrapping_mul(1000) + who);
        std::thread::scope(|scope| {
            for who in 0..CLIENTS {
                let options = &options;
                scope.spawn(move || client::produce(self, options, who, random(who)));
                let who = who + CLIENTS;
                scope.spawn(move || client::consume(self, options, who, random(who)));
            }
            scope.spawn(|| kills::kill(self, &options, random(100)));
            scope.spawn(|| ddl::change(self, &options, random(101)));
            scope.spawn(|| own.work(self, &options));
            ends(self);
        });
    }

    /// A session of client `who`, which may be killed from now on. `None` when it is over.
    fn session(&self, options: &ConnectOptions, who: u64) -> Option<Session> {
        while self.goes_on() {
            match Session::open(options) {
                Ok(mut session) => {
                    let mut connections = self.connections.lock().expect("no client panics");
                    connections.insert(who, session.id());
                    drop(connections);
                    if session.run("USE shop").is_ok() {
                        return Some(session);
                    }
                }
                Err(_) if !self.goes_on() => {}
                // MySQL 9.7 does that to a client once in many thousands of KILLs of others.
                Err(why) if why.chain().contains(" was cut off: ") => {}
                Err(why) => self.fails(format!("a connection: {}", why.chain())),
            }
        }
        None
    }

    /// Asks for one value. Where it is refused for a reason that is allowed, the session is given up.
    fn value(&self, session: &mut Session, sql: &str) -> Result<Option<String>, Lost> {
        self.counts.statements.fetch_add(1, Ordering::Relaxed);
        session.value(sql).map_err(|why| self.allow(sql, &why))
    }

    fn done(&self, session: &mut Session, sql: &str) -> Result<(), Lost> {
        self.counts.statements.fetch_add(1, Ordering::Relaxed);
        session.run(sql).map_err(|why| self.allow(sql, &why))
    }

    fn allow(&self, sql: &str, why: &evenkeel_op::Error) {
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

    /// Makes the shared queues.
    ///
    /// # Panics
    ///
    /// The server refuses.
    pub fn make(site: &QueueSite) {
        let mut session = site.session();
        for queue in QUEUES {
            let columns =
                "id BIGINT NOT NULL, producer INT NOT NULL, prio INT NOT NULL, what MEDIUMTEXT";
            let sql = format!("CREATE TABLE {queue} ({columns}) ENGINE=QUEUE");
            session.run(&sql).expect("a queue");
        }
        session
            .run("CREATE TABLE digits (n BIGINT PRIMARY KEY)")
            .expect("a table");
        session
            .run("INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7)")
            .expect("digits");
    }

    /// Compares what is there with what is known, while no client is there. Errors: what is wrong.
    ///
    /// # Panics
    ///
    /// The server cannot be asked.
    pub fn compare(&self, site: &QueueSite) -> Result<(), String> {
        let mut session = site.session();
        let mut queues = Vec::new();
        for queue in QUEUES {
            let rows = session.rows(&format!("{LOOK} {queue}")).expect("rows");
            queues.push(rows.iter().map(Seen::of).collect::<Result<Vec<_>, _>>()?);
        }
        self.ledger().compare(&queues)
    }

    /// Consumes all that is left, by one consumer. Errors: a row that cannot be, or another order than that of its
    /// producer.
    ///
    /// # Panics
    ///
    /// The server cannot be asked.
    pub fn drain(&self, site: &QueueSite) -> Result<(), String> {
        let mut session = site.session();
        for (at, queue) in QUEUES.iter().enumerate() {
            let mut last = BTreeMap::new();
            let wait = format!("SELECT queue_wait_n('{queue}', 50, 0)");
            let mut owned = Vec::new();
            loop {
                let given = session.value(&wait).expect("an answer");
                self.ledger().ends(&std::mem::take(&mut owned))?;
                if given.as_deref() == Some("0") {
                    break;
                }
                for row in session.rows(&format!("{LOOK} {queue}")).expect("rows") {
                    let seen = Seen::of(&row)?;
                    self.ledger().sees(at, seen)?;
                    let before = last.insert(seen.producer, seen.id);
                    if before.is_some_and(|before| before > seen.id) {
                        return Err(format!("{seen:?} comes behind {before:?}"));
                    }
                    owned.push(seen.id);
                }
            }
        }
        drop(session);
        self.compare(site)
    }
}
