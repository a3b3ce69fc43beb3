//! Does `health check` end as a plugin of Nagios should, whatever the server and the command line are?

mod probed;

use evenkeel_testkit::servers::mariadb_10_11;
use probed::{PROGRAM, Probed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Command;

fn check(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM)
        .args(["health", "check"])
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn codes_are_those_of_nagios() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    watched.sql("CREATE USER poor@localhost");
    let socket = format!("--socket={}", watched.socket().display());
    let of = |more: &[&str]| {
        let own = ["--no-defaults", "-uroot", &socket, "--timeout=20s"];
        check(&[&own[..], more].concat())
    };
    let (code, line, said) = of(&["--expect=writable", "--min-disk=1", "--max-lag=10s"]);
    assert_eq!(code, Some(0), "{line}{said}");
    assert!(line.starts_with("EVENKEEL OK - writable, "), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let (_, performance) = line.split_once(" | ").unwrap();
    for part in performance.split_whitespace() {
        let (name, value) = part.split_once('=').unwrap();
        assert_eq!(
            value.split(';').next().is_some(),
            !name.is_empty(),
            "{part}"
        );
    }
    for name in ["time=", " connections=", " threads_running=", " disk_free="] {
        assert!(performance.contains(name), "{name}: {performance}");
    }
    for (options, said) in [
        (&["--expect=read-only"][..], "CRITICAL - role: "),
        (&["--table=shop.orders"], "CRITICAL - unreadable: "),
        (&["--query=SELECT 1 FROM a|b"], "CRITICAL - query: "),
        (&["--min-connections=100000"], "CRITICAL - connections: "),
        (&["--galera"], "CRITICAL - galera: "),
        (&["--replicating"], "CRITICAL - replication: "),
    ] {
        let (code, line, _) = of(options);
        assert_eq!(code, Some(2), "{line}");
        assert!(line.contains(said), "{said}: {line}");
        assert_eq!(line.matches('|').count(), 1, "{line}");
    }
    let poor = [
        "--no-defaults",
        "-upoor",
        &socket,
        "--timeout=20s",
        "--max-lag=1s",
    ];
    let (code, line, _) = check(&poor);
    assert_eq!(code, Some(3), "{line}");
    assert!(line.starts_with("EVENKEEL UNKNOWN - login: "), "{line}");
    let (code, document, _) = of(&["--json", "--expect=read-only"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!((code, &document["exit_code"]), (Some(2), &2.into()));
    assert_eq!(document["schema"], "evenkeel/health-check/1");
    assert_eq!(document["reasons"][0]["cause"], "role");

    // A frozen server: known within the timeout, and nothing is left of the check.
    let pid = Pid::from_raw(watched.running().pid()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let own = ["--no-defaults", "-uroot", &socket, "--timeout=500ms"];
    let (code, line, _) = check(&own);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(code, Some(2), "{line}");
    assert!(
        line.contains("CRITICAL - hung: no answer to the login"),
        "{line}"
    );
}

#[test]
fn what_cannot_be_checked_is_unknown_and_never_well() {
    for (options, said) in [
        (&["--no-such-option"][..], ""),
        (&["--timeout=0s"], "EVENKEEL UNKNOWN - --timeout"),
        (&["--table=orders"], "EVENKEEL UNKNOWN - 'orders'"),
        (&["--defaults-file=/nonexistent/x"], "EVENKEEL UNKNOWN - "),
        (
            &["--no-defaults", "-h127.0.0.1", "--min-disk=1"],
            "EVENKEEL UNKNOWN - --min-disk",
        ),
    ] {
        let (code, line, _) = check(options);
        assert_eq!(code, Some(3), "{options:?}: {line}");
        assert!(line.starts_with(said), "{options:?}: {line}");
    }
    let (code, line, _) = check(&["--no-defaults", "--socket=/nonexistent/s"]);
    assert_eq!(code, Some(2), "{line}");
    assert!(line.contains("CRITICAL - refused: no server at"), "{line}");
    assert_eq!(check(&["--help"]).0, Some(0));
}
