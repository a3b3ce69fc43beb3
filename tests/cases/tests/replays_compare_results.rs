//! Does a replay say which statements return other rows than when they were captured, and no others?

use evenkeel_cases::packets::Packets;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_server::launch::Running;
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mariadb_11_8, mysql_8_0_15};
use evenkeel_wire::{Connection, Value};
use serde_json::Value as Json;

const ITEMS: i64 = 20;

/// Classes of statements that read the items, each once per item: by text, and prepared.
const BY_TEXT: &str = "SELECT id, price, sold, code FROM items WHERE id = ";
const PREPARED: &str = "SELECT price, sold, weight FROM items WHERE id = ?";

/// A server whose traffic was captured.
struct Played {
    room: Scratch,
    running: Running,
}

impl Played {
    fn new(server: &TestServer) -> Self {
        let room = Scratch::new();
        let datadir = room.path().join("data");
        let running = server.run(&server.prepare(&datadir, &[]).with_networking());
        let played = Self { room, running };
        played.fill();
        let file = played.room.path().join("shop.pcap");
        let capture = Packets::of(played.port(), &file);
        played.traffic();
        capture.end();
        played
    }

    fn port(&self) -> u16 {
        self.running.port().expect("a TCP port")
    }

    fn connect(&self) -> Connection {
        let options = ConnectOptions {
            socket: None,
            host: Some("127.0.0.1".to_owned()),
            port: Some(self.port()),
            ssl_mode: SslMode::Disabled,
            ..self.running.connect_options()
        };
        Connection::open(&options, &Cancel::new()).unwrap()
    }

    fn run(&self, statements: &[&str]) {
        let mut session = self.connect();
        for sql in statements {
            session.run(sql).unwrap();
        }
    }

    fn fill(&self) {
        self.run(&[
            "DROP DATABASE IF EXISTS shop",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.items (id INT PRIMARY KEY, price DOUBLE, sold DATETIME(6), weight FLOAT, code BLOB)",
            "CREATE TABLE shop.tags (name VARCHAR(20), place INT)",
            "INSERT INTO shop.tags VALUES ('a', 1), ('b', 2), ('c', 3)",
        ]);
        let rows = (1..=ITEMS).map(|id| {
            format!("({id}, {id} / 7, '2026-11-28 10:00:00' + INTERVAL {id} SECOND, {id} / 3, CHAR({id}))")
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        self.run(&[&format!("INSERT INTO shop.items VALUES {rows}")]);
    }

    fn traffic(&self) {
        let mut session = self.connect();
        session.run("USE shop").unwrap();
        session.allow_several().unwrap();
        let mut prepared = session.prepare(PREPARED).unwrap();
        for id in 1..=ITEMS {
            session.run(&format!("{BY_TEXT}{id}")).unwrap();
            session
                .execute(&mut prepared, &[Value::Number(id)])
                .unwrap();
        }
        for sql in [
            "SELECT name FROM tags",
            "SELECT name FROM tags ORDER BY place",
            "SELECT NOW(6), CONNECTION_ID()",
            "SELECT UUID()",
            "SELECT @@server_id",
            "SHOW STATUS LIKE 'Questions'",
            "SELECT nothing FROM tags",
            "SELECT name FROM tags WHERE place = 2; SELECT place FROM tags WHERE name = 'b'",
        ] {
            let _ = session.run(sql);
        }
    }

    fn replay(&self, words: &[&str]) -> Ended {
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = evenkeel.command(&["replay", "shop.pcap", "--no-defaults", "-u", "root"]);
        command.arg("-S").arg(self.running.socket());
        let port = format!("--captured-port={}", self.port());
        command
            .args([&port, "--read-only", "--speed", "max"])
            .args(words);
        command.current_dir(self.room.path());
        run(command)
    }
}

/// Returns the differences of all statements, or of a class: their names with how many.
fn differences(of: &Json) -> Vec<(String, u64)> {
    let all = of["differences"].as_array().unwrap().iter();
    all.map(|one| {
        let name = one["difference"].as_str().unwrap().to_owned();
        (name, one["count"].as_u64().unwrap())
    })
    .collect()
}

/// Returns the classes that differ, by their fingerprints, in order.
fn classes(answer: &Json) -> Vec<String> {
    let all = answer["classes"].as_array().unwrap().iter();
    let differ = all.filter(|class| !differences(class).is_empty());
    let mut names: Vec<String> = differ
        .map(|class| {
            class["captured"]["fingerprint"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    names
}

fn one(name: &str, count: u64) -> Vec<(String, u64)> {
    vec![(name.to_owned(), count)]
}

/// The data are those of the capture: nothing differs, and what was not compared is named.
fn nothing_differs(played: &Played) {
    let ended = played.replay(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(differences(&ended.answer), [], "{ended:?}");
    let results = &ended.answer["results"];
    assert_eq!(results["compared"], 2 * ITEMS + 3, "{results}");
    let apart = results["not_compared"].as_array().unwrap();
    let apart: Vec<_> = apart
        .iter()
        .map(|one| (&one["reason"], &one["count"]))
        .collect();
    assert_eq!(
        apart,
        [
            (&"varying".into(), &2.into()),
            (&"of-server".into(), &2.into())
        ]
    );
    // It is that of the class that took the longest.
    let example = results["not_compared"][0]["example"].as_str().unwrap();
    assert!(
        ["SELECT NOW(6), CONNECTION_ID()", "SELECT UUID()"].contains(&example),
        "{example}"
    );
}

fn results_are_compared(server: &TestServer) {
    let played = Played::new(server);
    nothing_differs(&played);

    // One row is another one: so are the results of those who read it.
    played.run(&["UPDATE shop.items SET sold = sold + INTERVAL 1 MICROSECOND WHERE id = 3"]);
    let ended = played.replay(&["--html", "replay.html"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(differences(&ended.answer), one("values", 2));
    let names = classes(&ended.answer);
    assert!(
        names[0].contains("price, sold, code from items") && names.len() == 2,
        "{names:?}"
    );
    assert!(
        names[1].contains("price, sold, weight from items"),
        "{names:?}"
    );
    let example = ended.answer["differences"][0]["example"]["sql"]
        .as_str()
        .unwrap();
    assert!(example.ends_with("FROM items WHERE id = 3"), "{example}");
    let html = std::fs::read_to_string(played.room.path().join("replay.html")).unwrap();
    assert!(html.contains("returned other rows"), "{html}");
    // Whoever knows that the data are others asks for the rest.
    let ended = played.replay(&["--ignore-results"]);
    assert_eq!(
        (ended.code, differences(&ended.answer)),
        (Some(0), vec![]),
        "{ended:?}"
    );

    // The same rows lie in another order, which nobody asked for.
    played.fill();
    played.run(&[
        "TRUNCATE shop.tags",
        "INSERT INTO shop.tags VALUES ('c', 3), ('b', 2), ('a', 1)",
    ]);
    let ended = played.replay(&[]);
    assert_eq!(differences(&ended.answer), one("free-order", 1));
    assert_eq!(ended.code, Some(0), "{ended:?}");

    // They are sorted otherwise.
    played.fill();
    played.run(&["UPDATE shop.tags SET place = 4 - place"]);
    let ended = played.replay(&[]);
    assert_eq!(differences(&ended.answer), one("order", 1));
    assert_eq!(ended.code, Some(4), "{ended:?}");
}

#[test]
fn on_mariadb_10_11() {
    results_are_compared(&mariadb_10_11());
}

#[test]
fn on_mariadb_11_8() {
    results_are_compared(&mariadb_11_8());
}

#[test]
fn on_mysql_8_0() {
    results_are_compared(&mysql_8_0_15());
}
