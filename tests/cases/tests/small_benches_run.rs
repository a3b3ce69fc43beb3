//! Do `bench oltp`, `inserts`, `compression`, `cache` and `compare` measure each server, and tell what went
//! wrong: no room, no place for one more connection, a server that restarts meanwhile?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, Scratch, TestServer, until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn bench(running: &Running, words: &[&str]) -> Command {
    let mut command = evenkeel().command(&[&["bench"], words].concat());
    command.args(["--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket());
    command
}

fn start(server: &TestServer, scratch: &Scratch, more: &[&str]) -> Running {
    let mut args = [&SMALL[..], more].concat();
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    server.start(&scratch.join("data"), &args)
}

#[track_caller]
fn done(ended: Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.answer
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// A run that is over soon.
const SHORT: [&str; 6] = ["--time", "500ms", "--ramp-up", "0", "--threads", "2"];

fn oltp(running: &Running, words: &[&str]) -> Value {
    done(run(bench(
        running,
        &[&["oltp", "run"], words, &SHORT].concat(),
    )))
}

fn small_transactions(running: &Running, scratch: &Scratch) {
    let load = ["oltp", "load", "--tables", "2", "--table-size", "3000"];
    let loaded = done(run(bench(running, &load)));
    assert_eq!(loaded["rows_loaded"], 6000);
    let again = done(run(bench(running, &load)));
    assert_eq!(again["rows_found"], 6000);
    let mut session = running.session().unwrap();
    let commits = |session: &mut evenkeel_server::connect::Session| -> f64 {
        let row = session.one("SHOW GLOBAL STATUS LIKE 'Com_commit'").unwrap();
        row.unwrap().at(1).unwrap().parse().unwrap()
    };
    let before = commits(&mut session);
    let report = scratch.join("oltp.html");
    let both = oltp(running, &["--report", report.to_str().unwrap()]);
    assert_eq!(number(&both["statements_per_transaction"]), 20.0, "{both}");
    assert_eq!(number(&both["failed"]), 0.0, "{both}");
    let counted = number(&both["transactions"]);
    let committed = commits(&mut session) - before;
    // The server counts the same, and those under way at the end.
    assert!(
        counted > 0.0 && (counted..=counted + 3.0).contains(&committed),
        "{committed} {both}"
    );
    assert_page(&report);
    let twice = oltp(running, &["--repeat", "2"]);
    let runs = twice["runs"].as_array().expect("runs");
    let rates = runs.iter().map(|run| number(&run["transactions_per_s"]));
    let [one, other] = rates.collect::<Vec<_>>()[..] else {
        panic!("{twice}")
    };
    let median = number(&twice["values"][0]["median"]);
    assert!((median - f64::midpoint(one, other)).abs() < 1e-6, "{twice}");
    for (words, statements) in [
        (
            &["--mode", "read-only", "--distribution", "zipfian"][..],
            16.0,
        ),
        (&["--mode", "write-only", "--text"], 6.0),
        (&["--mode", "point-select", "--text"], 1.0),
    ] {
        let reported = oltp(running, &[words, &["--rate", "200"]].concat());
        assert_eq!(
            number(&reported["statements_per_transaction"]),
            statements,
            "{reported}"
        );
        assert_eq!(number(&reported["failed"]), 0.0, "{reported}");
    }
    let old = oltp(running, &["--compat", "0.4"]);
    let requests = number(&old["requests_per_s"]) / number(&old["transactions_per_s"]);
    assert!((requests - 19.0).abs() < 1e-6, "{old}");
    // No row is lost: each that is deleted is written again.
    for table in ["sbtest1", "sbtest2"] {
        let rows = session.value(&format!("SELECT COUNT(*) FROM sbtest.{table}"));
        assert_eq!(rows.unwrap().as_deref(), Some("3000"));
    }
}

fn assert_page(path: &Path) {
    let html = fs::read_to_string(path).unwrap();
    for text in ["<svg ", "innodb_buffer_pool_size", "--seed", "</html>"] {
        assert!(html.contains(text), "{text} is not in {html}");
    }
}

/// The names of the arms that were run, and how often.
fn arms(report: &Value, metric: &str) -> Vec<(String, usize)> {
    let arms = report["arms"].as_array().expect("arms").iter();
    arms.filter(|arm| arm["left_out"].is_null())
        .map(|arm| {
            let runs = arm["runs"][metric].as_array().map_or(0, Vec::len);
            (arm["name"].as_str().unwrap().to_owned(), runs)
        })
        .collect()
}

fn experiments(server: &TestServer, running: &Running, scratch: &Scratch) {
    let is_mariadb = server.id.starts_with("mariadb");
    let page = scratch.join("page.html");
    let of = |words: &[&str]| {
        let words = [words, &["--report", page.to_str().unwrap()]].concat();
        done(run(bench(running, &words)))
    };
    let inserts = of(&[
        "inserts",
        "--rows",
        "100",
        "--rows-per-statement",
        "30",
        "--repeat",
        "2",
    ]);
    let ways = arms(&inserts, "rows_per_s");
    // MyISAM has four, InnoDB six; Aria is MariaDB's.
    assert_eq!(ways.len(), if is_mariadb { 14 } else { 10 }, "{inserts}");
    assert!(ways.iter().all(|(_, runs)| *runs == 2), "{inserts}");
    assert_page(&page);

    let compression = of(&[
        "compression",
        "--rows",
        "2000",
        "--text-bytes",
        "200",
        "--repeat",
        "1",
    ]);
    let formats = arms(&compression, "allocated_kib");
    assert!(formats.len() >= 8, "{compression}");
    let file = |name: &str| {
        let arms = compression["arms"].as_array().unwrap();
        let arm = arms.iter().find(|arm| arm["name"] == name).unwrap();
        number(&arm["summary"]["file_kib"]["median"])
    };
    assert!(file("COMPRESSED 8K") < file("DYNAMIC"), "{compression}");

    let words = [
        "cache",
        "--rows=50",
        "--time=500ms",
        "--writes=10",
        "--repeat=1",
        "--memcached=/usr/bin/memcached",
    ];
    let cache = of(&words);
    let ways = arms(&cache, "reads_per_s");
    let has_query_cache = ways.iter().any(|(name, _)| name == "query cache");
    assert_eq!(has_query_cache, is_mariadb, "{cache}");
    for arm in cache["arms"].as_array().unwrap() {
        if arm["left_out"].is_null() {
            let hits = number(&arm["summary"]["hit_percent"]["median"]);
            assert_eq!(hits > 0.0, arm["name"] != "the table alone", "{cache}");
        }
    }
    if is_mariadb {
        a_killed_run_is_put_right(running);
    }
    let mut session = running.session().unwrap();
    let left =
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'evenkeel_bench'";
    assert_eq!(session.value(left).unwrap().as_deref(), Some("0"));
    compared(&inserts, scratch);
}

/// The next run puts the settings back that one left that was killed.
fn a_killed_run_is_put_right(running: &Running) {
    let mut session = running.session().unwrap();
    let mut size = || session.variable("query_cache_size").unwrap().unwrap();
    let before = size();
    let words = ["cache", "--rows", "50", "--time", "300ms", "--repeat"];
    let mut long = bench(running, &[&words[..], &["60"]].concat());
    long.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = long.spawn().unwrap();
    until("the query cache is set", || size() != before);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(size(), before);
    done(run(bench(running, &[&words[..], &["1"]].concat())));
    assert_eq!(size(), before);
}

/// An experiment compared with itself differs in nothing.
fn compared(report: &Value, scratch: &Scratch) {
    let file = scratch.join("inserts.json");
    fs::write(&file, report.to_string()).unwrap();
    let mut command = evenkeel().command(&["bench", "compare"]);
    command.args([&file, &file]);
    let same = done(run(command));
    assert_eq!(same["differs"], false, "{same}");
    assert!(same["values"].as_array().unwrap().len() >= 10, "{same}");
}

fn case(server: &TestServer) {
    let scratch = Scratch::new();
    let is_mariadb = server.id.starts_with("mariadb");
    let more: &[&str] = if is_mariadb {
        &["--query-cache-type=1"]
    } else {
        &[]
    };
    let running = start(server, &scratch, more);
    small_transactions(&running, &scratch);
    experiments(server, &running, &scratch);
}

#[test]
fn on_mariadb() {
    for server in draw("servers of MariaDB", &[mariadb_10_11(), mariadb_11_8()], 1) {
        case(&server);
    }
}

#[test]
fn on_mysql() {
    let servers = [mysql_8_0_15(), mysql_5_7_22(), mysql_9()];
    for server in draw("servers of MySQL", &servers, 1) {
        case(&server);
    }
}

#[test]
fn either_runs_on_what_sysbench_has_loaded() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch, &[]);
    running
        .session()
        .unwrap()
        .run("CREATE DATABASE sbtest")
        .unwrap();
    let sysbench = |verb: &str| {
        let mut command = Command::new("sysbench");
        command.args([
            "oltp_read_write",
            "--mysql-user=root",
            "--tables=2",
            "--table-size=500",
            "--time=1",
        ]);
        command.arg(format!("--mysql-socket={}", running.socket().display()));
        let output = command
            .arg(verb)
            .output()
            .expect("sysbench is installed by testkit/setup");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    sysbench("prepare");
    let ours = oltp(&running, &[]);
    assert_eq!(
        (&ours["shape"]["tables"], &ours["shape"]["table_size"]),
        (&2.into(), &500.into())
    );
    sysbench("cleanup");
    let load = ["oltp", "load", "--tables", "2", "--table-size", "500"];
    done(run(bench(&running, &load)));
    assert!(sysbench("run").contains("transactions:"));
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    let scratch = Scratch::new();
    let server = mariadb_10_11();
    let running = start(&server, &scratch, &["--max-connections=10"]);
    let missing = run(bench(&running, &["oltp", "run", "--database", "mysql"]));
    assert_eq!(missing.code, Some(14), "{missing:?}");
    assert!(missing.message().contains("sbtest1"), "{missing:?}");
    done(run(bench(
        &running,
        &["oltp", "load", "--table-size", "2000"],
    )));
    let many = run(bench(
        &running,
        &["oltp", "run", "--threads", "30", "--time", "1"],
    ));
    assert_eq!(many.code, Some(14), "{many:?}");
    assert!(many.message().contains("Too many connections"), "{many:?}");

    // Where a server listens changes with its start here, but not for whom it serves.
    let socket = scratch.join("socket");
    symlink(running.socket(), &socket).unwrap();
    let mut command = evenkeel().command(&["bench", "oltp", "run", "--no-defaults", "-u", "root"]);
    command.args([
        "--time",
        "8",
        "--rate",
        "200",
        "--ramp-up",
        "0",
        "--threads",
        "2",
        "--interval",
        "1",
        "-S",
    ]);
    command.arg(&socket);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut session = running.session().unwrap();
    until("transactions are under way", || {
        let row = session.one("SHOW GLOBAL STATUS LIKE 'Com_commit'").unwrap();
        row.unwrap().at(1).unwrap().parse::<u64>().unwrap() > 50
    });
    drop(session);
    running.kill();
    let args = [&SMALL[..], &["--max-connections=10"]].concat();
    let again = server.run(&server.plan(&scratch.join("data"), &args));
    fs::remove_file(&socket).unwrap();
    symlink(again.socket(), &socket).unwrap();
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(number(&ended.answer["sessions_lost"]) >= 2.0, "{ended:?}");
    let last = ended.answer["intervals"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert!(number(&last["done"]) > 0.0, "{ended:?}");
}

#[test]
fn a_load_resumes_when_there_is_room_again() {
    let disk = LoopFs::ext4(300 << 20);
    let server = mysql_5_7_22();
    let args = [
        "--innodb-log-file-size=16M",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let mut running = server.start(&disk.join("data"), &args);
    let ballast = disk.join("ballast");
    let room = rustix::fs::statvfs(disk.path()).unwrap();
    let taken = (room.f_bavail * room.f_frsize).saturating_sub(24 << 20);
    fs::write(&ballast, vec![1; taken as usize]).unwrap();
    let load = ["oltp", "load", "--table-size", "150000", "--threads", "2"];
    let full = run(bench(&running, &load));
    // Servers say that the table is full, or end themselves for lack of space at a COMMIT.
    let reported = full.message();
    let is_reported = reported.contains("is full") || reported.contains("lost the connection");
    assert!(matches!(full.code, Some(1 | 13)) && is_reported, "{full:?}");
    let hints = full.answer["hints"].to_string();
    assert!(hints.contains("resumes with what is missing"), "{full:?}");
    fs::remove_file(&ballast).unwrap();
    if full.code == Some(13) {
        until("the server has ended", || !running.is_running());
    }
    // One that said that the table is full may end itself a moment later all the same.
    running.kill();
    running = server.run(&server.plan(&disk.join("data"), &args));
    let went_on = done(run(bench(&running, &load)));
    assert!(number(&went_on["rows_found"]) > 0.0, "{went_on}");
    let mut session = running.session().unwrap();
    let rows = session.value("SELECT SUM(1) FROM sbtest.sbtest1").unwrap();
    assert_eq!(rows.as_deref(), Some("150000"));
}
