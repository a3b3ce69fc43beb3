//! Does a dump of a server under load hold every row from one point in time, byte for byte, and is what is
//! not finished not taken for a dump?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{checksums, dump, load, make_hard, make_special, manifest};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_logical::dump::{
    Compression, Directory, Filter, Format, Manifest, Request, Throttling,
};
use evenkeel_logical::objects::Definer;
use evenkeel_op::{Cancel, Error, Event, Progress, Silent};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{
    mariadb_10_11, mysql_5_7_22, mysql_8_0_15, newer_servers, servers,
};
use evenkeel_testkit::{Bank, Scratch, TestServer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    let mut args = SMALL.to_vec();
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    server.start(&scratch.join(name), &args)
}

fn session(running: &Running) -> Session {
    running.session().expect("a session")
}

#[track_caller]
fn done(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{}", ended.message());
    ended
}

/// Loads the dump into a server of its own and compares.
fn assert_whole(
    server: &TestServer,
    scratch: &Scratch,
    dump: &Path,
    source: &mut Session,
) -> (Session, Running) {
    let name = format!("{}-loaded", dump.file_name().unwrap().to_string_lossy());
    let target = start(server, scratch, &name);
    load(dump, &target);
    let mut loaded = session(&target);
    assert_eq!(checksums(&mut loaded), checksums(source), "{}", server.name);
    let bank = Bank::find(&mut loaded).unwrap();
    let state = bank.check(&mut loaded);
    state.unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
    (loaded, target)
}

fn case(server: &TestServer) {
    let scratch = Scratch::new();
    let running = start(server, &scratch, "source");
    let mut source = session(&running);
    make_hard(&mut source);
    make_special(&mut source, server.binary.flavour);
    let bank = Bank::load(&mut source, 3000).unwrap();
    source
        .run("ANALYZE TABLE bank.accounts_0, bank.accounts_1, bank.accounts_2, bank.accounts_3")
        .unwrap();
    let traffic = bank.start(&running.connect_options(), 4).unwrap();
    traffic.wait_for(50);

    let tabs = scratch.join("tabs");
    let before = traffic.marks();
    let ended = done(run(dump(
        &program(),
        &running,
        &tabs,
        &["--chunk-size=64K", "--threads=3"],
    )));
    let after = traffic.marks();
    let answer = &ended.answer;
    assert_eq!(answer["schema"], "evenkeel/dump/1");
    assert!(answer["coordinates"]["binlog_file"].is_string(), "{answer}");
    assert!(answer["lock_ms"].as_f64() > Some(0.0), "{answer}");
    let read = manifest(&tabs);
    assert_eq!(read["one_view"], true);
    assert_eq!(read["coordinates"], answer["coordinates"]);
    let tables = read["tables"].as_array().unwrap();
    for cut in ["strings", "gaps", "parts"] {
        let table = tables.iter().find(|table| table["name"] == cut).unwrap();
        let chunks = table["chunks"].as_array().unwrap().len();
        assert!((3..60).contains(&chunks), "{cut}: {chunks} chunks");
    }
    assert!(!tabs.join("UNFINISHED").exists());
    traffic.assert_undisturbed();

    let inserts = scratch.join("inserts");
    let flags = ["--format=sql", "--compress=none", "--chunk-size=256K"];
    done(run(dump(&program(), &running, &inserts, &flags)));
    drop(traffic);

    let (mut loaded, _target) = assert_whole(server, &scratch, &tabs, &mut source);
    let state = bank.check(&mut loaded).unwrap();
    state.check_between(&before, &after).unwrap();
    assert_whole(server, &scratch, &inserts, &mut source);
}

// One of the five servers in each run.

#[test]
fn mariadb() {
    for server in share("dumped under load", &[mariadb_10_11()], Part::new(4, 5)) {
        case(&server);
    }
}

#[test]
fn mysql() {
    let servers = [mysql_8_0_15(), mysql_5_7_22()];
    for server in share("dumped under load", &servers, Part::new(1, 5)) {
        case(&server);
    }
}

#[test]
fn newer() {
    for server in share("dumped under load", &newer_servers(), Part::new(3, 5)) {
        case(&server);
    }
}

/// Files of comma-separated values hold them as well.
#[test]
fn mysql_8_in_commas() {
    let server = mysql_8_0_15();
    let scratch = Scratch::new();
    let running = start(&server, &scratch, "source");
    let mut source = session(&running);
    make_hard(&mut source);
    Bank::load(&mut source, 300).unwrap();
    let commas = scratch.join("commas");
    done(run(dump(
        &program(),
        &running,
        &commas,
        &["--format=csv-header"],
    )));
    assert_whole(&server, &scratch, &commas, &mut source);
}

/// Filters leave out what they say; a condition holds for its rows only.
#[test]
fn what_is_left_out_is_left_out() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = start(&server, &scratch, "source");
    let mut source = session(&running);
    Bank::load(&mut source, 100).unwrap();
    source.run("CREATE DATABASE other").unwrap();
    source.run("CREATE TABLE other.t (a INT)").unwrap();
    let output = scratch.join("d");
    let flags = [
        "--database=bank",
        "--exclude=bank\\.ledger|.*_1",
        "--where=bank.accounts_0=id < 10",
    ];
    done(run(dump(&program(), &running, &output, &flags)));
    let read = manifest(&output);
    let names: Vec<(&str, u64)> = read["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["name"].as_str().unwrap(), t["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        names,
        [("accounts_0", 3), ("accounts_2", 25), ("accounts_3", 25)]
    );
    for (flag, said) in [
        ("--database=nothing", "no database 'nothing'"),
        ("--where=bank.nothing=1", "bank.nothing"),
        ("--table=(", "regular expression"),
        ("--compress=rar", "compression"),
    ] {
        let ended = run(dump(&program(), &running, &scratch.join("e"), &[flag]));
        assert_eq!(ended.code, Some(2), "{}", ended.message());
        assert!(ended.message().contains(said), "{}", ended.message());
        assert!(!scratch.join("e/manifest.json").exists());
        let _ = std::fs::remove_dir_all(scratch.join("e"));
    }
}

/// Killed wherever it is, a dump leaves no lock and nothing that passes for a dump.
#[test]
fn killed_dumps_are_no_dumps() {
    for server in draw("killed dumps", &[mariadb_10_11(), mysql_8_0_15()], 1) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, "source");
        let mut source = session(&running);
        Bank::load(&mut source, 1000).unwrap();
        let output = scratch.join("d");
        for point in ["dump.locked", "dump.snapshot-taken", "dump.before-manifest"] {
            let command = dump(&program(), &running, &output, &["--overwrite-unfinished"]);
            let ended = run(killed_at(command, point));
            assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
            assert!(!output.join("manifest.json").exists(), "{point}");
            source
                .run("SET SESSION lock_wait_timeout = 30, innodb_lock_wait_timeout = 30")
                .unwrap();
            source
                .run("UPDATE bank.accounts_0 SET note = 'still writable'")
                .unwrap();
            let refused = run(dump(&program(), &running, &output, &[]));
            assert_eq!(refused.code, Some(2), "{point}: {}", refused.message());
            assert!(
                refused.message().contains("unfinished"),
                "{}",
                refused.message()
            );
        }
        done(run(dump(
            &program(),
            &running,
            &output,
            &["--overwrite-unfinished"],
        )));
        let rows: u64 = manifest(&output)["tables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|table| table["rows"].as_u64().unwrap())
            .sum();
        assert_eq!(rows, 1000);
        let again = run(dump(
            &program(),
            &running,
            &output,
            &["--overwrite-unfinished"],
        ));
        assert_eq!(again.code, Some(2), "a dump was overwritten");
    }
}

fn in_process(running: &Running, output: &Path) -> Result<(), Error> {
    in_process_with(running, output, &Silent)
}

fn in_process_with(running: &Running, output: &Path, progress: &dyn Progress) -> Result<(), Error> {
    in_files_of(1 << 20, running, output, progress)
}

fn in_files_of(
    chunk_bytes: u64,
    running: &Running,
    output: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let request = Request {
        threads: 1,
        filter: Filter::default(),
        format: Format::Tab,
        compression: Compression::None,
        chunk_bytes,
        lock: Some(evenkeel_server::lock::LockChoice::Auto),
        limits: evenkeel_server::lock::Limits::default(),
        definer: Definer::Keep,
        throttle: Throttling::default(),
    };
    let directory = Directory {
        place: output.to_owned().into(),
        leftover: evenkeel_logical::dump::Leftover::Refuse,
    };
    let options = running.connect_options();
    evenkeel_logical::dump::dump(&options, &request, &directory, progress, &Cancel::new())
        .map(|_| ())
}

/// A table that changes its shape during the dump fails it, by name.
#[test]
fn ddl_is_noticed() {
    let _scenario = fail::FailScenario::setup();
    for server in draw("servers of DDL", &servers(), 1) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, "source");
        let mut source = session(&running);
        source.run("CREATE DATABASE d").unwrap();
        for (number, ddl) in ["TRUNCATE TABLE", "DROP TABLE", "ALTER TABLE"]
            .iter()
            .enumerate()
        {
            source
                .run("CREATE OR REPLACE VIEW d.v AS SELECT 1")
                .unwrap();
            source
                .run(&format!(
                    "CREATE TABLE d.t{number} (a INT PRIMARY KEY, b INT)"
                ))
                .unwrap();
            source
                .run(&format!("INSERT INTO d.t{number} VALUES (1, 1), (2, 2)"))
                .unwrap();
            // What the server says of a table's making is in whole seconds.
            let made = format!(
                "SELECT MAX(CREATE_TIME) < NOW() FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = 't{number}'"
            );
            evenkeel_testkit::until("a second has passed", || {
                session(&running).value(&made).unwrap().as_deref() == Some("1")
            });
            let tail = if *ddl == "ALTER TABLE" {
                "DROP COLUMN b"
            } else {
                ""
            };
            let sql = format!("{ddl} d.t{number} {tail}");
            let options = running.connect_options();
            fail::cfg_callback("dump.snapshot-taken", move || {
                Session::open(&options).unwrap().run(&sql).unwrap();
            })
            .unwrap();
            let output = scratch.join(format!("d{number}"));
            let error = match in_process(&running, &output) {
                Ok(()) => panic!("{}: {ddl} passed unnoticed", server.name),
                Err(error) => error,
            };
            fail::remove("dump.snapshot-taken");
            let name = format!("d.t{number}");
            assert!(
                error.chain().contains(&name),
                "{}, {ddl}: {}",
                server.name,
                error.chain()
            );
            assert!(
                error.to_string().contains("altered"),
                "{}, {ddl}: {}",
                server.name,
                error.chain()
            );
            assert!(!output.join("manifest.json").exists());
            let _ = source.run(&format!("DROP TABLE IF EXISTS d.t{number}"));
        }
        // Left alone, it is dumped.
        source.run("CREATE TABLE d.quiet (a INT)").unwrap();
        in_process(&running, &scratch.join("quiet")).unwrap();
    }
}

/// Keeps notes.
#[derive(Default)]
struct Notes(std::sync::Mutex<Vec<String>>);

impl Progress for Notes {
    fn event(&self, event: Event) {
        if let Event::Note(text) = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

/// What is changed right after the instant is not taken for what was there: another view is taken.
#[test]
fn definitions_are_of_the_instant() {
    let _scenario = fail::FailScenario::setup();
    let servers = [mysql_8_0_15(), mysql_5_7_22(), mariadb_10_11()];
    for server in draw("servers of definitions", &servers, 1) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, "source");
        let mut source = session(&running);
        for sql in [
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY)",
            "INSERT INTO d.t VALUES (1)",
            "CREATE VIEW d.v AS SELECT 1 AS a",
            "CREATE PROCEDURE d.p() SELECT 1",
        ] {
            source.run(sql).unwrap();
        }
        let changes = [
            (
                "view d.v differs",
                "CREATE OR REPLACE VIEW d.v AS SELECT 2 AS a",
            ),
            ("procedure d.p is only in the first", "DROP PROCEDURE d.p"),
            ("table d.t", "ALTER TABLE d.t ADD COLUMN b INT"),
            (
                "trigger d.new is only in the second",
                "CREATE TRIGGER d.new BEFORE INSERT ON d.t FOR EACH ROW SET NEW.a = 1",
            ),
        ];
        for (number, (said, ddl)) in changes.into_iter().enumerate() {
            let options = running.connect_options();
            let done = AtomicBool::new(false);
            fail::cfg_callback("dump.seen", move || {
                if !done.swap(true, Ordering::SeqCst) {
                    Session::open(&options).unwrap().run(ddl).unwrap();
                }
            })
            .unwrap();
            let output = scratch.join(format!("d{number}"));
            let notes = Notes::default();
            let ended = in_process_with(&running, &output, &notes);
            fail::remove("dump.seen");
            ended.unwrap_or_else(|e| panic!("{}, {ddl}: {}", server.name, e.chain()));
            let notes = notes.0.into_inner().unwrap();
            let again: Vec<_> = notes
                .iter()
                .filter(|n| n.contains("trying again"))
                .collect();
            assert_eq!(again.len(), 1, "{}: {notes:?}", server.name);
            assert!(again[0].contains(said), "{}: {again:?}", server.name);
        }
        let output = scratch.join("d3");
        let objects = Manifest::read(&output).unwrap().objects(&output).unwrap();
        let [database] = &objects.databases[..] else {
            panic!("{objects:?}")
        };
        assert_eq!(database.tables[0].columns.len(), 2);
        assert!(database.routines.is_empty() && database.triggers.len() == 1);
    }
}

/// A range may end at rows that were written after the instant: those behind it are there all the same. MySQL 5.7 loses
/// ranges in such a view.
#[test]
fn newer_rows_hide_no_others() {
    let _scenario = fail::FailScenario::setup();
    let servers = [mysql_5_7_22(), mysql_8_0_15(), mariadb_10_11()];
    for server in draw("servers of newer rows", &servers, 1) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, "source");
        let mut source = session(&running);
        for sql in [
            "CREATE DATABASE d",
            "CREATE TABLE d.ledger (client INT NOT NULL, seq BIGINT NOT NULL, giver INT NOT NULL, \
             PRIMARY KEY (client, seq), KEY giver (giver)) ENGINE=InnoDB",
            "CREATE TABLE d.numbers (n INT PRIMARY KEY) ENGINE=InnoDB",
            "INSERT INTO d.numbers VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
            "INSERT INTO d.ledger SELECT c.n, 1000 * m.n + 100 * h.n + 10 * t.n + u.n, 1 \
             FROM d.numbers c, d.numbers m, d.numbers h, d.numbers t, d.numbers u WHERE c.n < 4 AND 1000 * m.n + 100 * h.n + 10 * t.n + u.n < 5987",
            "ANALYZE TABLE d.ledger",
            // For people who forget LIMIT: no limit of ours.
            "SET GLOBAL sql_select_limit = 5",
        ] {
            source.run(sql).unwrap();
        }
        let options = running.connect_options();
        fail::cfg_callback("dump.seen", move || {
            let mut writer = Session::open(&options).unwrap();
            for seq in 6000..6300 {
                let newer = format!(
                    "INSERT INTO d.ledger VALUES (0, {seq}, 1), (1, {seq}, 1), (2, {seq}, 1), (3, {seq}, 1)"
                );
                writer.run(&newer).unwrap();
            }
        })
        .unwrap();
        let output = scratch.join("d");
        // Large pieces are read along the whole key, small ones by ranges.
        let ended = in_files_of(64 << 10, &running, &output, &Silent);
        fail::remove("dump.seen");
        ended.unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
        let newest = source.value("SELECT COUNT(*) FROM d.ledger").unwrap();
        assert_eq!(newest.as_deref(), Some("25148"), "nobody wrote");
        let manifest = Manifest::read(&output).unwrap();
        let tables = manifest.tables.iter();
        let rows: Vec<(&str, u64)> = tables.map(|one| (one.name.as_str(), one.rows)).collect();
        println!(
            "{}: {rows:?} in {} files",
            server.name,
            manifest.tables[0].chunks.len()
        );
        assert!(
            rows.contains(&("ledger", 23_948)),
            "{}: {rows:?}",
            server.name
        );
    }
}
