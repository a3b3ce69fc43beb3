//! Is a lock that was not held throughout a failure, even if the command succeeded?

mod locked;
mod wait;

use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use locked::{Scene, can_write};
use std::fs;
use std::process::{Child, Stdio};
use wait::{Tied, signal, until};

/// Kills every other session of the server.
fn kill_sessions(scene: &Scene) {
    let mut session = scene.session();
    let own = session.id();
    for row in session.rows("SHOW PROCESSLIST").unwrap() {
        let id: u64 = row.get("Id").unwrap().parse().unwrap();
        let is_client = row.get("User").is_some_and(|user| user == "root");
        if is_client && id != own {
            // The watchdog's may be gone with the lock's.
            let _ = session.run(&format!("KILL {id}"));
        }
    }
}

fn standard_error(child: &mut Child) -> String {
    std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
}

#[test]
fn a_killed_connection_fails_a_command_that_succeeded() {
    for server in [mariadb_10_11(), mysql_8_0_15(), mysql_5_7_22()] {
        let scene = Scene::on(&server);
        let mut lock = scene.lock(&[], &scene.until_reported());
        let mut held = Tied::start(lock.stderr(Stdio::piped()));
        until("the command to run", || scene.path("runs").exists());
        kill_sessions(&scene);
        fs::write(scene.path("go"), "").unwrap();
        assert_eq!(held.wait().unwrap().code(), Some(1), "{}", server.name);
        let said = standard_error(&mut held);
        assert!(
            said.contains("the lock was lost"),
            "{}: {said}",
            server.name
        );
        assert!(
            said.contains("command exited with code:0"),
            "{}: {said}",
            server.name
        );
    }
}

#[test]
fn the_watchdog_ends_a_lock_that_is_held_for_too_long() {
    let scene = Scene::on(&mariadb_10_11());
    let limits = ["--lock-deadline", "1s", "--lock-hold-limit", "500ms"];
    let mut held = Tied::start(&mut scene.lock(&limits, &scene.until_reported()));
    until("the command to run", || scene.path("runs").exists());
    let mut session = scene.session();
    // The command still runs; the application does not wait for it any more.
    until("writes to go on", || can_write(&mut session));
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(held.wait().unwrap().code(), Some(1));
}

#[test]
fn a_table_lock_in_the_way_is_given_up_on() {
    let scene = Scene::on(&mariadb_10_11());
    let mut other = scene.session();
    other.run("LOCK TABLES shop.orders WRITE").unwrap();
    let script = format!("touch {}", scene.path("ran").display());
    let options = ["--lock", "ftwrl", "--lock-deadline", "1s"];
    let status = scene.lock(&options, &script).status().unwrap();
    assert_eq!(status.code(), Some(15));
    assert!(!scene.path("ran").exists());
    other.run("INSERT INTO shop.orders VALUES (7)").unwrap();
}

#[test]
fn signals_go_to_the_command_and_the_lock_stays_until_it_ends() {
    let scene = Scene::on(&mariadb_10_11());
    let caught = scene.path("caught");
    let trap = format!(
        "trap 'touch {}' TERM; {}; exit 9",
        caught.display(),
        scene.until_reported()
    );
    let mut held = Tied::start(&mut scene.lock(&[], &trap));
    until("the command to run", || scene.path("runs").exists());
    signal("TERM", held.id());
    until("the command to catch the signal", || caught.exists());
    assert!(!can_write(&mut scene.session()));
    fs::write(scene.path("go"), "").unwrap();
    assert_eq!(held.wait().unwrap().code(), Some(9));
}

#[test]
fn a_server_that_is_not_there_is_unreachable() {
    let scene = Scene::on(&mariadb_10_11());
    let mut lock = scene.lock(&["--socket", "/nonexistent/socket"], "true");
    assert_eq!(lock.status().unwrap().code(), Some(13));
}
