//! Does `capture` show what is in a capture, in each form, and say what is not?

#[path = "../../traffic/tests/packets/mod.rs"]
#[allow(dead_code)] // Other tests ask for more of it.
mod packets;
#[path = "../../wire/tests/talk/mod.rs"]
#[allow(dead_code)] // As above.
mod talk;

use packets::{PLAIN, Part, framed, internet, parts};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use talk::{COLUMN, EOF, OK, Talk, USUAL};

fn conversation() -> Talk {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .query("SELECT\n'\u{1b}[2J\u{202e}\u{9b}1m'")
        .server(1, &[&[1], COLUMN, EOF, b"\x011", EOF])
        .query("UPDATE t SET a = 1;")
        .server(1, &[&[0, 7, 0, 2, 0, 0, 0]])
        .query("ALTER USER a IDENTIFIED BY 'Hush'")
        .server(1, &[b"\xff\x28\x04#42000No"])
        .client(0, &[0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0])
        .server(1, &[OK])
        .client(0, &[1]);
    talk
}

fn file(parts: &[Part]) -> Vec<u8> {
    let packet = |part| framed(1, &internet(part, 50_000, false));
    PLAIN.file(&parts.iter().map(packet).collect::<Vec<_>>())
}

fn run(capture: &[u8], words: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["capture", "--pcap=-"])
        .args(words)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended: what it says then is looked at.
    let _ = child.stdin.take().unwrap().write_all(capture);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn lines_are_for_people_and_drive_no_terminal() {
    let out = run(&file(&parts(&conversation(), 1400)), &[]);
    assert_eq!(out.status.code(), Some(3));
    let lines = text(&out.stdout);
    let shown: Vec<&str> = lines.lines().map(|line| &line[16..]).collect();
    assert_eq!(
        shown,
        [
            "#1 app@10.0.0.1 shop 3.000 ms Connect",
            "#1 app@10.0.0.1 shop 1.000 ms 1 rows SELECT '\\x1b[2J\\u{202e}\\x9b1m'",
            "#1 app@10.0.0.1 shop 1.000 ms 7 changed UPDATE t SET a = 1;",
            "#1 app@10.0.0.1 shop 1.000 ms error 1064 ALTER USER a IDENTIFIED BY '***'",
            "#1 app@10.0.0.1 shop 1.000 ms stmt#9",
            "#1 app@10.0.0.1 shop Quit",
        ]
    );
    assert!(lines.starts_with("22:13:20.004000 "), "{lines}");
    assert_eq!(
        text(&out.stderr),
        "4 statements and 2 other commands in 20 packets; not seen: 1 statement without text or values\n"
    );
}

#[test]
fn a_slow_log_and_sql() {
    let capture = file(&parts(&conversation(), 1400));
    let log = text(&run(&capture, &["--format=slowlog", "--match=^update"]).stdout);
    assert_eq!(
        log,
        "# Time: 2023-11-14T22:13:20.010000Z\n\
         # User@Host: app[app] @  [10.0.0.1]  Id:    42\n\
         # Query_time: 0.001000  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0\n\
         # Rows_affected: 7  Bytes_sent: 11\nuse shop;\n\
         SET timestamp=1700000000;\n\
         UPDATE t SET a = 1;\n"
    );
    let sql = text(&run(&capture, &["--format=sql", "--match=update|alter"]).stdout);
    assert_eq!(
        sql,
        "UPDATE t SET a = 1;\nALTER USER a IDENTIFIED BY '***';\n"
    );
}

#[test]
fn json_has_a_document_for_each_and_one_for_all() {
    let out = run(
        &file(&parts(&conversation(), 1400)),
        &["--json", "--match=update"],
    );
    let one: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(one["schema"], "evenkeel/statement/1");
    assert_eq!(
        (&one["user"], &one["rows_affected"]),
        (&"app".into(), &7.into())
    );
    assert_eq!(one["latency_us"], 1000.0);
    let all: Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(all["schema"], "evenkeel/capture/1");
    assert_eq!((&all["statements"], &all["others"]), (&4.into(), &2.into()));
    assert_eq!(all["shown"], 1);
    assert_eq!(all["complete"], false);
}

#[test]
fn filters_keep_what_is_asked_for() {
    let capture = file(&parts(&conversation(), 1400));
    for (words, count) in [
        (&["--user=app", "--user=other"][..], 6),
        (&["--user=other"], 0),
        (&["--database=shop", "--host=10.0.0.1"], 6),
        (&["--host=10.0.0.2"], 0),
        (&["--min-latency=2ms"], 1),
        (&["--port=3307", "--port=3306"], 6),
        (&["--port=3307"], 0),
    ] {
        let lines = text(&run(&capture, words).stdout);
        assert_eq!(lines.lines().count(), count, "{words:?}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let mut talk = Talk::default();
    talk.login(USUAL).query("SELECT 1").server(1, &[OK]);
    let whole = parts(&talk, 20);
    let out = run(&file(&whole), &[]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stderr).ends_with("; nothing is missing\n"));
    let mut lossy = whole.clone();
    lossy.remove(5);
    let out = run(&file(&lossy), &[]);
    assert_eq!(out.status.code(), Some(3));
    assert!(
        text(&out.stderr).contains("20 B missing from connections"),
        "{}",
        text(&out.stderr)
    );
    let whole = file(&whole);
    let out = run(&whole[..whole.len() - 1], &[]);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("ends within a packet"));
}

#[test]
fn what_was_not_answered_is_named_and_kept() {
    let mut talk = Talk::default();
    talk.login(USUAL)
        .query("SELECT 1")
        .server(1, &[OK])
        .query("SELECT SLEEP(9)");
    let capture = file(&parts(&talk, 1400));
    let out = run(&capture, &["--min-latency=1h"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("no answer SELECT SLEEP(9)"));
    assert!(text(&out.stderr).contains("1 not answered before the end"));
    let log = text(&run(&capture, &["--format=slowlog"]).stdout);
    assert!(log.contains("SELECT 1") && !log.contains("SLEEP"), "{log}");
}

#[test]
fn statements_forge_no_entries() {
    let forged = "SELECT 1;\n# Time: 2023-11-14T22:13:20.010000Z\n# User@Host: root[root] @ h []  Id: 1\nDROP DATABASE d";
    let mut talk = Talk::default();
    talk.login(USUAL).query(forged).server(1, &[OK]);
    let capture = file(&parts(&talk, 1400));
    let log = text(&run(&capture, &["--format=slowlog", "--match=drop"]).stdout);
    assert_eq!(
        log.lines()
            .filter(|line| line.starts_with("# Time"))
            .count(),
        1,
        "{log}"
    );
    assert!(
        log.contains("\n # Time") && log.contains("\n # User@Host: root"),
        "{log}"
    );
}

#[test]
fn a_port_that_nobody_spoke_to_is_said() {
    let out = run(&file(&parts(&conversation(), 1400)), &["--port=3307"]);
    assert!(text(&out.stderr).contains("no client spoke to port 3307"));
    let out = run(&file(&parts(&conversation(), 1400)), &[]);
    assert!(!text(&out.stderr).contains("--port"));
}

#[test]
fn wrong_use_is_said() {
    for (capture, words, what) in [
        (
            &b"08:00:00 IP localhost.3306 > x"[..],
            &[][..],
            "not a capture",
        ),
        (b"", &[], "the capture is empty"),
        (b"", &["--match=("], "not a regular expression"),
        (b"", &["--max-text=1"], "--max-text"),
    ] {
        let out = run(capture, words);
        assert_eq!(out.status.code(), Some(2), "{what}");
        assert!(text(&out.stderr).contains(what), "{}", text(&out.stderr));
    }
}
