//! Does a dump that is cut off end with an error, no lock and a directory that nobody takes for a dump?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{dump, manifest};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_logical::dump::{
    Compression, Directory, Filter, Format, Manifest, Request, Throttling, dump as dump_here,
};
use evenkeel_logical::objects::Definer;
use evenkeel_op::{Cancel, Silent};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Proxy, Scratch, TestServer};
use std::path::Path;
use std::sync::Mutex;

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// Some megabytes that no compression makes small.
fn fill(session: &mut Session) {
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.noise (id INT PRIMARY KEY AUTO_INCREMENT, b BLOB)",
        "CREATE TABLE d.one (id INT PRIMARY KEY)",
    ] {
        session.run(sql).unwrap();
    }
    for _ in 0..24 {
        let some = vec!["(RANDOM_BYTES(1024))"; 1024].join(",");
        let sql = format!("INSERT INTO d.noise (b) VALUES {some}");
        session.run(&sql).unwrap();
    }
    session.run("ANALYZE TABLE d.noise").unwrap();
}

fn request() -> Request {
    Request {
        threads: 3,
        filter: Filter::default(),
        format: Format::Tab,
        compression: Compression::None,
        chunk_bytes: 1 << 20,
        lock: Some(evenkeel_server::lock::LockChoice::Auto),
        limits: evenkeel_server::lock::Limits::default(),
        definer: Definer::Keep,
        throttle: Throttling::default(),
    }
}

fn assert_no_dump(dir: &Path) {
    assert!(!dir.join("manifest.json").exists());
    assert!(dir.join("UNFINISHED").exists());
    let error = Manifest::read(dir).unwrap_err();
    assert!(error.to_string().contains("unfinished"), "{error}");
}

/// The same directory takes the next dump.
fn assert_next_one_succeeds(running: &Running, dir: &Path) {
    let again = run(dump(&program(), running, dir, &["--overwrite-unfinished"]));
    assert_eq!(again.code, Some(0), "{}", again.message());
    let read = Manifest::read(dir).unwrap();
    let objects = read.objects(dir).unwrap();
    assert_eq!(objects.databases.len(), read.schemas.len());
    let rows: u64 = read.tables.iter().map(|table| table.rows).sum();
    assert_eq!(rows, 24 * 1024);
}

fn killed_server(server: &TestServer) {
    let _scenario = fail::FailScenario::setup();
    let scratch = Scratch::new();
    let launch = server.prepare(&scratch.join("data"), &SMALL);
    let running = server.run(&launch);
    fill(&mut running.session().unwrap());
    let options = running.connect_options();
    let slot = std::sync::Arc::new(Mutex::new(Some(running)));
    let killer = slot.clone();
    fail::cfg_callback("dump.snapshot-taken", move || {
        if let Some(running) = killer.lock().unwrap().take() {
            running.kill();
        }
    })
    .unwrap();
    let dir = scratch.join("d");
    let directory = Directory {
        place: dir.clone().into(),
        leftover: evenkeel_logical::dump::Leftover::Refuse,
    };
    let error = dump_here(&options, &request(), &directory, &Silent, &Cancel::new()).unwrap_err();
    fail::remove("dump.snapshot-taken");
    assert_eq!(error.kind().exit_code(), 13, "{}", error.chain());
    assert_no_dump(&dir);
    let running = server.run(&launch);
    assert_next_one_succeeds(&running, &dir);
}

#[test]
fn when_the_server_is_killed() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        killed_server(&server);
    }
}

#[test]
fn when_connections_are_cut() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let launch = server
        .prepare(&scratch.join("data"), &SMALL)
        .with_networking();
    let running = server.run(&launch);
    let mut session = running.session().unwrap();
    fill(&mut session);
    session.run("CREATE USER u@'127.0.0.1'").unwrap();
    session.run("GRANT ALL ON *.* TO u@'127.0.0.1'").unwrap();
    let proxy = Proxy::to(running.port().expect("a port"));
    let output = scratch.join("d");
    // The connection that looks, the one that reads, the one that locks.
    for cuts in [
        &[2000][..],
        &[u64::MAX, 3 << 20],
        &[u64::MAX, u64::MAX, 300],
    ] {
        proxy.cut_after(cuts);
        let mut command = program().command(&["dump", "--no-defaults", "-u", "u"]);
        command.args([
            "-h",
            "127.0.0.1",
            "--ssl-mode=DISABLED",
            "--overwrite-unfinished",
        ]);
        command.arg(format!("--port={}", proxy.port()));
        command
            .args(["--threads=1", "--chunk-size=1M", "--output"])
            .arg(&output);
        let ended = run(command);
        assert_eq!(ended.code, Some(13), "{cuts:?}: {ended:?}");
        match cuts.len() {
            // Who does not know yet what there is makes nothing.
            1 => assert!(!output.exists()),
            _ => assert_no_dump(&output),
        }
        let writable = "SET SESSION lock_wait_timeout = 30, innodb_lock_wait_timeout = 30";
        session.run(writable).unwrap();
        session.run("INSERT INTO d.one VALUES (1)").unwrap();
        session.run("DELETE FROM d.one").unwrap();
    }
    assert_next_one_succeeds(&running, &output);
}

fn assert_disk_was_full(ended: &Ended) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let whole = format!("{} {}", ended.answer, ended.said);
    assert!(whole.contains("No space left"), "{whole}");
    assert!(whole.contains("d.noise"), "no table is named: {whole}");
}

#[test]
fn when_the_disk_is_full() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let running = server.start(&scratch.join("data"), &SMALL);
    fill(&mut running.session().unwrap());
    let small = LoopFs::ext4(16 << 20);
    let output = small.join("d");
    for flags in [
        ["--compress=none", "--threads=3"],
        ["--compress=zstd", "--threads=1"],
    ] {
        let mut flags = flags.to_vec();
        flags.push("--overwrite-unfinished");
        let ended = run(dump(&program(), &running, &output, &flags));
        assert_disk_was_full(&ended);
        assert_no_dump(&output);
    }
    let filter = ["--exclude=d\\.noise", "--overwrite-unfinished"];
    let ended = run(dump(&program(), &running, &output, &filter));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(manifest(&output)["tables"].as_array().unwrap().len(), 1);
}
