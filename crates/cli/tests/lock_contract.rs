//! Does the command run under the lock, with the coordinates, and is its end passed on?

mod locked;
mod wait;

use evenkeel_testkit::servers;
use locked::{Scene, can_write};
use std::fs;
use std::process::Output;
use wait::{Tied, until};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn coordinates_and_exit_codes_on_every_server() {
    for server in servers() {
        let scene = Scene::on(&server);
        let script = "echo \"$EVENKEEL_BINLOG_FILE:$EVENKEEL_BINLOG_POSITION\"; exit 37";
        let output = scene.lock(&[], script).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(37),
            "{}: {}",
            server.name,
            said(&output)
        );
        let place = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(place.starts_with("binlog.0000"), "{}: {place}", server.name);
        assert!(
            said(&output).contains(&format!("at {}", place.trim())),
            "{}",
            said(&output)
        );
        assert!(
            said(&output).contains("command exited with code:37"),
            "{}",
            said(&output)
        );
        let killed = scene.lock(&[], "kill -9 $$").output().unwrap();
        assert_eq!(killed.status.code(), Some(137), "{}", server.name);
        assert!(
            can_write(&mut scene.session()),
            "{}: still locked",
            server.name
        );
    }
}

#[test]
fn nobody_writes_while_the_command_runs_on_any_server() {
    for server in servers() {
        for lock in ["auto", "ftwrl"] {
            let scene = Scene::on(&server);
            let mut session = scene.session();
            let mut held = Tied::start(&mut scene.lock(&["--lock", lock], &scene.until_reported()));
            until("the command to run", || scene.path("runs").exists());
            assert!(
                !can_write(&mut session),
                "{} wrote under --lock {lock}",
                server.name
            );
            fs::write(scene.path("go"), "").unwrap();
            assert_eq!(held.wait().unwrap().code(), Some(0));
            assert!(can_write(&mut session), "{}: still locked", server.name);
        }
    }
}

#[test]
fn json_is_one_line_on_standard_error() {
    let scene = Scene::on(&evenkeel_testkit::servers::mariadb_10_11());
    let output = scene
        .lock(&["--json", "--quiet"], "exit 3")
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_str(said(&output).trim()).unwrap();
    assert_eq!(
        (&json["schema"], &json["exit_code"]),
        (&"evenkeel/lock/1".into(), &3.into())
    );
    assert!(json["lock_ms"].as_f64().unwrap() > 0.0);
    assert!(json["coordinates"]["binlog_position"].as_u64().unwrap() > 0);
    assert!(output.stdout.is_empty());
}

#[test]
fn statements_of_ones_own_take_the_place_of_the_lock() {
    let scene = Scene::on(&evenkeel_testkit::servers::mariadb_10_11());
    let own = [
        "--before",
        "LOCK TABLES shop.orders WRITE",
        "--after",
        "UNLOCK TABLES",
    ];
    let mut held = Tied::start(&mut scene.lock(&own, &scene.until_reported()));
    until("the command to run", || scene.path("runs").exists());
    let mut session = scene.session();
    assert!(session.rows("SELECT * FROM shop.orders").is_err());
    assert!(session.run("CREATE TABLE shop.other (id INT)").is_ok());
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(held.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wrong_statement_fails_before_the_command_runs() {
    let scene = Scene::on(&evenkeel_testkit::servers::mariadb_10_11());
    let script = format!("touch {}", scene.path("ran").display());
    let output = scene
        .lock(&["--before", "LOCK EVERYTHING"], &script)
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!scene.path("ran").exists());
}
