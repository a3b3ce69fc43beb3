//! Does a dump that was interrupted anywhere go on to what a dump at the new instant holds, keeping what
//! nobody wrote to and nothing else?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{contents, done, dump, manifest};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_logical::dump::{
    Compression, Directory, Filter, Format, Leftover, Request, Throttling, dump as dump_here,
};
use evenkeel_logical::objects::Definer;
use evenkeel_op::{Cancel, Silent};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_server::lock::{Limits, LockChoice};
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Proxy, Scratch, TestServer, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// After the last row.
const END: &str = "dump.before-manifest";

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// A server with tables of several files each, and the dump's directory.
struct Site {
    server: TestServer,
    launch: Launch,
    running: Option<Running>,
    dir: PathBuf,
    scratch: Scratch,
}

impl Site {
    fn start(server: TestServer, flags: &[&str]) -> Self {
        let scratch = Scratch::new();
        let args: Vec<&str> = SMALL.iter().chain(flags).copied().collect();
        let launch = server.prepare(&scratch.join("data"), &args);
        let launch = launch.with_networking();
        let site = Self {
            running: Some(server.run(&launch)),
            dir: scratch.join("d"),
            launch,
            scratch,
            server,
        };
        fill(&mut site.session());
        site
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    fn session(&self) -> Session {
        self.running().session().unwrap()
    }

    fn start_again(&mut self) {
        self.running = Some(self.server.run(&self.launch));
    }

    fn dump(&self, dir: &Path, flags: &[&str]) -> std::process::Command {
        let mut all = vec!["--chunk-size=64K", "--threads=3"];
        all.extend(flags);
        dump(&program(), self.running(), dir, &all)
    }

    #[track_caller]
    fn dies_at(&self, point: &str) {
        let ended = run(killed_at(self.dump(&self.dir, &["--resume"]), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        assert!(!self.dir.join("manifest.json").exists());
    }

    /// Goes on to the end, and compares with a dump of the same moment.
    #[track_caller]
    fn continues(&self) -> Ended {
        let ended = done(run(self.dump(&self.dir, &["--resume"])));
        let fresh = self.scratch.join("fresh");
        done(run(self.dump(&fresh, &[])));
        let (ours, theirs) = (contents(&self.dir), contents(&fresh));
        let names: Vec<&String> = ours.keys().collect();
        assert_eq!(names, theirs.keys().collect::<Vec<_>>());
        for (name, rows) in &ours {
            assert!(
                *rows == theirs[name],
                "{}: {name} differs",
                self.server.name
            );
        }
        let coordinates = |dir: &Path| manifest(dir)["coordinates"].clone();
        assert_eq!(coordinates(&self.dir), coordinates(&fresh));
        let left = |name: &str| self.dir.join(name).exists();
        assert!(!left("UNFINISHED") && !left(".journal"));
        fs::remove_dir_all(&fresh).unwrap();
        fs::remove_dir_all(&self.dir).unwrap();
        ended
    }

    /// Dumps all rows, dies, has somebody write, and goes on.
    #[track_caller]
    fn written_between(&self, statements: &[&str]) -> Ended {
        self.dies_at(END);
        let mut session = self.session();
        for sql in statements {
            session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
        }
        self.continues()
    }
}

fn fill(session: &mut Session) {
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE quiet (id INT PRIMARY KEY, t VARCHAR(300))",
        "CREATE TABLE busy (id INT PRIMARY KEY, t VARCHAR(300))",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE by_name (a VARCHAR(20), b INT, t VARCHAR(300), PRIMARY KEY (a, b))",
        "CREATE TABLE isam (id INT) ENGINE=MyISAM",
        "CREATE TABLE no_key (id INT)",
        "CREATE TABLE place (de DECIMAL(20,5), e ENUM('a','b'), s SET('a','b'), b BIT(13), c CHAR(100) CHARACTER SET utf8mb4, \
         v VARCHAR(300), f FLOAT, d DOUBLE, dt DATETIME(3), ti TIME(2), ts TIMESTAMP(1) NULL, y YEAR, da DATE, g GEOMETRY, \
         j JSON, i TINYINT, code VARCHAR(20) NOT NULL UNIQUE, note TEXT, id INT PRIMARY KEY)",
        "CREATE TABLE guest (id INT PRIMARY KEY, code VARCHAR(20), FOREIGN KEY (code) REFERENCES place (code) ON UPDATE CASCADE)",
        "INSERT INTO place VALUES (-12345.67, 'b', 'a,b', b'101', 'text', 'x', 0.5, 0.25, '2026-01-02 03:04:05.678', '-01:02:03', \
         '2026-01-02 03:04:05', 2026, '2026-01-02', ST_GeomFromText('POINT(1 2)'), '{\"k\": 1}', 1, 'a', 'n', 1)",
        "INSERT INTO place (code, id) VALUES ('b', 2)",
        "INSERT INTO guest VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (1, 1), (2, 2)",
        "INSERT INTO isam VALUES (1)",
        "INSERT INTO no_key VALUES (1), (1)",
    ] {
        session.run(sql).unwrap();
    }
    for from in [0, 1000, 2000] {
        let rows = |row: &dyn Fn(u32) -> String| {
            let rows: Vec<String> = (from..from + 1000).map(row).collect();
            rows.join(",")
        };
        let plain = rows(&|n| format!("({n}, REPEAT('x', 200))"));
        let named = rows(&|n| format!("('name {}', {n}, REPEAT('y', 200))", n / 40));
        for sql in [
            format!("INSERT INTO quiet VALUES {plain}"),
            format!("INSERT INTO busy VALUES {plain}"),
            format!("INSERT INTO by_name VALUES {named}"),
        ] {
            session.run(&sql).unwrap();
        }
    }
    session.run("ANALYZE TABLE quiet, busy, by_name").unwrap();
    next_second(session);
}

/// Waits until the log's file and the tables' last writes are of an earlier second than any view.
fn next_second(session: &mut Session) {
    let now = "SELECT FLOOR(UNIX_TIMESTAMP())";
    let written = session.value(now).unwrap();
    until("the next second", || session.value(now).unwrap() != written);
}

fn kept(ended: &Ended) -> u64 {
    ended.answer["resumed"]["chunks_kept"].as_u64().unwrap()
}

/// Why files were read again.
fn why(ended: &Ended) -> String {
    ended.answer["resumed"]["again"].to_string()
}

/// Where a run is killed, one after the other, each going on where the last one was.
const KILLS: [&str; 8] = [
    "dump.snapshot-taken",
    "dump.handed-out",
    "dump.range-done#5",
    "dump.kept",
    "dump.handed-out#3",
    "dump.range-done#7",
    "dump.snapshot-taken",
    END,
];

fn case(server: TestServer) {
    let site = Site::start(server, &["--binlog-format=ROW"]);
    for point in KILLS {
        site.dies_at(point);
    }
    let ended = site.continues();
    // All but the table without transactions.
    assert!(kept(&ended) > 20, "{}", ended.answer);
    assert_eq!(ended.answer["chunks"], kept(&ended) + 1, "{}", ended.answer);
    assert!(why(&ended).contains("no transactions"), "{}", why(&ended));

    let ended = site.written_between(&[
        "UPDATE d.busy SET t = 'new' WHERE id = 7",
        "DELETE FROM d.parent WHERE id = 1",
    ]);
    assert!(
        why(&ended).contains("was written to since"),
        "{}",
        why(&ended)
    );
    assert!(
        why(&ended).contains("a foreign key refers"),
        "{}",
        why(&ended)
    );
    assert!(kept(&ended) > 10, "{}", ended.answer);
    let ended = site.written_between(&["TRUNCATE d.busy"]);
    assert!(
        why(&ended).contains("what is dumped of it, changed"),
        "{}",
        why(&ended)
    );
    assert!(kept(&ended) > 10, "{}", ended.answer);
    no_key_follows(&site);
    keys_follow_their_columns(&site);
}

/// New rows and other values of a parent change no rows of a child that only ON DELETE leads to.
fn no_key_follows(site: &Site) {
    let ended = site.written_between(&[
        "INSERT INTO d.parent VALUES (9)",
        "UPDATE d.parent SET id = 10 WHERE id = 9",
    ]);
    let why = why(&ended);
    assert!(why.contains("was written to since"), "{why}");
    assert!(!why.contains("child"), "{why}");
}

/// ON UPDATE CASCADE follows the columns that it refers to, and no others of the parent's.
fn keys_follow_their_columns(site: &Site) {
    const OTHERS: &str = "UPDATE d.place SET de = de - 1, e = 'a', s = '', b = b'1', c = 'other', v = REPEAT('x', 290), f = 1, \
        d = NULL, dt = '2027-01-01', ti = '25:00:00.5', ts = NULL, y = NULL, da = NULL, g = NULL, j = '[1]', i = i + 1, note = 'new'";
    for (sql, follows) in [
        (OTHERS, false),
        ("UPDATE d.place SET i = id, note = NULL", false),
        (
            "UPDATE d.place SET note = '', code = 'c' WHERE id = 2",
            true,
        ),
    ] {
        let why = why(&site.written_between(&[sql]));
        assert!(why.contains("was written to since"), "{sql}: {why}");
        assert_eq!(
            why.contains("a foreign key refers"),
            follows,
            "{sql}: {why}"
        );
    }
    let partly = [
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE d.place SET note = 'newer'",
    ];
    let why = why(&site.written_between(&partly));
    assert!(why.contains("a foreign key refers"), "{why}");
}

/// What is deleted from a system-versioned table has an end, and is logged as an update.
#[test]
fn keys_follow_what_becomes_history() {
    let site = Site::start(mariadb_10_11(), &["--binlog-format=ROW"]);
    let mut session = site.session();
    for sql in [
        "USE d",
        "CREATE TABLE dated (id INT PRIMARY KEY, t TEXT) WITH SYSTEM VERSIONING",
        "CREATE TABLE heir (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES dated (id) ON DELETE CASCADE)",
        "INSERT INTO dated VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO heir VALUES (1), (2)",
    ] {
        session.run(sql).unwrap();
    }
    next_second(&mut session);
    let why = why(&site.written_between(&["DELETE FROM d.dated WHERE id = 2"]));
    assert!(why.contains("a foreign key refers"), "{why}");
}

/// One of the three servers in each run.
fn in_turn(server: TestServer, nth: usize) {
    share("servers of dumps that go on", &[server], Part::new(nth, 3))
        .into_iter()
        .for_each(case);
}

#[test]
fn mariadb() {
    in_turn(mariadb_10_11(), 0);
}

#[test]
fn mysql_8() {
    in_turn(mysql_8_0_15(), 1);
}

#[test]
fn mysql_5_7() {
    in_turn(mysql_5_7_22(), 2);
}

/// What the log says as statements, does not say, or says no more.
#[test]
fn what_is_not_proved_is_read_again() {
    let mut site = Site::start(mariadb_10_11(), &["--binlog-format=STATEMENT"]);
    let ended = site.written_between(&["UPDATE d.busy SET t = 'statement' WHERE id = 8"]);
    assert!(kept(&ended) > 10, "{}", ended.answer);
    let ended = site.written_between(&[
        "CREATE FUNCTION d.f() RETURNS INT DETERMINISTIC RETURN 3",
        "UPDATE d.busy SET t = 'function' WHERE id = d.f()",
        "DROP FUNCTION d.f",
    ]);
    assert_eq!(kept(&ended), 0, "{}", ended.answer);
    assert!(why(&ended).contains("does not say"), "{}", why(&ended));
    // Kept out of the log by hand.
    let ended = site.written_between(&[
        "SET SESSION sql_log_bin = 0",
        "UPDATE d.busy SET t = 'unlogged' WHERE id = 9",
    ]);
    assert!(
        why(&ended).contains("InnoDB reports writes"),
        "{}",
        why(&ended)
    );
    assert!(kept(&ended) > 10, "{}", ended.answer);
    // A log that is restarted has events at the same places.
    site.session().run("RESET MASTER").unwrap();
    next_second(&mut site.session());
    let ended =
        site.written_between(&["UPDATE d.busy SET t = 'lost' WHERE id = 9", "RESET MASTER"]);
    assert_eq!(kept(&ended), 0, "{}", ended.answer);
    assert!(why(&ended).contains("was reset"), "{}", why(&ended));
    next_second(&mut site.session());
    // A file that was damaged meanwhile, and one that is not there.
    site.dies_at(END);
    let file = site.dir.join("d/quiet.000002-0.tsv.zst");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    fs::remove_file(site.dir.join("d/busy.000001-0.tsv.zst")).unwrap();
    let ended = site.continues();
    assert!(
        why(&ended).contains(r#""chunks":2,"why":"the file is not"#),
        "{}",
        why(&ended)
    );

    // Shut down in good order it proves as much as before; crashed, only when it is durable.
    site.dies_at("dump.range-done#6");
    let stopped = site.running.take().unwrap();
    stopped.stop(std::time::Duration::from_secs(60)).unwrap();
    site.start_again();
    let ended = site.continues();
    assert!(kept(&ended) > 3, "{}", ended.answer);
    next_second(&mut site.session());
    site.dies_at(END);
    site.running.take().unwrap().kill();
    site.start_again();
    let ended = site.continues();
    assert_eq!(kept(&ended), 0, "{}", ended.answer);
    assert!(why(&ended).contains("has crashed"), "{}", why(&ended));
}

/// The server dies in the middle, more than once, and is started again.
#[test]
fn a_server_that_dies() {
    let _scenario = fail::FailScenario::setup();
    let durable = ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"];
    let mut site = Site::start(mariadb_10_11(), &durable);
    let options = site.running().connect_options();
    let victim = Arc::new(Mutex::new(site.running.take()));
    let (killer, seen) = (victim.clone(), AtomicU32::new(0));
    fail::cfg_callback("dump.range-done", move || {
        if seen.fetch_add(1, Ordering::SeqCst) == 9
            && let Some(running) = killer.lock().unwrap().take()
        {
            running.kill();
        }
    })
    .unwrap();
    let request = Request {
        threads: 3,
        filter: Filter::default(),
        format: Format::Tab,
        compression: Compression::default(),
        chunk_bytes: 1 << 16,
        lock: Some(LockChoice::Auto),
        limits: Limits::default(),
        definer: Definer::Keep,
        throttle: Throttling::default(),
    };
    let directory = Directory {
        place: site.dir.clone().into(),
        leftover: Leftover::Refuse,
    };
    let error = dump_here(&options, &request, &directory, &Silent, &Cancel::new()).unwrap_err();
    assert_eq!(error.kind().exit_code(), 13, "{}", error.chain());
    fail::remove("dump.range-done");
    site.start_again();
    let ended = site.continues();
    assert!(kept(&ended) >= 7, "{}", ended.answer);
    assert_eq!(why(&ended), "[]");
}

#[test]
fn connections_that_are_cut_and_a_disk_that_was_full() {
    let site = Site::start(mariadb_10_11(), &[]);
    let mut session = site.session();
    session.run("CREATE USER u@'127.0.0.1'").unwrap();
    session.run("GRANT ALL ON *.* TO u@'127.0.0.1'").unwrap();
    let proxy = Proxy::to(site.running().port().expect("a port"));
    proxy.cut_after(&[u64::MAX, 600_000]);
    let mut command = program().command(&["dump", "--no-defaults", "-u", "u", "-h", "127.0.0.1"]);
    command.args(["--ssl-mode=DISABLED", "--chunk-size=64K", "--threads=1"]);
    command.arg(format!("--port={}", proxy.port()));
    command.arg("--output").arg(&site.dir);
    let ended = run(command);
    assert_eq!(ended.code, Some(13), "{ended:?}");
    let ended = site.continues();
    assert!(kept(&ended) > 3, "{}", ended.answer);

    let small = LoopFs::ext4(16 << 20);
    let free = rustix::fs::statvfs(small.path()).unwrap();
    let filler = small.join("filler");
    let size = (free.f_bavail * free.f_frsize - 900_000) as usize;
    fs::write(&filler, vec![1; size]).unwrap();
    let output = small.join("d");
    let full = run(site.dump(&output, &["--compress=none"]));
    assert_eq!(full.code, Some(1), "{full:?}");
    fs::remove_file(&filler).unwrap();
    let ended = done(run(site.dump(&output, &["--compress=none", "--resume"])));
    assert!(kept(&ended) > 3, "{}", ended.answer);
    let fresh = site.scratch.join("fresh");
    done(run(site.dump(&fresh, &[])));
    assert!(contents(&output) == contents(&fresh));
}
