//! Does `bench tpcc` load, run and check on each server, resume a load that was killed, refuse
//! tables that are not sound, and tell what was lost when the server goes away in a run?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{draw, is_full};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{Scratch, TestServer, until};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Only hangs take that long.
const LONG: Duration = Duration::from_secs(120);

fn tpcc(running: &Running, verb: &str, flags: &[&str]) -> Command {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = program.command(&["bench", "tpcc", verb, "--no-defaults", "-u", "root"]);
    command.arg("-S").arg(running.socket()).args(flags);
    command
}

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    let mut args = SMALL.to_vec();
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

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// How many units of each kind there were, by a field.
fn kinds(report: &Value, field: &str) -> Vec<u64> {
    let kinds = report["kinds"].as_array().expect("kinds").iter();
    kinds.map(|kind| number(&kind[field])).collect()
}

/// How many orders the server has taken since the tables were made.
fn orders(session: &mut Session) -> u64 {
    let sql = "SELECT CAST(SUM(d_next_o_id) - 31 * COUNT(*) AS CHAR) FROM tpcc.district";
    session.value(sql).unwrap().unwrap().parse().unwrap()
}

fn case(server: &TestServer) {
    let scratch = Scratch::new();
    let running = start(server, &scratch);
    let loaded = done(run(tpcc(&running, "load", &["-w", "2", "--tiny"])));
    assert_eq!(loaded["parts_found"], 0);
    let again = done(run(tpcc(&running, "load", &["-w", "2", "--tiny"])));
    assert_eq!(again["parts_found"], loaded["parts_loaded"]);
    let sound = done(run(tpcc(&running, "check", &[])));
    assert_eq!(sound["conditions"].as_array().map(Vec::len), Some(12));

    let flags = ["-c", "4", "-r", "1", "-l", "2", "-i", "1", "--seed", "7"];
    let report = done(run(tpcc(&running, "run", &flags)));
    let counts = kinds(&report, "done");
    assert!(counts.iter().all(|count| *count > 0), "{report}");
    assert_eq!(kinds(&report, "failed"), [0; 5], "{report}");
    assert_eq!(report["intervals"].as_array().map(Vec::len), Some(3));
    let tpmc = report["tpmc"].as_f64().expect("a number");
    let seconds = report["seconds"].as_f64().expect("a number");
    assert!(
        (tpmc - counts[0] as f64 * 60.0 / seconds).abs() < 0.01,
        "{report}"
    );
    // The server counts the same orders: those of the measured time, the ramp-up, and the tail.
    let mut session = running.session().unwrap();
    let ordered = orders(&mut session);
    assert!(ordered >= counts[0] * 98 / 100, "{ordered} {report}");

    // Far slower than it could be, and as tpcc_start is told to use the first warehouse only.
    let mut in_second = || {
        let sql = "SELECT CAST(SUM(d_next_o_id) AS CHAR) FROM tpcc.district WHERE d_w_id = 2";
        session.value(sql).unwrap()
    };
    let before = in_second();
    let flags = "-dtpcc -w1 -c2 -r0 -l3 -i1 --rate 20";
    let flags: Vec<&str> = flags.split(' ').collect();
    let paced = done(run(tpcc(&running, "run", &flags)));
    assert_eq!(
        (in_second(), &paced["scale"]["warehouses"]),
        (before, &1.into())
    );
    let refused = run(tpcc(&running, "run", &["-w3"]));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    let all: u64 = kinds(&paced, "done").iter().sum();
    assert!((30..=62).contains(&all), "{paced}");

    like_tpcc_mysql(&running, &mut session);

    session
        .run("UPDATE tpcc.warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2")
        .unwrap();
    let broken = run(tpcc(&running, "check", &[]));
    assert_eq!(broken.code, Some(4), "{broken:?}");
    let refused = run(tpcc(&running, "run", &["-l", "1"]));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.message().contains("condition 1"), "{refused:?}");
}

/// Its faults are those of tpcc-mysql, and no others.
fn like_tpcc_mysql(running: &Running, session: &mut Session) {
    let mut counted = || {
        let sql = "SELECT CONCAT((SELECT SUM(c_payment_cnt) FROM tpcc.customer), ' ', \
                   (SELECT SUM(s_order_cnt) FROM tpcc.stock))";
        session.value(sql).unwrap()
    };
    let before = counted();
    let flags = [
        "-c",
        "2",
        "-r",
        "0",
        "-l",
        "2",
        "--like-tpcc-mysql",
        "--repeat",
        "2",
    ];
    let report = done(run(tpcc(running, "run", &flags)));
    assert_eq!(counted(), before);
    for run in report["runs"].as_array().expect("runs") {
        assert_eq!(run["like"], "tpcc-mysql");
        assert!(
            kinds(run, "done")[0] > 0 && kinds(run, "done")[1] > 0,
            "{run}"
        );
        assert_eq!(run["kinds"][0]["limit_s"], 0.005);
        let conditions = run["conditions"].as_array().expect("conditions").iter();
        let broken = conditions.filter(|one| number(&one["broken"]) > 0);
        let broken: Vec<_> = broken
            .map(|one| (&one["number"], &one["is_by_design"]))
            .collect();
        assert_eq!(broken, [(&12.into(), &true.into())], "{run}");
    }
    // Of no use for others.
    let refused = run(tpcc(running, "run", &["-l", "1"]));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.message().contains("condition 12"), "{refused:?}");
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
fn a_killed_load_resumes() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    // Tables of the specification's sizes, or less work in more parts.
    let (scale, other): (&[&str], &[&str]) = match is_full() {
        true => (&["-w", "1"], &["-w", "1", "--tiny"]),
        false => (&["-w", "20", "--tiny"], &["-w", "20"]),
    };
    let mut load = tpcc(&running, "load", &[scale, &["--threads", "2"]].concat());
    load.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = load.spawn().unwrap();
    let mut session = running.session().unwrap();
    let customers = "SELECT COUNT(DISTINCT c_d_id) FROM tpcc.customer";
    until_within(LONG, "some customers are there", || {
        let some = session.value(customers).ok().flatten();
        some.is_some_and(|count| count != "0")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let went_on = done(run(tpcc(&running, "load", scale)));
    assert!(number(&went_on["parts_found"]) > 0, "{went_on}");
    assert!(number(&went_on["parts_loaded"]) > 0, "{went_on}");
    done(run(tpcc(&running, "check", &[])));
    // Another scale would not fit to it.
    let other = run(tpcc(&running, "load", other));
    assert_eq!(other.code, Some(14), "{other:?}");
}

#[test]
fn a_server_that_goes_away_is_reported() {
    let scratch = Scratch::new();
    let server = mariadb_10_11();
    let running = start(&server, &scratch);
    let empty = run(tpcc(&running, "run", &["--database", "mysql"]));
    assert_ne!(empty.code, Some(0), "{empty:?}");
    done(run(tpcc(&running, "load", &["-w", "1", "--tiny"])));
    let spawned = |flags: &[&str]| {
        let mut command = tpcc(&running, "run", flags);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut session = running.session().unwrap();
    let at_work = |session: &mut Session| {
        let before = orders(session);
        until("clients are at work", || orders(session) > before + 20);
    };

    // Killed sessions come back, and the result counts.
    let child = spawned(&["-c", "4", "-r", "0", "-l", "6", "-i", "1", "--no-check"]);
    at_work(&mut session);
    let ids = session.rows("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'tpcc'");
    for row in ids.unwrap() {
        // One may just have gone by itself.
        let _ = session.run(&format!("KILL {}", row.at(0).unwrap()));
    }
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(number(&ended.answer["sessions_lost"]) >= 4, "{ended:?}");
    assert!(kinds(&ended.answer, "done")[0] > 0, "{ended:?}");

    let child = spawned(&["-c", "4", "-r", "0", "-l", "6", "-i", "1", "--no-check"]);
    at_work(&mut session);
    running.kill();
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.answer["ended"], "server", "{ended:?}");
    assert!(number(&ended.answer["sessions_lost"]) >= 4, "{ended:?}");
    assert!(
        !ended.answer["failures"].as_object().unwrap().is_empty(),
        "{ended:?}"
    );
}
