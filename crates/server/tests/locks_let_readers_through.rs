//! Do readers get through while a global read lock cannot be had, and after it was given up?

use evenkeel_op::{Cancel, Error, ErrorKind, Event, Progress};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::lock::{Limits, LockChoice, Locker, LongQueries};
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::newer_servers;
use evenkeel_testkit::{Scratch, TestServer, servers, until};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shorter than what is in the way; no query is long, so that only the lock's own look helps.
fn limits(deadline: Duration) -> Limits {
    Limits {
        deadline,
        hold: Duration::from_secs(60),
        long_queries: LongQueries {
            threshold: Duration::from_secs(600),
            ..LongQueries::default()
        },
    }
}

const ON_THE_TABLE: &str = "SELECT SLEEP(600) FROM shop.t";
const SHORT: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(60);
/// Far shorter than a lock is waited for, and than the pause between two tries.
const REST: Duration = Duration::from_millis(2);

fn shop(server: &TestServer, scratch: &Scratch) -> (Running, Session) {
    let running = server.start(&scratch.join("data"), &[]);
    let mut session = running.session().unwrap();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO shop.t VALUES (1)",
    ] {
        session.run(sql).unwrap();
    }
    (running, session)
}

/// Servers whose global lock flushes tables, or those whose does not.
fn servers_that(flush: bool) -> Vec<TestServer> {
    let all = servers().into_iter().chain(newer_servers());
    let flushes = |server: &TestServer| {
        let version = server.binary.version;
        Abilities::known(server.binary.flavour, version).global_lock_flushes
    };
    all.filter(|server| flushes(server) == flush).collect()
}

fn flushing_servers() -> Vec<TestServer> {
    draw("servers that flush", &servers_that(true), 1)
}

/// How many FLUSH statements the server has got, whatever became of them.
fn flushes(session: &mut Session) -> u64 {
    let row = session.one("SHOW GLOBAL STATUS LIKE 'Com_flush'").unwrap();
    row.unwrap().at(1).unwrap().parse().unwrap()
}

/// Returns the state of a session and for how long it has had its statement.
fn row_of(observer: &mut Session, id: u64) -> Option<(String, u64)> {
    let list = observer.rows("SHOW FULL PROCESSLIST").unwrap();
    let own = list
        .iter()
        .find(|row| row.get("Id") == Some(&id.to_string()))?;
    own.get("Info")?;
    let state = own.get("State").unwrap_or_default().to_owned();
    Some((state, own.get("Time")?.parse().ok()?))
}

/// A query that runs until it is killed, and has run for longer than a single try takes.
fn sleeper(options: &ConnectOptions, sql: &'static str) -> (u64, JoinHandle<()>) {
    let mut session = Session::open(options).unwrap();
    let id = session.id();
    let thread = std::thread::spawn(move || {
        let _ = session.run(sql);
    });
    let mut observer = Session::open(options).unwrap();
    until("the query has been running for two seconds", || {
        row_of(&mut observer, id).is_some_and(|(_, seconds)| seconds >= 2)
    });
    (id, thread)
}

/// A thread of the application that goes round until it is stopped.
struct Application {
    rounds: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Application {
    fn start(mut round: impl FnMut() + Send + 'static) -> Self {
        let rounds = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (count, end) = (Arc::clone(&rounds), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::SeqCst) {
                round();
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(REST);
            }
        });
        Self {
            rounds,
            stop,
            thread: Some(thread),
        }
    }

    /// Reads the table again and again.
    fn reader(options: &ConnectOptions) -> Self {
        let mut session = Session::open(options).unwrap();
        Self::start(move || drop(session.rows("SELECT * FROM shop.t").unwrap()))
    }

    /// Looks again and again for sessions that wait for a flush.
    fn watcher(options: &ConnectOptions, seen: &Arc<Mutex<Option<String>>>) -> Self {
        let mut session = Session::open(options).unwrap();
        let seen = Arc::clone(seen);
        Self::start(move || {
            let list = session.rows("SHOW FULL PROCESSLIST").unwrap();
            let waits = list
                .iter()
                .find(|row| row.get("State") == Some("Waiting for table flush"));
            if let Some(row) = waits {
                seen.lock().unwrap().get_or_insert(format!("{row:?}"));
            }
        })
    }

    fn goes_on(&self, what: &str) {
        let before = self.rounds.load(Ordering::SeqCst);
        until(what, || self.rounds.load(Ordering::SeqCst) > before + 2);
    }

    fn end(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Keeps what is said, and does something about each note.
struct Told<'f> {
    notes: Mutex<Vec<String>>,
    warnings: Mutex<Vec<String>>,
    then: Box<dyn Fn() + Send + Sync + 'f>,
}

impl<'f> Told<'f> {
    fn new(then: impl Fn() + Send + Sync + 'f) -> Self {
        Self {
            notes: Mutex::default(),
            warnings: Mutex::default(),
            then: Box::new(then),
        }
    }

    fn note(&self, part: &str) -> bool {
        let notes = self.notes.lock().unwrap();
        notes.iter().any(|note| note.contains(part))
    }
}

impl Progress for Told<'_> {
    fn event(&self, event: Event) {
        match event {
            Event::Note(text) => {
                self.notes.lock().unwrap().push(text);
                (self.then)();
            }
            Event::Warning(text) => self.warnings.lock().unwrap().push(text),
            _ => {}
        }
    }
}

fn lock(options: &ConnectOptions, deadline: Duration, told: &Told<'_>) -> Result<(), Error> {
    let cancel = Cancel::new();
    let mut locker = Locker::open(options, limits(deadline), told, &cancel)?;
    locker.take(&LockChoice::GlobalRead)?;
    locker.release().map(drop)
}

#[test]
fn past_a_query_that_runs_on() {
    let others = draw("servers that do not flush", &servers_that(false), 1);
    for server in [flushing_servers(), others].concat() {
        let scratch = Scratch::new();
        let (running, mut session) = shop(&server, &scratch);
        let name = server.name;
        let abilities = Abilities::probe(&mut session).unwrap();
        let options = running.connect_options();
        let (id, asleep) = sleeper(&options, ON_THE_TABLE);
        let reader = Application::reader(&options);
        let seen = Arc::new(Mutex::new(None));
        let watcher = Application::watcher(&options, &seen);

        let before = flushes(&mut session);
        let told = Told::new(|| ());
        let outcome = lock(&options, SHORT, &told);
        if abilities.global_lock_flushes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LockTimeout, "{name}: {error}");
            let who = format!("query {id} of root has been running for ");
            assert!(error.to_string().contains(&who), "{name}: {error}");
            assert!(!error.chain().contains("SLEEP"), "{name}: {error}");
            let kill = format!("KILL QUERY {id}");
            assert!(error.hints()[0].contains(&kill), "{:?}", error.hints());
            assert!(told.note(&who), "{name}");
            assert_eq!(flushes(&mut session), before, "{name}: it was requested");
        } else {
            outcome.unwrap_or_else(|e| panic!("{name}: {}", e.chain()));
        }
        reader.goes_on("readers get through after it was given up");
        watcher.goes_on("the watcher has seen that");
        assert!(!asleep.is_finished(), "{name}");
        watcher.end();
        assert_eq!(*seen.lock().unwrap(), None, "{name}");

        // Once the query ends, the lock is had.
        let mut killer = running.session().unwrap();
        let kill = Mutex::new(move || drop(killer.run(&format!("KILL QUERY {id}"))));
        let told = Told::new(|| (kill.lock().unwrap())());
        if !abilities.global_lock_flushes {
            (told.then)();
        }
        lock(&options, LONG, &told).unwrap_or_else(|e| panic!("{name}: {}", e.chain()));
        asleep.join().unwrap();
        reader.end();
    }
}

/// A statement that uses no table is not waited for.
#[test]
fn past_a_query_without_a_table() {
    for server in flushing_servers() {
        let scratch = Scratch::new();
        let (running, _) = shop(&server, &scratch);
        let options = running.connect_options();
        let (_, asleep) = sleeper(&options, "SELECT SLEEP(600)");
        lock(&options, LONG, &Told::new(|| ()))
            .unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
        assert!(!asleep.is_finished(), "{}", server.name);
    }
}

/// Reads the table, and has to wait until who holds it has closed it.
fn waiting_reader(options: &ConnectOptions) -> JoinHandle<()> {
    let mut session = Session::open(options).unwrap();
    let id = session.id();
    let thread = std::thread::spawn(move || session.run("SELECT * FROM shop.t").unwrap());
    let mut observer = Session::open(options).unwrap();
    until("a reader waits", || {
        row_of(&mut observer, id).is_some_and(|(state, _)| state == "Waiting for table flush")
    });
    thread
}

/// Nobody who holds a table is in the list, so there is a first try.
#[test]
fn no_try_follows_while_they_wait() {
    for server in flushing_servers() {
        let scratch = Scratch::new();
        let (running, mut session) = shop(&server, &scratch);
        let name = server.name;
        let options = running.connect_options();
        let mut holder = running.session().unwrap();
        holder.run("LOCK TABLES shop.t READ").unwrap();
        let before = flushes(&mut session);
        // The first note is that a try has failed: from then on, readers wait.
        let reader = Mutex::new(None);
        let told = Told::new(|| {
            let mut reader = reader.lock().unwrap();
            if reader.is_none() {
                *reader = Some(waiting_reader(&options));
            }
        });
        let error = lock(&options, SHORT * 2, &told).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{name}: {error}");
        let waits = "1 session waits for a table flush";
        assert!(error.to_string().contains(waits), "{name}: {error}");
        assert!(told.note(waits), "{name}");
        assert_eq!(flushes(&mut session), before + 1, "{name}: not one try");
        drop(told);
        let reader = reader.into_inner().unwrap().expect("a note was given");
        assert!(!reader.is_finished(), "{name}");

        let holder = Mutex::new(holder);
        let told = Told::new(|| holder.lock().unwrap().run("UNLOCK TABLES").unwrap());
        lock(&options, LONG, &told).unwrap_or_else(|e| panic!("{name}: {}", e.chain()));
        reader.join().unwrap();
    }
}

/// Without PROCESS, nothing of others is seen: that is said once, and the lock is requested.
#[test]
fn an_account_that_sees_nobody_is_warned_once() {
    for server in flushing_servers() {
        let scratch = Scratch::new();
        let (running, mut session) = shop(&server, &scratch);
        let name = server.name;
        session.run("CREATE USER few@localhost").unwrap();
        session.run("GRANT RELOAD ON *.* TO few@localhost").unwrap();
        let (id, asleep) = sleeper(&running.connect_options(), ON_THE_TABLE);
        let before = flushes(&mut session);
        let told = Told::new(|| ());
        let few = ConnectOptions::over_socket(running.socket(), "few");
        let error = lock(&few, SHORT, &told).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{name}: {error}");
        assert!(
            flushes(&mut session) > before + 1,
            "{name}: fewer than two tries"
        );
        let warnings = told.warnings.lock().unwrap().clone();
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(warnings[0].contains("PROCESS"), "{name}: {warnings:?}");
        session.run(&format!("KILL QUERY {id}")).unwrap();
        asleep.join().unwrap();
        let told = Told::new(|| ());
        lock(&running.connect_options(), LONG, &told).unwrap();
        assert!(told.warnings.lock().unwrap().is_empty(), "{name}");
    }
}
