//! Does `queue forward` bring each row to the other server once and in its order, whoever is killed meanwhile, and
//! refuse where it cannot?

use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_cases::queues::verbs::Queues;
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::{rounds, seed};
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::{Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Two servers, each behind a path that stays when it restarts.
struct Pair {
    scratch: Scratch,
}

impl Pair {
    fn new(source: &QueueSite, target: &QueueSite) -> Self {
        let pair = Self {
            scratch: Scratch::new(),
        };
        pair.shows("source", source);
        pair.shows("target", target);
        pair
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    fn shows(&self, name: &str, site: &QueueSite) {
        let (path, new) = (self.path(name), self.path("new"));
        symlink(site.running.socket(), &new).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// `queue forward` with these arguments.
    fn forward(&self, words: &[&str]) -> std::process::Command {
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = program.command(&["queue", "forward", "--no-defaults", "-u", "root"]);
        command.arg("-S").arg(self.path("source"));
        command.arg("--target-socket").arg(self.path("target"));
        command.args(["--target-user", "root"]).args(words);
        command
    }

    fn once(&self, words: &[&str]) -> Ended {
        run(self.forward(&[words, &["--once"]].concat()))
    }

    #[track_caller]
    fn done(&self, words: &[&str]) -> u64 {
        let ended = self.once(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        ended.answer["rows"].as_u64().unwrap()
    }

    #[track_caller]
    fn refused(&self, words: &[&str], code: i32, because: &str) {
        let ended = self.once(words);
        assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
        assert!(ended.message().contains(because), "{words:?}: {ended:?}");
    }
}

fn all(session: &mut Session, sql: &[&str]) {
    for sql in sql {
        session
            .run(sql)
            .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    }
}

/// The first column of all rows, in the order in which they come.
fn column(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session
        .rows(sql)
        .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    rows.iter()
        .map(|row| row.at(0).unwrap_or("NULL").to_owned())
        .collect()
}

const COLUMNS: &str = "i BIGINT UNSIGNED, n DECIMAL(30,10), f FLOAT, d DOUBLE, b BIT(12), t TEXT CHARACTER SET utf8mb4, \
                       l VARCHAR(20) CHARACTER SET latin1, o LONGBLOB, v VARBINARY(9), a TIMESTAMP(6) NULL, e ENUM('x','y')";

const ROWS: &str = "(18446744073709551615, -12345678901234567890.0123456789, 1.17549e-38, 0.1, 0xfff, 'it''s \\\\ \u{1F40E}', \
                    'm\u{fc}sli', UNHEX('00ff27205c'), '', '2026-03-29 01:30:00.123456', 'y'), \
                    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

const SEEN: &str =
    "SELECT CONCAT_WS('|', i, n, f + 0e0, d, b + 0, HEX(t), HEX(l), HEX(o), HEX(v), a, e) FROM";

#[test]
fn every_column_arrives_and_what_cannot_be_kept_is_refused() {
    let source = QueueSite::start_on(Host::MariaDb10, &["--default-time-zone=+02:00"]);
    let target = QueueSite::start_on(Host::MySql9, &["--default-time-zone=-07:00"]);
    let pair = Pair::new(&source, &target);
    let (mut here, mut there) = (source.session(), target.session());
    let make =
        |name: &str, engine: &str| format!("CREATE TABLE {name} ({COLUMNS}) ENGINE={engine}");
    all(
        &mut here,
        &[
            "SET time_zone = '+00:00'",
            &make("q", "QUEUE"),
            &make("kept", "InnoDB"),
        ],
    );
    let insert = |name: &str| format!("INSERT INTO {name} VALUES {ROWS}");
    all(&mut here, &[&insert("q"), &insert("kept")]);
    all(
        &mut there,
        &[
            "SET time_zone = '+00:00'",
            &make("q", "QUEUE"),
            &make("plain", "InnoDB"),
            &make("odd", "MyISAM"),
        ],
    );
    let expected = column(&mut here, &format!("{SEEN} kept"));
    assert_eq!(pair.done(&["shop.q", "shop.q"]), 2);
    assert_eq!(column(&mut there, &format!("{SEEN} q")), expected);
    assert_eq!(pair.done(&["shop.q", "shop.q"]), 0);
    all(&mut here, &[&insert("q")]);
    assert_eq!(pair.done(&["shop.q", "shop.plain"]), 2);
    assert_eq!(column(&mut there, &format!("{SEEN} plain")), expected);
    pair.refused(&["shop.q", "shop.odd"], 14, "a table of MyISAM");
    pair.refused(&["shop.kept", "shop.q"], 14, "there is no queue");
    by_option_file(&pair, &source, &mut here);
    one_source_one_slot(&pair, &mut here, &mut there);
    settings_that_forget(&pair, &mut here);
    rows_that_do_not_fit(&pair, &mut here, &mut there);
    a_consumer_that_waits_is_let_go(&pair, &source, &mut here);
    to_itself_by_another_way(&source, &mut here);
}

/// What a run that was killed still waits for is given to it, and comes back later.
fn a_consumer_that_waits_is_let_go(pair: &Pair, source: &QueueSite, here: &mut Session) {
    let waiters = |here: &mut Session| source.stat(here, "w", "waiters");
    all(here, &["CREATE TABLE w (i INT) ENGINE=QUEUE"]);
    thread::scope(|scope| {
        let mut waits = source.session();
        scope.spawn(move || waits.run("SELECT queue_wait('w', 2)").unwrap());
        until("it waits", || waiters(here) == 1);
        assert_eq!(pair.done(&["shop.w", "shop.ab", "--slot=9"]), 0);
        assert_eq!(waiters(here), 0, "it began beside another consumer");
    });
}

/// The same server is told by more than one address.
fn to_itself_by_another_way(site: &QueueSite, here: &mut Session) {
    let pair = Pair::new(site, site);
    // Without a row: who begins would otherwise never end.
    pair.refused(&["shop.w", "shop.w"], 2, "cannot be forwarded to itself");
    all(here, &["INSERT INTO w VALUES (1)"]);
    all(here, &["CREATE TABLE other (i INT) ENGINE=QUEUE"]);
    assert_eq!(pair.done(&["shop.w", "shop.other"]), 1);
}

/// The target's socket and user out of a file, and what a person is told.
fn by_option_file(pair: &Pair, source: &QueueSite, here: &mut Session) {
    let file = pair.path("target.cnf");
    let target = pair.path("target");
    fs::write(
        &file,
        format!("[client]\nsocket={}\nuser=root\n", target.display()),
    )
    .unwrap();
    all(here, &["INSERT INTO q (i) VALUES (5)"]);
    let program = env!("CARGO_BIN_EXE_evenkeel-under-test");
    let mut command = std::process::Command::new(program);
    command.args(["queue", "forward", "--no-defaults", "-u", "root", "-S"]);
    command
        .arg(source.running.socket())
        .arg("--target-defaults-file");
    command.arg(file).args(["shop.q", "shop.q", "--once"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text, "shop.q to shop.q: 1 row in 1 batch\n");
}

fn one_source_one_slot(pair: &Pair, here: &mut Session, there: &mut Session) {
    all(
        here,
        &[
            "CREATE TABLE a (i INT) ENGINE=QUEUE",
            "CREATE TABLE b (i INT) ENGINE=QUEUE",
        ],
    );
    all(
        here,
        &[
            "INSERT INTO a VALUES (1), (2), (3)",
            "INSERT INTO b VALUES (11)",
        ],
    );
    all(there, &["CREATE TABLE ab (i INT) ENGINE=QUEUE"]);
    assert_eq!(pair.done(&["shop.a", "shop.ab", "--batch=2"]), 3);
    pair.refused(&["shop.b", "shop.ab"], 14, "belongs to the source");
    assert_eq!(pair.done(&["shop.b", "shop.ab", "--slot=1"]), 1);
    // One that is re-created counts from 1 again: what is taken for sent would be lost.
    all(
        here,
        &[
            "DROP TABLE a",
            "CREATE TABLE a (i INT) ENGINE=QUEUE",
            "INSERT INTO a VALUES (4)",
        ],
    );
    pair.refused(&["shop.a", "shop.ab"], 14, "re-created");
    assert_eq!(column(here, "SELECT i FROM a"), ["4"]);
    let prom = pair.path("forward.prom");
    let metrics = format!("--metrics={}", prom.display());
    assert_eq!(pair.done(&["shop.a", "shop.ab", "--reset", &metrics]), 1);
    let reported = fs::read_to_string(prom).unwrap();
    assert!(
        reported.contains("evenkeel_queue_forward_rows_total{from=\"shop.a\",to=\"shop.ab\"} 1"),
        "{reported}"
    );
    assert_eq!(
        column(there, "SELECT i FROM ab"),
        ["1", "2", "3", "11", "4"]
    );
}

fn settings_that_forget(pair: &Pair, here: &mut Session) {
    all(here, &["SET GLOBAL queue_sync_consume = 1"]);
    pair.refused(&["shop.a", "shop.ab"], 14, "queue_sync_consume is 1");
    all(
        here,
        &[
            "SET GLOBAL queue_sync_consume = 2",
            "SET GLOBAL queue_sync = 1",
        ],
    );
    pair.refused(&["shop.a", "shop.ab"], 14, "queue_sync is 1");
    all(here, &["SET GLOBAL queue_sync = 2"]);
}

/// The target takes no part of a batch in which a row does not fit; when it does, the batch arrives.
fn rows_that_do_not_fit(pair: &Pair, here: &mut Session, there: &mut Session) {
    all(here, &["CREATE TABLE fit (i INT, t TEXT) ENGINE=QUEUE"]);
    all(
        here,
        &["INSERT INTO fit VALUES (1, 'a'), (2, 'too long'), (3, 'b')"],
    );
    for engine in ["InnoDB", "QUEUE"] {
        let make = format!("CREATE TABLE fit (i INT, t VARCHAR(3)) ENGINE={engine}");
        all(there, &["DROP TABLE IF EXISTS fit", &make]);
        let ended = pair.once(&["shop.fit", "shop.fit", "--slot=5", "--reset"]);
        assert_eq!(ended.code, Some(1), "{engine}: {ended:?}");
        assert!(
            ended.message().contains("Data too long"),
            "{engine}: {ended:?}"
        );
        let hint = ended.answer["hints"][0].as_str().unwrap_or_default();
        assert!(hint.contains("make shop.fit take them"), "{ended:?}");
        assert_eq!(column(there, "SELECT i FROM fit"), [""; 0], "{engine}");
        // They are back once the server has noticed that the session is over.
        until("its rows are back", || {
            column(here, "SELECT i FROM fit") == ["1", "2", "3"]
        });
    }
    all(there, &["ALTER TABLE fit MODIFY t TEXT"]);
    assert_eq!(pair.done(&["shop.fit", "shop.fit", "--slot=5"]), 3);
    assert_eq!(column(there, "SELECT i FROM fit"), ["1", "2", "3"]);
}

#[test]
fn killed_at_each_step_it_resumes() {
    let source = QueueSite::start_on(Host::MariaDb10, &[]);
    let target = QueueSite::start_on(Host::MariaDb10, &[]);
    let pair = Pair::new(&source, &target);
    let (mut here, mut there) = (source.session(), target.session());
    let values: Vec<String> = (1..=20).map(|i| format!("({i})")).collect();
    for engine in ["QUEUE", "InnoDB"] {
        for point in ["forward::remembered", "forward::sent", "forward::ended"] {
            all(&mut here, &["CREATE TABLE s (i INT) ENGINE=QUEUE"]);
            all(
                &mut here,
                &[&format!("INSERT INTO s VALUES {}", values.join(", "))],
            );
            let columns = "(place INT AUTO_INCREMENT PRIMARY KEY, i INT)";
            let columns = if engine == "QUEUE" {
                "(i INT)"
            } else {
                columns
            };
            all(
                &mut there,
                &[&format!("CREATE TABLE t {columns} ENGINE={engine}")],
            );
            // Batches of other sizes follow: what is in doubt must go in its own.
            for (batch, nth) in [(3, 2), (2, 1), (5, 1)] {
                if engine == "InnoDB" && point == "forward::remembered" {
                    // It is remembered in the transaction that has the rows.
                    continue;
                }
                let words = ["shop.s", "shop.t", "--once", &format!("--batch={batch}")];
                let ended = run(killed_at(pair.forward(&words), &format!("{point}#{nth}")));
                assert_eq!(ended.signal, Some(9), "{engine}, {point}: {ended:?}");
            }
            pair.done(&["shop.s", "shop.t", "--batch=4"]);
            let expected: Vec<String> = (1..=20).map(|i| i.to_string()).collect();
            let arrived = column(&mut there, "SELECT i FROM t");
            assert_eq!(arrived, expected, "{engine}, {point}");
            all(&mut here, &["DROP TABLE s"]);
            all(&mut there, &["DROP TABLE t, evenkeel_forwarded"]);
        }
    }
}

/// What is at stake while servers and the forwarder are killed.
struct Scene {
    pair: Pair,
    source: Option<QueueSite>,
    target: Option<QueueSite>,
    forwarder: Child,
    /// The largest number of which an INSERT may have been the last.
    next: u64,
    acknowledged: Vec<u64>,
}

const ARGUMENTS: [&str; 3] = ["shop.q", "shop.q", "--batch=7"];

fn spawn(pair: &Pair) -> Child {
    let mut command = pair.forward(&ARGUMENTS);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Scene {
    fn start(from: Host, to: Host, engine: &str) -> Self {
        let (source, target) = (QueueSite::start_on(from, &[]), QueueSite::start_on(to, &[]));
        source
            .session()
            .run("CREATE TABLE q (i BIGINT NOT NULL, what TEXT) ENGINE=QUEUE")
            .unwrap();
        let columns = match engine {
            "InnoDB" => "place BIGINT AUTO_INCREMENT PRIMARY KEY, i BIGINT NOT NULL, what TEXT",
            _ => "i BIGINT NOT NULL, what TEXT",
        };
        target
            .session()
            .run(&format!("CREATE TABLE q ({columns}) ENGINE={engine}"))
            .unwrap();
        let pair = Pair::new(&source, &target);
        Self {
            forwarder: spawn(&pair),
            pair,
            source: Some(source),
            target: Some(target),
            next: 0,
            acknowledged: Vec::new(),
        }
    }

    /// Produces until `ends` has done its part, or the server is gone.
    fn produce_while(&mut self, ends: impl FnOnce(&Self)) {
        let mut session = self.source.as_ref().unwrap().session();
        let (over, first) = (AtomicBool::new(false), self.next);
        let (next, acknowledged) = thread::scope(|scope| {
            let over = &over;
            let producer = scope.spawn(move || {
                let (mut next, mut acknowledged) = (first, Vec::new());
                while !over.load(Ordering::Relaxed) {
                    let of = next..next + 1 + next % 3;
                    let values: Vec<String> = of
                        .clone()
                        .map(|i| format!("({i}, REPEAT('x', {}))", i % 500))
                        .collect();
                    next = of.end;
                    match session.run(&format!("INSERT INTO q VALUES {}", values.join(", "))) {
                        Ok(()) => acknowledged.extend(of),
                        Err(_) => break,
                    }
                }
                (next, acknowledged)
            });
            ends(self);
            over.store(true, Ordering::Relaxed);
            producer.join().unwrap()
        });
        self.next = next;
        self.acknowledged.extend(acknowledged);
    }

    /// Kills one of the three while rows are on their way, and restarts it.
    fn round(&mut self, random: &mut Random) {
        let (victim, pause) = (
            random.below(3),
            Duration::from_millis(u64::from(30 + random.below(500))),
        );
        self.produce_while(|scene| {
            thread::sleep(pause);
            let pid = match victim {
                0 => i32::try_from(scene.forwarder.id()).unwrap(),
                1 => scene.source.as_ref().unwrap().running.pid(),
                _ => scene.target.as_ref().unwrap().running.pid(),
            };
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        });
        match victim {
            0 => {
                self.forwarder.wait().unwrap();
                self.forwarder = spawn(&self.pair);
            }
            1 => {
                let site = self.source.take().unwrap().again(|running| running.kill());
                self.pair.shows("source", &site);
                self.source = Some(site);
            }
            _ => {
                let site = self.target.take().unwrap().again(|running| running.kill());
                self.pair.shows("target", &site);
                self.target = Some(site);
            }
        }
        if let Some(ended) = self.forwarder.try_wait().unwrap() {
            panic!(
                "the forwarder gave up: {ended}: {:?}",
                self.pair.once(&ARGUMENTS)
            );
        }
    }

    /// Lets everything arrive, stops the forwarder, and compares.
    fn settle(&mut self) {
        let mut here = self.source.as_ref().unwrap().session();
        until("the source is empty", || {
            assert_eq!(
                self.forwarder.try_wait().unwrap(),
                None,
                "{:?}",
                self.pair.once(&ARGUMENTS)
            );
            let stats = here.value("SELECT queue_stats('q')").unwrap().unwrap();
            stats.lines().next() == Some("rows: 0")
        });
        let pid = Pid::from_raw(i32::try_from(self.forwarder.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.forwarder.wait().unwrap().success());
        let mut there = self.target.as_ref().unwrap().session();
        let arrived = there.rows("SELECT i, LENGTH(what) FROM q").unwrap();
        let number = |cell: Option<&str>| cell.unwrap().parse::<u64>().unwrap();
        let ids: Vec<u64> = arrived.iter().map(|row| number(row.at(0))).collect();
        assert!(
            ids.windows(2).all(|two| two[0] < two[1]),
            "twice, or out of order: {ids:?}"
        );
        let lost: Vec<&u64> = self
            .acknowledged
            .iter()
            .filter(|id| ids.binary_search(id).is_err())
            .collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert!(
            arrived
                .iter()
                .all(|row| number(row.at(1)) == number(row.at(0)) % 500)
        );
        assert!(ids.last().is_none_or(|last| *last < self.next));
        println!(
            "{} acknowledged, {} arrived",
            self.acknowledged.len(),
            ids.len()
        );
        assert!(!ids.is_empty());
    }
}

fn whoever_is_killed(from: Host, to: Host, engine: &str, sample: u32) {
    let seed = seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut scene = Scene::start(from, to, engine);
    for _ in 0..rounds("kills of a forwarder and its servers", sample, 60) {
        scene.round(&mut random);
    }
    scene.settle();
}

#[test]
fn into_a_queue_of_mariadb() {
    whoever_is_killed(Host::MariaDb10, Host::MariaDb10, "QUEUE", 9);
}

#[test]
fn into_a_queue_of_mysql() {
    whoever_is_killed(Host::MariaDb10, Host::MySql9, "QUEUE", 5);
}

#[test]
fn into_a_table_of_innodb() {
    whoever_is_killed(Host::MySql9, Host::MariaDb10, "InnoDB", 5);
}
