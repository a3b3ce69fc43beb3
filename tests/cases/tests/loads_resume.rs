//! Does a load that was interrupted anywhere go on to the same result, with no row twice and none of a
//! damaged file?

use evenkeel_cases::dumps::{HARD, done, dump, load_into, manifest};
use evenkeel_cases::loads::{Source, local_infile};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_cases::{SMALL, failpoints};
use evenkeel_logical::load::{self, Request};
use evenkeel_logical::objects::Closeness;
use evenkeel_op::{Cancel, ErrorKind, Silent};
use evenkeel_server::connect::quote_name;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15, servers};
use evenkeel_testkit::{LoopFs, Proxy, Scratch, TestServer};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const DUMP: [&str; 2] = ["--chunk-size=64K", "--compress=zstd"];

/// How long one run waits for the other.
const LIMIT: Duration = Duration::from_secs(60);

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn load(source: &Source, target: &Running, flags: &[&str]) -> std::process::Command {
    load_into(&program(), target, &source.dump, flags)
}

/// Where a run is killed, one after the other. Later times of a point are further on.
const KILLS: [&str; 16] = [
    "load::begun",
    "load::phase#2",
    "load::statement#4",
    "load::phase",
    "load::noted",
    "load::before_commit#3",
    "load::committed",
    "load::chunk#2",
    "load::before_commit#5",
    "load::before_note",
    "load::rows",
    "load::statement#2",
    "load::phase",
    "load::phase#3",
    "load::statement",
    "load::phase#4",
];

fn killed_on_and_on(server: TestServer) {
    let scratch = Scratch::new();
    let source = Source::make(&program(), server, &scratch, true, &DUMP);
    let target = source.server.start(&scratch.join("target"), &SMALL);
    let infile = local_infile(&target);
    let mut kills = KILLS.to_vec();
    if infile.as_deref() == Some("OFF") {
        kills.insert(4, "load::local_infile");
    }
    kills.push("load::finished");
    for point in kills {
        let ended = run(killed_at(load(&source, &target, &["--threads=2"]), point));
        let name = format!("{}, {point}", source.server.name);
        assert_eq!(ended.signal, Some(9), "{name}: {ended:?}");
    }
    let ended = done(run(load(&source, &target, &["--threads=2"])));
    assert_eq!(ended.answer["resumed"], true, "{}", ended.answer);
    assert_eq!(ended.answer["chunks_loaded"], 0, "{}", ended.answer);
    source.assert_same(&target, source.server.name, Closeness::Same);
    assert_eq!(local_infile(&target), infile, "{}", source.server.name);

    // Replaced, and killed after each statement there is, from the first on.
    let flags = ["--replace", "--execute", "--verify", "--method=insert"];
    let dropped = run(killed_at(load(&source, &target, &flags), "load::dropped#5"));
    assert_eq!(dropped.signal, Some(9), "{dropped:?}");
    for number in (1..).step_by(3) {
        assert!(number < 500, "it does not come to its end");
        let point = format!("load::statement#{number}");
        let ended = run(killed_at(load(&source, &target, &flags), &point));
        if ended.signal.is_none() {
            let ended = done(ended);
            assert_eq!(ended.answer["differs"], serde_json::json!([]));
            break;
        }
    }
    source.assert_same(&target, source.server.name, Closeness::Same);
}

/// One of the three servers in each run.
fn killed_in_turn(server: TestServer, nth: usize) {
    share("servers of killed loads", &[server], Part::new(nth, 3))
        .into_iter()
        .for_each(killed_on_and_on);
}

#[test]
fn mariadb_killed() {
    killed_in_turn(mariadb_10_11(), 1);
}

#[test]
fn mysql_8_killed() {
    killed_in_turn(mysql_8_0_15(), 2);
}

#[test]
fn mysql_5_7_killed() {
    killed_in_turn(mysql_5_7_22(), 0);
}

/// The server dies in the middle of rows, and is started again.
#[test]
fn a_server_that_dies_resumes_too() {
    let _scenario = fail::FailScenario::setup();
    for server in draw("servers that die", &servers(), 1) {
        let scratch = Scratch::new();
        let source = Source::make(&program(), server, &scratch, true, &DUMP);
        let launch = source.server.prepare(&scratch.join("target"), &SMALL);
        let target = source.server.run(&launch);
        let options = target.connect_options();
        let victim = Arc::new(Mutex::new((Some(target), 0)));
        let held = victim.clone();
        fail::cfg_callback("load::before_commit", move || {
            let mut held = held.lock().unwrap();
            held.1 += 1;
            if held.1 == 7 {
                held.0.take().unwrap().kill();
            }
        })
        .unwrap();
        let request = Request::new(&source.dump);
        let error = load::load(&options, &request, &Silent, &Cancel::new()).unwrap_err();
        fail::remove("load::before_commit");
        let name = source.server.name;
        assert_eq!(
            error.kind(),
            ErrorKind::Unreachable,
            "{name}: {}",
            error.chain()
        );
        let target = source.server.run(&launch);
        let ended = done(run(load(&source, &target, &["--verify"])));
        assert_eq!(ended.answer["resumed"], true, "{name}");
        assert_eq!(ended.answer["differs"], serde_json::json!([]), "{name}");
        source.assert_same(&target, name, Closeness::Same);
    }
}

/// Connections are cut while rows are on their way.
#[test]
fn cut_connections_lose_nothing() {
    for server in draw("cut connections", &[mysql_8_0_15(), mariadb_10_11()], 1) {
        let scratch = Scratch::new();
        let source = Source::make(&program(), server, &scratch, true, &DUMP);
        let launch = source.server.prepare(&scratch.join("target"), &SMALL);
        let target = source.server.run(&launch.with_networking());
        let proxy = Proxy::to(target.port().unwrap());
        let name = source.server.name;
        // The first connection is for statements, the others are for rows; how many go over which is chance.
        for bytes in [30_000, 100_000, 200_000] {
            proxy.cut_after(&[u64::MAX, bytes, bytes]);
            let port = format!("-P{}", proxy.port());
            let flags = [
                "--no-defaults",
                "-uroot",
                "-h127.0.0.1",
                &port,
                "--threads=2",
            ];
            let mut command = program().command(&["load"]);
            command
                .args(flags)
                .arg("--ssl-mode=DISABLED")
                .arg(&source.dump);
            let ended = run(command);
            assert_eq!(ended.code, Some(13), "{name}, {bytes}: {}", ended.message());
            proxy.cut_after(&[]);
        }
        done(run(load(&source, &target, &[])));
        source.assert_same(&target, name, Closeness::Same);
    }
}

fn count(target: &Running, table: &str) -> u64 {
    let sql = format!("SELECT COUNT(*) FROM {}.{table}", quote_name(HARD));
    let count = target.session().unwrap().value(&sql).unwrap();
    count.unwrap().parse().unwrap()
}

/// Returns the files of a table with their numbers of rows.
fn chunks(dump: &Path, table: &str) -> Vec<(String, u64)> {
    let read = manifest(dump);
    let tables = read["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["name"] == table).unwrap();
    let chunks = table["chunks"].as_array().unwrap().iter();
    chunks
        .map(|one| {
            let file = one["file"].as_str().unwrap().to_owned();
            (file, one["rows"].as_u64().unwrap())
        })
        .collect()
}

fn assert_names(ended: &Ended, file: &str) {
    assert_eq!(ended.code, Some(1), "{}", ended.message());
    assert!(
        ended.message().contains(file) || ended.said.contains(file),
        "{ended:?}"
    );
}

/// A file that is damaged or gone is named, and nothing of it is loaded.
#[test]
fn damaged_files_bring_nothing() {
    for server in draw("damaged files", &[mariadb_10_11(), mysql_8_0_15()], 1) {
        let scratch = Scratch::new();
        let flags = ["--chunk-size=64K", "--compress=none"];
        let source = Source::make(&program(), server, &scratch, true, &flags);
        let target = source.server.start(&scratch.join("target"), &SMALL);
        let (gone, rows) = chunks(&source.dump, "gaps").swap_remove(1);
        let path = source.dump.join(&gone);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_names(&run(load(&source, &target, &[])), &gone);
        fs::write(&path, &whole[1..]).unwrap();
        assert_names(&run(load(&source, &target, &[])), &gone);
        let made = target.session().unwrap().value(&format!(
            "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{HARD}'"
        ));
        assert_eq!(
            made.unwrap().as_deref(),
            Some("0"),
            "{}",
            source.server.name
        );
        // As long as it was, with another letter in the last row.
        let mut other = whole.clone();
        let last = other.len() - 2;
        other[last] = b'h';
        fs::write(&path, &other).unwrap();
        let before: u64 = chunks(&source.dump, "gaps")[..1]
            .iter()
            .map(|one| one.1)
            .sum();
        let flags = ["--threads=1"];
        assert_names(&run(load(&source, &target, &flags)), &gone);
        assert!(
            rows > 0 && count(&target, "gaps") == before,
            "{}",
            source.server.name
        );
        // Of a table without transactions it is noticed before a row is sent.
        let (isam, _) = chunks(&source.dump, "my_isam").swap_remove(0);
        fs::write(&path, &whole).unwrap();
        let isam = source.dump.join(isam);
        let sound = fs::read(&isam).unwrap();
        fs::write(&isam, sound.to_ascii_uppercase()).unwrap();
        assert_names(&run(load(&source, &target, &flags)), isam.to_str().unwrap());
        assert_eq!(count(&target, "my_isam"), 0, "{}", source.server.name);
        fs::write(&isam, &sound).unwrap();
        done(run(load(&source, &target, &["--verify"])));
        source.assert_same(&target, source.server.name, Closeness::Same);
    }
}

/// What is verified is what is there: a value that is another is told.
#[test]
fn other_rows_are_reported() {
    let _scenario = fail::FailScenario::setup();
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let source = Source::make(&program(), server, &scratch, true, &DUMP);
    let target = source.server.start(&scratch.join("target"), &SMALL);
    let options = target.connect_options();
    let session = Mutex::new(target.session().unwrap());
    fail::cfg_callback("load::rows", move || {
        let mut session = session.lock().unwrap();
        let name = quote_name(HARD);
        for sql in [
            format!("UPDATE {name}.gaps SET t = CONCAT(t, ' ') ORDER BY id LIMIT 1"),
            format!("DELETE FROM {name}.no_key WHERE a = 2 AND b = ''"),
        ] {
            session.run(&sql).unwrap();
        }
    })
    .unwrap();
    let request = Request {
        verify: true,
        ..Request::new(&source.dump)
    };
    let report = load::load(&options, &request, &Silent, &Cancel::new()).unwrap();
    let differs = report.differs.unwrap();
    assert_eq!(differs.len(), 2, "{differs:?}");
    assert!(differs[0].contains("gaps: some of its"), "{differs:?}");
    assert!(
        differs[1].contains("no_key has 8003 rows instead of 8004"),
        "{differs:?}"
    );
}

/// Files are not so large, unless somebody asks for it, that a killed load of a table of 40 MB has brought
/// in nothing.
#[test]
fn a_load_commits_early() {
    let scratch = Scratch::new();
    let server = mariadb_10_11().start(&scratch.join("server"), &SMALL);
    let mut session = server.session().unwrap();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, t TEXT)",
        "INSERT INTO d.t SELECT seq, REPEAT('x', 1000) FROM d.seq_1_to_40000",
        "ANALYZE TABLE d.t",
    ] {
        session.run(sql).unwrap();
    }
    let dir = scratch.join("dump");
    done(run(dump(&program(), &server, &dir, &[])));
    session.run("DROP DATABASE d").unwrap();
    let load = || load_into(&program(), &server, &dir, &["--threads=1"]);
    let ended = run(killed_at(load(), "load::before_commit#2"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    let came = session.value("SELECT COUNT(*) FROM d.t").unwrap();
    let came: u64 = came.unwrap().parse().unwrap();
    assert!((1..20_001).contains(&came), "{came}");
    let ended = done(run(load()));
    assert_eq!(ended.answer["rows"], 40_000, "{}", ended.answer);
    let (all, now) = (&ended.answer["chunks"], &ended.answer["chunks_loaded"]);
    assert!(now.as_u64() < all.as_u64(), "{}", ended.answer);
}

/// A run that is given up commits while the next is at work already: no row comes twice.
#[test]
fn late_commits_are_not_repeated() {
    let _scenario = fail::FailScenario::setup();
    let servers = [mysql_5_7_22(), mariadb_10_11(), mysql_8_0_15()];
    for server in draw("late commits", &servers, 1) {
        let scratch = Scratch::new();
        let source = Source::make(&program(), server, &scratch, true, &DUMP);
        let name = source.server.name;
        let target = source.server.start(&scratch.join("target"), &SMALL);
        let (stopped, hears) = mpsc::channel();
        let (resume, waits) = mpsc::channel();
        let waits = Mutex::new(waits);
        let times = AtomicU32::new(0);
        fail::cfg_callback("load::before_commit", move || {
            if times.fetch_add(1, Ordering::SeqCst) == 4 {
                stopped.send(()).unwrap();
                waits.lock().unwrap().recv_timeout(LIMIT).unwrap();
            }
        })
        .unwrap();
        let options = target.connect_options();
        let request = Request {
            threads: 1,
            ..Request::new(&source.dump)
        };
        let first =
            std::thread::spawn(move || load::load(&options, &request, &Silent, &Cancel::new()));
        hears.recv_timeout(LIMIT).unwrap();
        let mut session = target.session().unwrap();
        let holder = session
            .value("SELECT IS_USED_LOCK('evenkeel_load')")
            .unwrap();
        session.run(&format!("KILL {}", holder.unwrap())).unwrap();
        let mut second = load(&source, &target, &["--threads=1"]);
        let second = std::thread::spawn(move || Ended::of(&second.output().unwrap()));
        // The server's list of transactions is not refreshed while it is asked for all the time.
        let mut waits_there = || {
            let status = session.one("SHOW ENGINE INNODB STATUS").unwrap().unwrap();
            status.at(2).unwrap().contains("LOCK WAIT")
        };
        evenkeel_testkit::until("the second run waits for the first", || {
            second.is_finished() || waits_there()
        });
        resume.send(()).unwrap();
        let lost = first.join().unwrap().unwrap_err();
        assert_eq!(
            lost.kind(),
            ErrorKind::Unreachable,
            "{name}: {}",
            lost.chain()
        );
        fail::remove("load::before_commit");
        done(second.join().unwrap());
        source.assert_same(&target, name, Closeness::Same);
    }
}

/// The server's disk is full, and later is not.
#[test]
fn full_disks_are_waited_out() {
    let scratch = Scratch::new();
    let source = Source::make(&program(), mariadb_10_11(), &scratch, true, &DUMP);
    let mut session = source.running.session().unwrap();
    let name = quote_name(HARD);
    let noise = format!(
        "CREATE TABLE {name}.noise ENGINE=InnoDB SELECT seq AS id, RANDOM_BYTES(1024) AS b FROM seq_1_to_24000"
    );
    session.run(&format!("USE {name}")).unwrap();
    session.run(&noise).unwrap();
    let output = scratch.join("noisy");
    done(run(dump(
        &program(),
        &source.running,
        &output,
        &["--chunk-size=1M"],
    )));
    let disk = LoopFs::ext4(512 << 20);
    let launch = source.server.prepare(&disk.join("target"), &SMALL);
    let target = source.server.run(&launch);
    let ballast = disk.join("ballast");
    let room = rustix::fs::statvfs(disk.path()).unwrap();
    let bytes = room.f_bavail * room.f_frsize - (16 << 20);
    let file = fs::File::create(&ballast).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
    drop(file);
    let ended = run(load_into(&program(), &target, &output, &[]));
    fs::remove_file(&ballast).unwrap();
    // The server says so, and may die of it a moment later.
    assert!(matches!(ended.code, Some(1 | 13)), "{}", ended.message());
    let said = ended.answer.to_string();
    assert!(ended.code == Some(13) || said.contains("full"), "{said}");
    target.kill();
    let target = source.server.run(&launch);
    let ended = done(run(load_into(&program(), &target, &output, &["--verify"])));
    assert_eq!(ended.answer["resumed"], true);
    assert_eq!(ended.answer["differs"], serde_json::json!([]));
    source.assert_same(&target, "full", Closeness::Same);
}

/// What was killed when all was done leaves its notes, which are in nobody's way.
#[test]
fn what_is_done_blocks_no_other() {
    let scratch = Scratch::new();
    let source = Source::make(&program(), mariadb_10_11(), &scratch, false, &DUMP);
    let other = scratch.join("other");
    done(run(dump(&program(), &source.running, &other, &DUMP)));
    let target = source.server.start(&scratch.join("target"), &SMALL);
    let ended = run(killed_at(load(&source, &target, &[]), "load::finished"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    let flags = ["--replace", "--execute", "--verify"];
    let ended = done(run(load_into(&program(), &target, &other, &flags)));
    assert_eq!(ended.answer["resumed"], false, "{}", ended.answer);
    assert_eq!(ended.answer["differs"], serde_json::json!([]));
}

#[test]
fn no_fail_point_is_forgotten() {
    let top = evenkeel_testkit::checkout().join("crates/logical/src/load");
    let mut found = Vec::new();
    for path in evenkeel_cases::leftovers::all_files(&top).into_keys() {
        let text = fs::read_to_string(top.join(path)).unwrap();
        for rest in text.split("fail_point!(\"").skip(1) {
            found.push(rest.split('"').next().unwrap().to_owned());
        }
    }
    found.sort();
    let mut known = failpoints::LOAD.to_vec();
    known.sort_unstable();
    assert_eq!(found, known);
}
