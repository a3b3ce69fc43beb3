//! Does a history in a server keep and compare what one in a file does?

mod served;

use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15};
use serde_json::Value;
use served::Served;
use std::fs;
use std::process::{Child, Stdio};

/// A minute of statements of a day in November 2026, with a letter that needs four bytes.
fn log(day: usize, seconds: f64) -> String {
    let mut log =
        "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:\n\
        Tcp port: 0  Unix socket: /run/s\nTime                 Id Command    Argument\n"
            .to_owned();
    for second in 0..60 {
        let jitter = (second * 7 % 13) as f64 / 10_000.0;
        log += &format!(
            "# Time: 2026-11-{day:02}T08:00:{second:02}.000000Z\n# User@Host: app[app] @ web1 [10.0.0.7]  Id:     7\n\
             # Query_time: {:.6}  Lock_time: 0.000100 Rows_sent: 2  Rows_examined: 9\nuse shop;\n\
             SET timestamp=1795853835;\nSELECT '\\\\ {second} 𝄞' FROM `o𝄞rders`;\n",
            seconds + jitter
        );
    }
    log
}

#[track_caller]
fn json(served: &Served, words: &[&str]) -> Value {
    let out = served
        .command("digest", &[words, &["--json"]].concat())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        out.status.success(),
        "{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

fn history_lives_in(server: &TestServer) {
    let served = Served::new(
        server,
        &["--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES"],
        "root",
    );
    let room = served.room();
    for (name, day, seconds) in [("slow.log.2", 23, 0.02), ("slow.log.1", 24, 0.05)] {
        fs::write(room.join(name), log(day, seconds)).unwrap();
    }
    let at = |words: &[&'static str]| {
        let place = [
            "--history",
            "mysql:///shop",
            "--defaults-file",
            "client.cnf",
        ];
        json(&served, &[words, &place].concat())
    };
    // The same in a file.
    let file = |words: &[&'static str]| json(&served, &[words, &["--history", "h.db"]].concat());
    for log in ["slow.log.2", "slow.log.1"] {
        assert_eq!(at(&[log])["history"]["added"]["is_new"], true);
        file(&[log]);
    }
    assert_eq!(at(&["slow.log.1"])["history"]["added"]["is_new"], false);
    let plain = |mut answer: Value| {
        let fields = answer.as_object_mut().unwrap();
        fields.remove("history");
        fields.remove("files");
        answer
    };
    let words = ["--compare", "2026-11-23", "2026-11-24"];
    let compared = at(&words);
    assert_eq!(compared["changes"][0]["change"], "slower", "{compared}");
    assert_eq!(plain(compared), plain(file(&words)));
    assert_eq!(
        at(&["--periods"])["periods"],
        file(&["--periods"])["periods"]
    );
    several_add_at_once(&served);
    assert_eq!(at(&["--periods"])["periods"].as_array().unwrap().len(), 6);
    assert_eq!(
        at(&["--keep", "1h"])["removed"].as_array().unwrap().len(),
        6
    );
    let rows = "SELECT (SELECT COUNT(*) FROM shop.digest_class) + (SELECT COUNT(*) FROM shop.digest_period)";
    let left = served.running.session().unwrap().value(rows).unwrap();
    assert_eq!(left.as_deref(), Some("0"), "{}", server.name);
}

/// They wait for each other.
fn several_add_at_once(served: &Served) {
    let all: Vec<Child> = (0..4)
        .map(|number| {
            let name = format!("db{number}");
            let words = [
                "slow.log.1",
                "--history",
                "mysql:///shop",
                "--history-name",
                &name,
            ];
            let words = [&words[..], &["--defaults-file", "client.cnf"]].concat();
            served
                .command("digest", &words)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in all {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn mariadb() {
    history_lives_in(&mariadb_10_11());
}

#[test]
fn mysql() {
    history_lives_in(&mysql_8_0_15());
}

#[test]
fn an_account_that_may_not_is_told_what_it_needs() {
    let served = Served::new(&mariadb_10_11(), &[], "app");
    served
        .running
        .session()
        .unwrap()
        .run("CREATE USER app@localhost")
        .unwrap();
    fs::write(served.room().join("slow.log"), log(23, 0.02)).unwrap();
    let words = [
        "slow.log",
        "--history",
        "mysql:///shop",
        "--defaults-file",
        "client.cnf",
    ];
    let out = served.command("digest", &words).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(14), "{said}");
    assert!(said.contains("CREATE DATABASE `shop`"), "{said}");
}

#[test]
fn tables_that_keep_half_a_period_and_triggers_are_refused() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let served = Served::new(&server, &[], "root");
        fs::write(served.room().join("slow.log"), log(23, 0.02)).unwrap();
        let words = [
            "slow.log",
            "--history",
            "mysql:///shop",
            "--defaults-file",
            "client.cnf",
        ];
        json(&served, &words);
        let mut session = served.running.session().unwrap();
        for (change, back, why) in [
            (
                "ALTER TABLE shop.digest_class ENGINE = MyISAM",
                "ALTER TABLE shop.digest_class ENGINE = InnoDB",
                "`shop`.`digest_class` has no transactions",
            ),
            (
                "CREATE TRIGGER shop.spy BEFORE INSERT ON shop.digest_class FOR EACH ROW SET @a = 1",
                "DROP TRIGGER shop.spy",
                "has the trigger `spy`",
            ),
        ] {
            session.run(change).unwrap();
            let out = served.command("digest", &words).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(14), "{said}");
            assert!(said.contains(why), "{said}");
            session.run(back).unwrap();
        }
        json(&served, &words);
    }
}

#[test]
fn hints_name_no_option_that_is_a_filter() {
    let served = Served::new(&mariadb_10_11(), &[], "nobody");
    fs::write(served.room().join("slow.log"), log(23, 0.02)).unwrap();
    for words in [
        &["--server=./socket"][..],
        &["slow.log", "--history=mysql:///shop"],
        &["slow.log", "--explain=./socket"],
        &["slow.log", "--explain=127.0.0.1:1"],
        &["slow.log", "--explain=nowhere.invalid"],
    ] {
        let words = [words, &["--defaults-file=client.cnf"]].concat();
        let out = served.command("digest", &words).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains("hint:"), "{said}");
        for filter in ["--user", "--host", "--login-path", "--socket", "--password"] {
            assert!(!said.contains(filter), "{words:?}: {said}");
        }
    }
    let words = ["slow.log", "--explain=s.sock", "--defaults-file=client.cnf"];
    let out = served.command("digest", &words).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("./s.sock where a server is named"), "{said}");
}
