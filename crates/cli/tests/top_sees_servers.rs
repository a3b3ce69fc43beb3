//! Does `top` say what servers do: which statements, how far replicas are behind, and what it cannot know?

mod watched;

use evenkeel_testkit::By;
use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15, mysql_9};
use serde_json::Value;
use watched::{View, Watched, is, is_counted};

/// Runs a known number of statements of one class, and returns how many of it and of all were seen.
fn counted(server: &TestServer) {
    let watched = Watched::new(server, &["--performance-schema=ON"]);
    let mut session = watched.running().session().unwrap();
    session.run("CREATE DATABASE shop").unwrap();
    session
        .run("CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB")
        .unwrap();
    // Known before it is watched: what is new then must not count what was.
    session.run("INSERT INTO shop.orders VALUES (0)").unwrap();
    let mut view = View::start("top", &[&watched.socket()], &[]);
    view.until(|frame| is(frame, 0, "up"));
    for id in 1..=30 {
        session
            .run(&format!("INSERT INTO shop.orders VALUES ({id})"))
            .unwrap();
    }
    for _ in 0..4 {
        session
            .run("INSERT INTO shop.orders VALUES (1)")
            .unwrap_err();
    }
    let (mut inserts, mut classes, mut errors, mut queries) = (0, 0, 0, 0);
    let mut add = |server: &Value| {
        if !is_counted(server) {
            return (classes, queries);
        }
        queries += server["queries"].as_u64().unwrap();
        inserts += server["inserts"].as_u64().unwrap();
        for class in server["digests"].as_array().unwrap() {
            if class["sql"].as_str().unwrap().starts_with("INSERT INTO") {
                classes += class["count"].as_u64().unwrap();
                errors += class["errors"].as_u64().unwrap();
                assert!(class["seconds"].as_f64() > Some(0.0), "{class}");
            }
        }
        (classes, queries)
    };
    while add(&view.next()["servers"][0]).0 < 34 {}
    let last = view.until(|frame| is(frame, 0, "up"));
    let last = &last["servers"][0];
    add(last);
    // What top itself asks is in none of them.
    assert_eq!(
        [classes, errors, inserts, queries],
        [34, 4, 34, 34],
        "{}",
        server.name
    );
    assert_eq!(last["performance_schema"], "on", "{last}");
    assert!(last["threads_connected"].as_u64() >= Some(2), "{last}");
    assert!(last["threads_running"].as_u64() >= Some(1), "{last}");
    assert!(last["history_list_length"].is_u64(), "{last}");
    assert!(last["buffer_pool_dirty_percent"].is_f64(), "{last}");
    assert_eq!(last["sources"], Value::Array(Vec::new()), "{last}");
    assert_eq!(last["not_shown"], Value::Array(Vec::new()), "{last}");
    let (code, said) = view.end();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn statements_are_counted_on_mariadb() {
    counted(&mariadb_10_11());
}

#[test]
fn statements_are_counted_on_mysql_8() {
    counted(&mysql_8_0_15());
}

#[test]
fn statements_are_counted_on_mysql_9() {
    counted(&mysql_9());
}

#[test]
fn replicas_say_how_far_behind_they_are_and_which_have_stopped() {
    let server = mariadb_10_11();
    let options =
        |id: &'static str| [&["--server-id", id], &By::Gtid.options(&server)[..]].concat();
    let source_room = evenkeel_testkit::Scratch::new();
    let plan = server.prepare(&source_room.path().join("data"), &options("1"));
    let source = server.run(&plan.with_networking());
    By::allow(&source);
    let replica = Watched::new(&server, &options("2"));
    By::Gtid.follow(&source, replica.running());
    let mut view = View::start("top", &[&replica.socket()], &[]);
    let of = |frame: &Value| frame["servers"][0]["sources"][0].clone();
    evenkeel_testkit::until("it replicates", || {
        let source = of(&view.next());
        source["running"] == true && source["lag_s"] == 0
    });
    replica.sql("STOP SLAVE SQL_THREAD");
    evenkeel_testkit::until("it is stopped", || of(&view.next())["running"] == false);
    view.end();
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    watched::run("top", args)
}

#[test]
fn what_cannot_be_known_is_said() {
    let watched = Watched::new(&mariadb_10_11(), &[]);
    watched.sql("CREATE USER app@localhost IDENTIFIED BY 's3same'");
    let place = watched.socket();
    let place = place.to_str().unwrap();
    // Long enough for a server on a busy host.
    let once = ["--once", "--interval=3s", place];
    let (code, seen, said) = run(&[&["-uroot"][..], &once].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(seen.contains("performance_schema is off"), "{seen}");
    assert!(seen.contains("evenkeel capture --interface any"), "{seen}");
    assert!(!seen.contains("not shown"), "{seen}");
    // An account without privileges sees the rates, and what is kept from it.
    let account = ["-uapp", "--password=s3same"];
    let (code, seen, said) = run(&[&account[..], &once].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(
        seen.contains("not shown: replication: ERROR 1227") && seen.contains("denied"),
        "{seen}"
    );
    let (code, seen, said) = run(&[&["-uapp", "--password=0pensesame"][..], &once].concat());
    assert_eq!(code, Some(14), "{seen}{said}");
}
