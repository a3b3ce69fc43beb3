//! Do the functions of queues answer with an error, and no more, wherever their engine is not there or just goes?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::until;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// One call of each function.
const CALLS: [&str; 8] = [
    "queue_wait('shop.mails', 0)",
    "queue_wait_n('shop.mails', 2, 0)",
    "queue_rowid()",
    "queue_abort()",
    "queue_end()",
    "queue_set_srcid(1, 'a', 1)",
    "queue_compact('shop.mails')",
    "queue_stats('shop.mails')",
];

const GONE: &str = "QUEUE is not loaded";

/// As an account that may do nothing.
fn nobody(site: &QueueSite) -> Session {
    let mut options = site.running.connect_options();
    options.user = Some("nobody".to_owned());
    Session::open(&options).unwrap()
}

fn each_is_refused(site: &QueueSite) {
    for call in CALLS {
        let why = nobody(site).value(&format!("SELECT {call}")).unwrap_err();
        assert!(why.chain().contains(GONE), "{call}: {}", why.chain());
    }
    let mut session = site.running.session().unwrap();
    session.value("SELECT VERSION()").unwrap();
}

/// A directory of plugins among the options.
fn library(site: &QueueSite) -> PathBuf {
    let args = site.launch.extra_args.iter();
    let mut places = args.filter_map(|arg| arg.strip_prefix("--plugin-dir="));
    Path::new(places.next().unwrap()).join("ha_queue.so")
}

/// The library of another patch version: engines name the version that they were built for.
fn age(library: &Path, version: &str) {
    let parts: Vec<u32> = version
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    let word = |patch: u32| ((parts[0] * 10_000 + parts[1] * 100 + patch) << 8).to_le_bytes();
    let (is, was) = (word(parts[2]), word(parts[2] + 1));
    let mut bytes = fs::read(library).unwrap();
    let places: Vec<usize> = (0..bytes.len() - 4)
        .step_by(4)
        .filter(|at| bytes[*at..*at + 4] == is)
        .collect();
    assert!(!places.is_empty(), "{version} stands nowhere");
    for at in places {
        bytes[at..at + 4].copy_from_slice(&was);
    }
    fs::remove_file(library).unwrap();
    fs::write(library, bytes).unwrap();
}

fn begin(host: Host) -> QueueSite {
    let site = QueueSite::start_on(host, &[]);
    let mut session = site.session();
    for sql in [
        "CREATE USER nobody@localhost",
        "CREATE TABLE mails (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO mails VALUES (1), (2), (3)",
    ] {
        session.run(sql).unwrap();
    }
    site
}

fn without_their_engine(host: Host) {
    let mut site = begin(host);
    let version = site.session().value("SELECT VERSION()").unwrap().unwrap();
    let version = version.split('-').next().unwrap().to_owned();
    site.take_out();
    each_is_refused(&site);
    let mut session = site.running.session().unwrap();
    site.put_in(&mut session);
    assert_eq!(left(&mut session), 3);
    drop(session);
    // Not loaded, because it is not mature.
    if host != Host::MySql9 {
        let (kept, _): (Vec<String>, Vec<String>) = (site.launch.extra_args.iter().cloned())
            .partition(|arg| !arg.starts_with("--plugin-maturity"));
        let before = std::mem::replace(&mut site.launch.extra_args, kept);
        site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
        each_is_refused(&site);
        site.launch.extra_args = before;
    }
    // Refused, because it is of another version.
    let place = library(&site);
    let is = fs::read(&place).unwrap();
    age(&place, &version);
    site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    each_is_refused(&site);
    fs::remove_file(&place).unwrap();
    fs::write(&place, is).unwrap();
    site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    assert_eq!(left(&mut site.running.session().unwrap()), 3);
}

fn left(session: &mut Session) -> i64 {
    let count = session.value("SELECT COUNT(*) FROM shop.mails");
    count.unwrap().unwrap().parse().unwrap()
}

/// Who owns a row keeps it, and its engine, whatever is taken out.
fn while_a_row_is_owned(host: Host) {
    let site = begin(host);
    let (mut owner, mut session) = (site.session(), site.session());
    let took = owner.value("SELECT queue_wait('mails', 0)").unwrap();
    assert_eq!(took.as_deref(), Some("1"));
    session.run("FLUSH TABLES").unwrap();
    let reported = session.run("UNINSTALL PLUGIN queue");
    let why = reported.as_ref().map_err(|why| why.chain());
    match host {
        Host::MySql9 => assert!(why.is_err_and(|why| why.contains("still in use"))),
        // It goes with the last who uses it, and nobody else begins to.
        _ => {
            assert_eq!(why, Ok(&()));
            let call = "SELECT queue_wait('shop.mails', 0)";
            let why = session.value(call).unwrap_err().chain();
            assert!(why.contains("not loaded"), "{why}");
        }
    }
    let ended = owner.value("SELECT queue_end()").unwrap();
    assert_eq!(ended.as_deref(), Some("1"));
    drop(owner);
    until("it is out and in again", || {
        let _ = session.run("UNINSTALL PLUGIN queue");
        session
            .run("INSTALL PLUGIN queue SONAME 'ha_queue.so'")
            .is_ok()
    });
    assert_eq!(left(&mut session), 2);
}

/// The server tells no engine of KILL that it is about to take out.
fn a_wait_is_killed(host: Host) {
    let site = begin(host);
    let (mut waiter, mut session) = (site.session(), site.session());
    session.run("DELETE FROM mails").unwrap();
    let id = waiter.value("SELECT CONNECTION_ID()").unwrap().unwrap();
    thread::scope(|scope| {
        let wait = scope.spawn(move || waiter.value("SELECT queue_wait('mails', 60)"));
        until("it waits", || {
            let stats = session.value("SELECT queue_stats('mails')").unwrap();
            stats.unwrap().contains("waiters: 1\n")
        });
        session.run("FLUSH TABLES").unwrap();
        session.run("UNINSTALL PLUGIN queue").unwrap();
        session.run(&format!("KILL QUERY {id}")).unwrap();
        let why = wait.join().unwrap().unwrap_err().chain();
        assert!(why.contains("interrupted"), "{why}");
    });
}

/// What a client may be told while the engine comes and goes.
fn is_expected(why: &str) -> bool {
    [
        GONE,
        "queue_wait() before",
        "Unknown storage engine",
        "Unknown table engine",
    ]
    .iter()
    .any(|words| why.contains(words))
}

/// Tells clients to end, however the test goes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn while_clients_call(host: Host) {
    let site = begin(host);
    let (ends, calls) = (AtomicBool::new(false), AtomicU32::new(0));
    let (rest, resting) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let mut session = site.running.session().unwrap();
                    for call in CALLS.iter().filter(|call| !call.starts_with("queue_end")) {
                        if let Err(why) = session.value(&format!("SELECT {call}")) {
                            assert!(is_expected(&why.chain()), "{call}: {}", why.chain());
                        }
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    drop(session);
                    resting.fetch_add(1, Ordering::SeqCst);
                    while rest.load(Ordering::SeqCst) && !ends.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                    resting.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
        let _ends = Ends(&ends);
        let mut session = site.running.session().unwrap();
        for _ in 0..3 {
            let begun = calls.load(Ordering::Relaxed);
            until("clients go on", || {
                calls.load(Ordering::Relaxed) > begun + 50
            });
            // It may be in use, or on its way out.
            let mut out_and_in = || {
                let _ = session.run("FLUSH TABLES");
                let _ = session.run("UNINSTALL PLUGIN queue");
                let sql = "INSTALL PLUGIN queue SONAME 'ha_queue.so'";
                session.run(sql).is_ok()
            };
            if (0..20).any(|_| out_and_in()) {
                continue;
            }
            // While somebody always uses it, a server may refuse for ever.
            rest.store(true, Ordering::SeqCst);
            until("nobody uses it", || resting.load(Ordering::SeqCst) == 4);
            until("it is out and in again", out_and_in);
            rest.store(false, Ordering::SeqCst);
        }
    });
    // They have consumed what there was.
    let mut session = site.running.session().unwrap();
    session.run("INSERT INTO shop.mails VALUES (9)").unwrap();
    assert_eq!(left(&mut session), 1);
}

/// The engine goes between a function's beginning and its call.
fn after_it_began(host: Host) {
    let site = begin(host);
    for call in CALLS {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let mut session = nobody(&site);
                let sql = format!("SELECT CONCAT(SLEEP(2), {call})");
                session.value(&sql).map_err(|why| why.chain())
            });
            let mut session = site.running.session().unwrap();
            let sleeps =
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
            until("it has begun", || {
                session.value(sleeps).unwrap().as_deref() == Some("1")
            });
            site.take_out();
            let why = sleeper.join().unwrap().unwrap_err();
            assert!(
                why.contains("QUEUE") || why.contains("queue"),
                "{call}: {why}"
            );
            site.put_in(&mut session);
        });
    }
    assert_eq!(left(&mut site.running.session().unwrap()), 3);
}

const MARIADB: [Host; 2] = [Host::MariaDb10, Host::MariaDb11];
const HOSTS: [Host; 3] = [Host::MariaDb11, Host::MySql9, Host::MariaDb10];

#[test]
fn a_function_that_began_ends() {
    for host in draw("hosts whose function began", &HOSTS, 1) {
        after_it_began(host);
    }
}

#[test]
fn they_are_refused_on_mariadb() {
    for host in draw("hosts that are MariaDB", &MARIADB, 1) {
        without_their_engine(host);
    }
}

#[test]
fn they_are_refused_on_mysql_9() {
    without_their_engine(Host::MySql9);
}

#[test]
fn an_owner_continues_on_mariadb() {
    for host in draw("hosts that are MariaDB", &MARIADB, 1) {
        while_a_row_is_owned(host);
    }
}

#[test]
fn an_owner_continues_on_mysql_9() {
    while_a_row_is_owned(Host::MySql9);
}

#[test]
fn a_wait_is_killed_on_mariadb() {
    for host in draw("hosts that are MariaDB", &MARIADB, 1) {
        a_wait_is_killed(host);
    }
}

#[test]
fn clients_resume() {
    for host in draw("hosts with clients", &HOSTS, 1) {
        while_clients_call(host);
    }
}
