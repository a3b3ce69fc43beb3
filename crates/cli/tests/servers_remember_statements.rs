//! Does `digest --server` count what a server ran, and say what it missed and what has to be switched on?

mod served;

use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use served::Served;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};

const ON: [&str; 3] = [
    "--performance-schema=ON",
    "--performance-schema-consumer-events-statements-current=ON",
    "--performance-schema-consumer-events-statements-history=ON",
];
const LONG: &str = "--performance-schema-consumer-events-statements-history-long=ON";

fn begin(served: &Served, more: &[&str]) -> Child {
    let words = ["--server=./socket", "--defaults-file=client.cnf", "--json"];
    let mut command = served.command("digest", &[&words[..], more].concat());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun once its session asked for what there was before.
    let mut session = served.running.session().unwrap();
    let asked = "SELECT COUNT(*) FROM performance_schema.threads t \
        JOIN performance_schema.events_statements_history h ON h.THREAD_ID = t.THREAD_ID \
        WHERE h.SQL_TEXT LIKE 'SELECT SUM(COUNT_STAR)%' AND t.PROCESSLIST_COMMAND = 'Sleep'";
    evenkeel_testkit::until("it has begun", || {
        session
            .value(asked)
            .unwrap()
            .is_some_and(|count| count != "0")
    });
    child
}

fn end(child: Child) -> (Value, String, Option<i32>) {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    let answer = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (answer, said, status.code())
}

fn is_counted(server: &TestServer) {
    let served = Served::new(server, &[&ON[..], &[LONG]].concat(), "root");
    served
        .running
        .session()
        .unwrap()
        .run("CREATE DATABASE shop")
        .unwrap();
    served
        .running
        .session()
        .unwrap()
        .run("CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB")
        .unwrap();
    let mut session = served.running.session().unwrap();
    session.run("USE shop").unwrap();
    let child = begin(&served, &["--for=6s", "--interval=200ms"]);
    for id in 0..50 {
        session
            .run(&format!("INSERT INTO orders VALUES ({id}, 'x')"))
            .unwrap();
        session
            .run(&format!("SELECT name FROM orders WHERE id = {id}"))
            .unwrap();
    }
    session.run("SELECT * FROM gone").unwrap_err();
    session
        .run("PREPARE p FROM 'SELECT name FROM orders WHERE id = ?'")
        .unwrap();
    let (answer, said, code) = end(child);
    assert_eq!(code, Some(0), "{said}");
    let classes = answer["classes"].as_array().unwrap();
    let class = |print: &str| {
        let found = classes.iter().find(|class| class["fingerprint"] == print);
        found.unwrap_or_else(|| panic!("{print}: {answer}"))
    };
    let select = class("select name from orders where id = ?");
    assert_eq!(
        (&select["count"], &select["rows_sent"]),
        (&50.into(), &50.into())
    );
    assert_eq!(select["schemas"][0]["name"], "shop");
    assert_eq!(select["users"][0]["name"], "root");
    assert!(select["latency_us"]["sum"].as_f64().unwrap() > 0.0);
    let insert = class("insert into orders values (...)");
    assert_eq!(
        (&insert["count"], &insert["rows_affected"]),
        (&50.into(), &50.into())
    );
    assert_eq!(class("select * from gone")["errors"], 1);
    // Preparing is not running.
    assert_eq!(answer["total"]["prepares"], 1, "{answer}");
    // By the clock of the day.
    let first: jiff::Timestamp = select["first_seen"].as_str().unwrap().parse().unwrap();
    let age = jiff::Timestamp::now().as_second() - first.as_second();
    assert!((0..120).contains(&age), "{first}");
    assert_eq!(answer["files"][0]["source"], "performance-schema");
}

#[test]
fn statements_are_counted_on_mariadb() {
    is_counted(&mariadb_10_11());
}

#[test]
fn statements_are_counted_on_mysql() {
    is_counted(&mysql_8_0_15());
}

#[test]
fn what_was_forgotten_is_counted() {
    // Ten of each session, and one look at the end.
    let served = Served::new(&mysql_8_0_15(), &ON, "root");
    let mut session = served.running.session().unwrap();
    let child = begin(&served, &["--for=4s", "--interval=1h"]);
    for _ in 0..100 {
        session.run("SELECT 1").unwrap();
    }
    let (answer, said, code) = end(child);
    assert_eq!(code, Some(3), "{said}");
    let missed = answer["files"][0]["unreadable"].as_u64().unwrap();
    let seen = answer["files"][0]["entries"].as_u64().unwrap();
    assert!(missed >= 90 && seen + missed >= 100, "{seen} and {missed}");
    assert!(
        said.contains("were forgotten before they were asked for"),
        "{said}"
    );
}

#[test]
fn what_was_seen_of_a_server_that_dies_is_reported() {
    let served = Served::new(&mariadb_10_11(), &[&ON[..], &[LONG]].concat(), "root");
    let mut session = served.running.session().unwrap();
    let child = begin(&served, &["--for=10m", "--interval=100ms"]);
    session.run("SELECT 'seen' FROM DUAL").unwrap();
    let mut looks = || {
        let looks = "SELECT COUNT(*) FROM performance_schema.events_statements_history_long \
            WHERE SQL_TEXT LIKE 'SELECT e.THREAD_ID%'";
        let looks = session.value(looks).unwrap().unwrap();
        looks.parse::<u64>().unwrap()
    };
    // One may have been under way.
    let enough = looks() + 2;
    evenkeel_testkit::until("it has looked", || looks() >= enough);
    kill_process(pid(&served), Signal::KILL).unwrap();
    let (answer, said, code) = end(child);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("socket: what ran after that is not counted"),
        "{said}"
    );
    let classes = answer["classes"].as_array().unwrap();
    let is_seen = |class: &Value| class["fingerprint"] == "select ? from dual";
    assert!(classes.iter().any(is_seen), "{answer}");
    assert!(
        answer["files"][0]["unreadable"].as_u64() > Some(0),
        "{answer}"
    );
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let served = Served::new(&mariadb_10_11(), &[&ON[..], &[LONG]].concat(), "root");
    let child = begin(&served, &["--for=6s", "--interval=100ms"]);
    kill_process(pid(&served), Signal::STOP).unwrap();
    let mut said = String::new();
    let mut child = child;
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("socket has not answered for 3 s") {
        assert!(errors.read_line(&mut said).unwrap() > 0, "{said}");
    }
    kill_process(pid(&served), Signal::CONT).unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{said}");

    let file = served.room().join("client.cnf");
    let text = std::fs::read_to_string(&file).unwrap() + "connect-timeout=4\n";
    std::fs::write(&file, text).unwrap();
    kill_process(pid(&served), Signal::STOP).unwrap();
    for verb in ["capture", "digest"] {
        let words = ["--server=./socket", "--defaults-file=client.cnf"];
        let out = served.command(verb, &words).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(13), "{said}");
        assert!(said.contains("./socket has not answered for 3 s"), "{said}");
        assert!(said.contains("no answer from ./socket within 4"), "{said}");
    }
    kill_process(pid(&served), Signal::CONT).unwrap();
}

fn pid(served: &Served) -> Pid {
    Pid::from_raw(served.running.pid()).unwrap()
}

#[test]
fn what_is_off_is_said_with_how_to_switch_it_on() {
    for (options, hint) in [
        (&["--performance-schema=OFF"][..], "performance_schema = ON"),
        (&ON[..1], "UPDATE performance_schema.setup_consumers"),
    ] {
        let served = Served::new(&mariadb_10_11(), options, "root");
        let words = ["--server=./socket", "--defaults-file=client.cnf"];
        let out = served.command("digest", &words).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(14), "{said}");
        assert!(said.contains(hint), "{said}");
    }
}
