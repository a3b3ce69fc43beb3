//! When a lock cannot be had, is it given up in time, with the application's queries let through?

use evenkeel_op::{Cancel, ErrorKind, Event, Progress, Silent};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::lock::{Limits, LockChoice, Locker, LongQueries, QueryKind};
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::{Scratch, servers, until};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Far shorter than a lock is waited for, and than the pause between two tries.
const REST: Duration = Duration::from_millis(1);

/// A client of the application: writes, one row after the other, and counts.
struct Application {
    written: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Application {
    fn start(options: &ConnectOptions) -> Self {
        let mut session = Session::open(options).unwrap();
        let written = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (count, end) = (Arc::clone(&written), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::SeqCst) {
                session.run("INSERT INTO shop.t VALUES (NULL)").unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(REST);
            }
        });
        Self {
            written,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn shop(running: &Running) -> Session {
    let mut session = running.session().unwrap();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE shop.held (id INT) ENGINE=InnoDB",
    ] {
        session.run(sql).unwrap();
    }
    session
}

/// Runs a statement in a session of its own and waits until the server shows it.
fn in_background(options: &ConnectOptions, sql: &'static str) -> (u64, JoinHandle<bool>) {
    let mut session = Session::open(options).unwrap();
    let id = session.id();
    let thread = std::thread::spawn(move || session.run(sql).is_ok());
    let mut observer = Session::open(options).unwrap();
    until("the statement runs", || {
        time_of(&mut observer, id).is_some()
    });
    (id, thread)
}

fn time_of(observer: &mut Session, id: u64) -> Option<u64> {
    let list = observer.rows("SHOW FULL PROCESSLIST").unwrap();
    let own = list
        .iter()
        .find(|row| row.get("Id") == Some(&id.to_string()))?;
    own.get("Info")?;
    own.get("Time")?.parse().ok()
}

fn limits(deadline: Duration, long_queries: LongQueries) -> Limits {
    Limits {
        deadline,
        hold: Duration::from_secs(60),
        long_queries,
    }
}

/// Looks, until the end, that nobody waits for a lock.
fn watcher(mut observer: Session, end: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while !end.load(Ordering::SeqCst) {
            for row in observer.rows("SHOW FULL PROCESSLIST").unwrap() {
                let state = row.get("State").unwrap_or_default();
                let blocked = state.contains("read lock") || state.contains("backup lock");
                assert!(!blocked && !state.contains("table flush"), "{row:?}");
            }
            std::thread::sleep(REST);
        }
    })
}

/// Long queries are seen and waited for; the lock itself is not even asked for.
#[test]
fn a_long_query_is_waited_for_without_blocking_anybody() {
    for server in draw("servers with a long query", &servers(), 1) {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let mut session = shop(&running);
        let options = running.connect_options();
        let (id, query) = in_background(&options, "SELECT SLEEP(600) FROM DUAL");
        until("the query is a long one", || {
            time_of(&mut session, id).unwrap() >= 1
        });
        let application = Application::start(&options);

        // Nobody ever waits for a lock while we do.
        let done = Arc::new(AtomicBool::new(false));
        let watcher = watcher(running.session().unwrap(), Arc::clone(&done));
        let long = LongQueries {
            threshold: Duration::from_secs(1),
            wait: Duration::from_secs(600),
            kill: Vec::new(),
        };
        let cancel = Cancel::new();
        let wanted = limits(Duration::from_secs(2), long.clone());
        let mut locker = Locker::open(&options, wanted, &Silent, &cancel).unwrap();
        let begun = Instant::now();
        let error = locker.take(&LockChoice::GlobalRead).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{}", error.chain());
        assert!(error.to_string().contains("SLEEP(600)"), "{error}");
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the deadline was 2 s"
        );
        done.store(true, Ordering::SeqCst);
        watcher.join().unwrap();

        // Killing what writes does not kill a SELECT; killing SELECTs does.
        let short = Duration::from_millis(500);
        let spare = LongQueries {
            kill: vec![QueryKind::Update],
            wait: short,
            ..long.clone()
        };
        let wanted = limits(Duration::from_secs(20), spare);
        let mut locker = Locker::open(&options, wanted, &Silent, &cancel).unwrap();
        let error = locker.take(&LockChoice::GlobalRead).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{}", error.chain());
        assert!(!query.is_finished());
        let kill = LongQueries {
            kill: vec![QueryKind::Select],
            wait: short,
            ..long
        };
        let wanted = limits(Duration::from_secs(20), kill);
        let mut locker = Locker::open(&options, wanted, &Silent, &cancel).unwrap();
        locker.take(&LockChoice::GlobalRead).unwrap();
        locker.release().unwrap();
        query.join().unwrap();
        drop(application);
    }
}

/// What the process list does not show is found out in short tries, between which all goes on.
#[test]
fn a_held_table_lock_makes_it_give_up_and_the_application_continues() {
    for server in draw("servers with a table held", &servers(), 1) {
        let scratch = Scratch::new();
        let fast = ["--innodb-flush-log-at-trx-commit=0"];
        let running = server.start(&scratch.join("data"), &fast);
        let mut holder = shop(&running);
        let options = running.connect_options();
        holder.run("LOCK TABLES shop.held WRITE").unwrap();
        let application = Application::start(&options);

        let cancel = Cancel::new();
        let notes = Notes::of(&application.written);
        let wanted = limits(Duration::from_secs(4), LongQueries::default());
        let mut locker = Locker::open(&options, wanted, &notes, &cancel).unwrap();
        let error = locker.take(&LockChoice::GlobalRead).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{}", error.chain());
        // From each pause to the next, more got through than what had queued behind the try.
        let seen = notes.seen.lock().unwrap().clone();
        assert!(seen.len() >= 2, "{}: {seen:?}", server.name);
        assert!(
            seen.windows(2).all(|two| two[0] + 10 <= two[1]),
            "{}: {seen:?}",
            server.name
        );
        let after = application.written.load(Ordering::SeqCst);
        until("the application goes on", || {
            application.written.load(Ordering::SeqCst) > after
        });

        // Nothing of the failed lock is left on the connection that tried.
        holder.run("UNLOCK TABLES").unwrap();
        locker.take(&LockChoice::GlobalRead).unwrap();
        let held = locker.release().unwrap();
        assert!(
            held.writes_stopped >= Duration::from_secs(1),
            "failed tries count: {held:?}"
        );
    }
}

/// DDL that is under way is waited for, for as long as was said.
#[test]
fn running_ddl_makes_the_ddl_block_give_up() {
    let mut servers = servers();
    servers.retain(|server| server.id != "mysql-5.7.22");
    for server in draw("servers with running DDL", &servers, 1) {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let mut session = shop(&running);
        let options = running.connect_options();
        session.run("INSERT INTO shop.held VALUES (1)").unwrap();
        let ddl = "CREATE TABLE shop.slow ENGINE=InnoDB AS SELECT SLEEP(600) FROM shop.held";
        let (id, slow) = in_background(&options, ddl);
        let application = Application::start(&options);
        let cancel = Cancel::new();
        let wanted = limits(Duration::from_secs(3), LongQueries::default());
        let mut locker = Locker::open(&options, wanted, &Silent, &cancel).unwrap();
        let error = locker.block_ddl().unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::LockTimeout,
            "{}: {}",
            server.name,
            error.chain()
        );
        drop(locker);
        session.run(&format!("KILL QUERY {id}")).unwrap();
        slow.join().unwrap();
        let mut locker = Locker::open(&options, Limits::default(), &Silent, &cancel).unwrap();
        assert!(locker.block_ddl().unwrap());
        locker.release().unwrap();
        drop(application);
    }
}

#[test]
fn a_cancelled_wait_ends() {
    let server = evenkeel_testkit::servers::mysql_8_0_15();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("data"), &[]);
    let mut holder = shop(&running);
    holder.run("LOCK TABLES shop.held WRITE").unwrap();
    let cancel = Cancel::new();
    let wanted = limits(Duration::from_secs(600), LongQueries::default());
    let mut locker = Locker::open(&running.connect_options(), wanted, &Silent, &cancel).unwrap();
    let later = cancel.clone();
    let stopper = std::thread::spawn(move || later.cancel(2));
    let error = locker.take(&LockChoice::GlobalRead).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    stopper.join().unwrap();
}

/// Remembers how far the application was at each note.
struct Notes {
    written: Arc<AtomicU64>,
    seen: Mutex<Vec<u64>>,
}

impl Notes {
    fn of(written: &Arc<AtomicU64>) -> Self {
        Self {
            written: Arc::clone(written),
            seen: Mutex::default(),
        }
    }
}

impl Progress for Notes {
    fn event(&self, event: Event) {
        if let Event::Note(_) = event {
            let written = self.written.load(Ordering::SeqCst);
            self.seen.lock().unwrap().push(written);
        }
    }
}
