//! Does `digest --explain` show plans of queries, execute nothing, and end in time?

mod served;

use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15};
use serde_json::Value;
use served::Served;
use std::fs;

const STATEMENTS: [&str; 7] = [
    "SELECT name FROM orders WHERE id = 7",
    "SELECT COUNT(*) FROM orders o JOIN orders p ON p.name = o.name",
    "INSERT INTO orders VALUES (100, 'x')",
    "SELECT * FROM gone WHERE id = 1",
    "SELECT id FROM orders; INSERT INTO orders VALUES (101, 'x')",
    "SELECT name INTO OUTFILE '/tmp/evenkeel-explained' FROM orders",
    "SHOW TABLES",
];

fn log(statements: &[&str]) -> String {
    let mut log =
        "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:\n\
        Tcp port: 0  Unix socket: /run/s\nTime                 Id Command    Argument\n"
            .to_owned();
    for (number, sql) in statements.iter().enumerate() {
        log += &format!(
            "# Time: 2026-11-28T08:00:{number:02}.000000Z\n# User@Host: app[app] @ web1 [10.0.0.7]  Id:     7\n\
             # Query_time: {}.000000  Lock_time: 0.000100 Rows_sent: 2  Rows_examined: 9\nuse shop;\n\
             SET timestamp=1795853835;\n{sql};\n",
            30 - number
        );
    }
    log
}

/// A server with a table, and a log.
fn shop(server: &TestServer, statements: &[&str]) -> Served {
    let served = Served::new(server, &[], "root");
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
    served
        .running
        .session()
        .unwrap()
        .run("INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b'), (7, 'c')")
        .unwrap();
    fs::write(served.room().join("slow.log"), log(statements)).unwrap();
    served
}

fn digest(served: &Served, more: &[&str]) -> (Option<i32>, String, String) {
    let words = [
        "slow.log",
        "--explain",
        "./socket",
        "--defaults-file",
        "client.cnf",
    ];
    let out = served
        .command("digest", &[&words[..], more].concat())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn queries_are_explained(server: &TestServer) {
    let served = shop(server, &STATEMENTS);
    let (code, out, error) = digest(&served, &["--json", "--html", "page.html"]);
    // One names a table that is not there.
    assert_eq!(code, Some(3), "{out}{error}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let plan = |number: usize| answer["classes"][number]["plan"].clone();
    let table = &plan(0)["tables"][0];
    assert_eq!(
        (&table["table"], &table["access"]),
        (&"orders".into(), &"const".into()),
        "{table}"
    );
    assert_eq!(table["key"], "PRIMARY", "{table}");
    assert!(plan(0)["document"]["query_block"].is_object());
    let joined = plan(1);
    let names: Vec<_> = joined["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["access"])
        .collect();
    assert_eq!(names, ["ALL", "ALL"], "{joined}");
    let missing = plan(3)["failure"]["message"].clone();
    assert!(missing.as_str().unwrap().contains("gone"), "{missing}");
    for number in [2, 4, 5, 6] {
        let why = plan(number)["not_explained"].clone();
        assert_eq!(why, "it is no query that only reads", "{number}");
    }
    let rows = served
        .running
        .session()
        .unwrap()
        .value("SELECT COUNT(*) FROM shop.orders");
    assert_eq!(rows.unwrap().as_deref(), Some("3"), "nothing is executed");
    let html = fs::read_to_string(served.room().join("page.html")).unwrap();
    assert!(
        html.contains("PRIMARY") && html.contains("No plan: it is no query"),
        "{html}"
    );
    let (_, text, _) = digest(&served, &["--top", "1"]);
    assert!(
        text.contains("How the server would run the samples") && text.contains("PRIMARY"),
        "{text}"
    );
    // Out of a history, too.
    let (code, _, error) = digest(&served, &["--top", "1", "--history", "h.db"]);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn queries_are_explained_on_mariadb() {
    queries_are_explained(&mariadb_10_11());
}

#[test]
fn queries_are_explained_on_mysql() {
    queries_are_explained(&mysql_8_0_15());
}

#[test]
fn a_plan_that_does_not_come_is_not_waited_for() {
    // A lock on the table is waited for: that is a plan that does not come.
    let served = shop(&mariadb_10_11(), &["SELECT name FROM orders WHERE id = 7"]);
    let mut holder = served.running.session().unwrap();
    holder.run("LOCK TABLES shop.orders WRITE").unwrap();
    let (code, out, error) = digest(&served, &["--explain-timeout", "300ms"]);
    assert_eq!(code, Some(3), "{out}{error}");
    assert!(
        out.contains("no plan within") && out.contains("--explain-timeout"),
        "{out}"
    );
    // Nothing of it is left in the server.
    let left =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'EXPLAIN FORMAT%'";
    evenkeel_testkit::until("the statement is gone", || {
        holder.value(left).unwrap().as_deref() == Some("0")
    });
}

#[test]
fn a_server_that_is_not_there_is_said_first() {
    let served = shop(&mariadb_10_11(), &["SELECT 1"]);
    let words = ["slow.log", "--explain", "./none.sock"];
    let out = served.command("digest", &words).output().unwrap();
    assert_eq!(out.status.code(), Some(13), "{out:?}");
    assert!(out.stdout.is_empty());
}
