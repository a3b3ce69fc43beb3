//! Does each lock stop what it promises to stop, and let through what it promises to let through?

use evenkeel_op::{Cancel, ErrorKind, Silent};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::launch::Running;
use evenkeel_server::lock::{Limits, LockChoice, Locker};
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::newer_servers;
use evenkeel_testkit::{Scratch, TestServer, servers, until};
use std::thread::JoinHandle;

const INSERT: &str = "INSERT INTO shop.safe VALUES (NULL)";
const INSERT_MYISAM: &str = "INSERT INTO shop.plain VALUES (1)";
const DDL: &str = "ALTER TABLE shop.other ADD COLUMN more INT";
const SELECT: &str = "SELECT COUNT(*) FROM shop.safe";

/// A statement on its way, in a session of its own.
struct Attempt {
    id: u64,
    thread: JoinHandle<()>,
    observer: Session,
}

impl Attempt {
    fn start(options: &ConnectOptions, sql: &'static str) -> Self {
        let mut session = Session::open(options).unwrap();
        let id = session.id();
        let thread = std::thread::spawn(move || session.run(sql).unwrap());
        Self {
            id,
            thread,
            observer: Session::open(options).unwrap(),
        }
    }

    /// Returns whether it ends up waiting; `false` when it gets through.
    fn waits(&mut self) -> bool {
        let mut waiting = false;
        until("the statement ends or waits", || {
            let list = self.observer.rows("SHOW FULL PROCESSLIST").unwrap();
            let own = list
                .iter()
                .find(|row| row.get("Id") == Some(&self.id.to_string()));
            let state = own.and_then(|row| row.get("State")).unwrap_or_default();
            waiting = state.starts_with("Waiting for");
            waiting || self.thread.is_finished()
        });
        waiting
    }

    fn finish(self) {
        self.thread.join().unwrap();
    }
}

fn shop(server: &TestServer, scratch: &Scratch) -> Running {
    let running = server.start(
        &scratch.join("data"),
        &["--log-bin=binlog", "--server-id=7"],
    );
    let mut session = running.session().unwrap();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.safe (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE shop.plain (id INT) ENGINE=MyISAM",
        "CREATE TABLE shop.other (id INT) ENGINE=InnoDB",
    ] {
        session.run(sql).unwrap();
    }
    running
}

/// Takes a lock and looks at what waits: what should, does until the release.
fn check(
    name: &str,
    options: &ConnectOptions,
    lock: impl FnOnce(&mut Locker<'_>),
    blocked: &[&'static str],
    free: &[&'static str],
) {
    let cancel = Cancel::new();
    let mut locker = Locker::open(options, Limits::default(), &Silent, &cancel).unwrap();
    lock(&mut locker);
    for sql in free {
        let mut attempt = Attempt::start(options, sql);
        assert!(!attempt.waits(), "{name}: {sql} waits");
        attempt.finish();
    }
    let mut waiting = Vec::new();
    for sql in blocked {
        let mut attempt = Attempt::start(options, sql);
        assert!(attempt.waits(), "{name}: {sql} got through");
        waiting.push(attempt);
    }
    // In the moment of a backup: flushed, and at a place that does not move.
    locker.flush_engine_logs().unwrap();
    if blocked.contains(&INSERT) {
        let at = locker.coordinates().unwrap();
        assert!(
            at.binlog_file.is_some() && at.binlog_position.is_some(),
            "{name}: {at:?}"
        );
        assert_eq!(locker.coordinates().unwrap(), at);
    }
    let held = locker
        .release()
        .unwrap_or_else(|e| panic!("{name}: {}", e.chain()));
    assert!(held.lock >= held.writes_stopped);
    assert_eq!(
        held.writes_stopped.is_zero(),
        !blocked.contains(&INSERT),
        "{name}"
    );
    for attempt in waiting {
        attempt.finish();
    }
}

#[test]
fn every_lock_on_every_server() {
    for server in servers().into_iter().chain(newer_servers()) {
        let scratch = Scratch::new();
        let running = shop(&server, &scratch);
        let options = running.connect_options();
        let name = server.name;
        let mut session = running.session().unwrap();
        let abilities = Abilities::probe(&mut session).unwrap();
        let before = Coordinates::read(&mut session, &abilities).unwrap();
        assert_eq!(
            before.binlog_file.as_deref(),
            Some("binlog.000001"),
            "{name}"
        );

        let all_writes = [INSERT, INSERT_MYISAM];
        let auto = |locker: &mut Locker<'_>| locker.take(&LockChoice::Auto).unwrap();
        check(name, &options, auto, &all_writes, &[SELECT]);
        let global = |locker: &mut Locker<'_>| locker.take(&LockChoice::GlobalRead).unwrap();
        check(
            name,
            &options,
            global,
            &[INSERT, INSERT_MYISAM, DDL],
            &[SELECT],
        );
        let own = |locker: &mut Locker<'_>| {
            let before = "FLUSH TABLES WITH READ LOCK".to_owned();
            let after = "UNLOCK TABLES".to_owned();
            locker
                .take(&LockChoice::Statements { before, after })
                .unwrap();
        };
        check(name, &options, own, &all_writes, &[SELECT]);

        match server.id {
            "mariadb-10.11" | "mariadb-11.8" => mariadb(name, &options),
            "mysql-8.0.15" | "mysql-9" => {
                let ddl = |locker: &mut Locker<'_>| assert!(locker.block_ddl().unwrap());
                let undo = "ALTER TABLE shop.other DROP COLUMN more";
                check(
                    name,
                    &options,
                    ddl,
                    &[undo],
                    &[INSERT, INSERT_MYISAM, SELECT],
                );
                let both = |locker: &mut Locker<'_>| {
                    assert!(locker.block_ddl().unwrap());
                    locker.stop_writes().unwrap();
                };
                check(
                    name,
                    &options,
                    both,
                    &[INSERT, INSERT_MYISAM, DDL],
                    &[SELECT],
                );
                refused(&options, &LockChoice::BackupStage);
            }
            _ => {
                let none = |locker: &mut Locker<'_>| assert!(!locker.block_ddl().unwrap());
                check(name, &options, none, &[], &[INSERT, INSERT_MYISAM, SELECT]);
                refused(&options, &LockChoice::BackupStage);
                refused(&options, &LockChoice::Instance);
            }
        }
    }
}

fn mariadb(name: &str, options: &ConnectOptions) {
    let mut session = Session::open(options).unwrap();
    for sql in [
        "CREATE TABLE shop.logged (id INT) ENGINE=Aria",
        "CREATE TABLE shop.unlogged (id INT) ENGINE=Aria TRANSACTIONAL=0",
        "CREATE TABLE shop.csv (id INT NOT NULL) ENGINE=CSV",
        "CREATE SEQUENCE shop.numbers ENGINE=Aria",
        "CREATE USER shopper@localhost",
    ] {
        session.run(sql).unwrap();
    }
    let create = "CREATE TABLE shop.third (id INT) ENGINE=InnoDB";
    let logged = "INSERT INTO shop.logged VALUES (1)";
    let unlogged = "INSERT INTO shop.unlogged VALUES (1)";
    let csv = "INSERT INTO shop.csv VALUES (1)";
    let number = "DO NEXTVAL(shop.numbers)";
    let grant = "GRANT SELECT ON shop.* TO shopper@localhost";
    let ddl = |locker: &mut Locker<'_>| assert!(locker.block_ddl().unwrap());
    check(
        name,
        options,
        ddl,
        &[create, INSERT_MYISAM, unlogged, csv, number],
        &[INSERT, SELECT, logged, grant],
    );
    let drop = "DROP TABLE shop.third";
    let staged = |locker: &mut Locker<'_>| locker.take(&LockChoice::BackupStage).unwrap();
    check(
        name,
        options,
        staged,
        &[INSERT, INSERT_MYISAM, unlogged, csv, number, grant, drop],
        &[SELECT],
    );
    // Asked for after a stage, "no writes" is the stage's own way.
    let both = |locker: &mut Locker<'_>| {
        assert!(locker.block_ddl().unwrap());
        locker.stop_writes().unwrap();
    };
    check(name, options, both, &[INSERT, INSERT_MYISAM], &[SELECT]);
    refused(options, &LockChoice::Instance);
}

fn refused(options: &ConnectOptions, choice: &LockChoice) {
    let cancel = Cancel::new();
    let mut locker = Locker::open(options, Limits::default(), &Silent, &cancel).unwrap();
    let error = locker.take(choice).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!error.hints().is_empty());
}
