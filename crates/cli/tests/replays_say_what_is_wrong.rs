//! Is a replay that cannot begin refused with what to do next?

mod served;

use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15};
use served::Served;
use std::fs;
use std::process::Command;

const LOG: &str = "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:\n\
    Tcp port: 0  Unix socket: /run/s\nTime                 Id Command    Argument\n\
    # Time: 2026-11-28T08:00:01.000000Z\n# User@Host: app[app] @ web1 [10.0.0.7]  Id:     7\n\
    # Query_time: 0.010000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 1\n\
    SET timestamp=1795853835;\nSELECT 1;\n";

fn served(server: &TestServer, options: &[&str]) -> Served {
    let served = Served::new(server, options, "root");
    fs::write(served.room().join("slow.log"), LOG).unwrap();
    served
}

fn replay(served: &Served, more: &[&str]) -> (Option<i32>, String) {
    let words = [
        "slow.log",
        "--read-only",
        "--speed=max",
        "--defaults-file=client.cnf",
    ];
    let out = served
        .command("replay", &[&words[..], more].concat())
        .output();
    let out = out.unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), said)
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let served = served(&mariadb_10_11(), &[]);
    let (code, said) = replay(&served, &["--tmpdir=none"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("temporary file in none") && said.contains("directory that exists"),
        "{said}"
    );
    assert!(!said.contains("free some space"), "{said}");
}

#[test]
fn variants_are_two_servers() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let served = served(&server, &[]);
        // The same one, by another name.
        let (code, said) = replay(&served, &["--rounds=1", "--against=./socket"]);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("is the server of variant A") && said.contains("--set"),
            "{said}"
        );
    }
}

#[test]
fn replicas_disturb_no_rounds() {
    let served = served(&mariadb_10_11(), &["--log-bin=binlog", "--server-id=7"]);
    let mut replica = Command::new("mariadb-binlog");
    replica.args([
        "--no-defaults",
        "-R",
        "-uroot",
        "--stop-never",
        "--raw",
        "binlog.000001",
    ]);
    replica.arg(format!("--socket={}", served.running.socket().display()));
    let mut replica = replica.current_dir(served.room()).spawn().unwrap();
    let mut session = served.running.session().unwrap();
    evenkeel_testkit::until("the replica listens", || {
        let count =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";
        session.value(count).unwrap().as_deref() == Some("1")
    });
    drop(session);
    let (code, said) = replay(&served, &["--rounds=2"]);
    replica.kill().unwrap();
    replica.wait().unwrap();
    assert_eq!(code, Some(0), "{said}");
}
