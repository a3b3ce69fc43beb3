//! Does a server that gets captured statements again come to the same, and is it said where it does not?

use evenkeel_cases::packets::Packets;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_server::launch::Running;
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{
    TestServer, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_wire::Connection;
use std::sync::mpsc;

const ACCOUNTS: i64 = 20;
const TRANSFERS: i64 = 40;
const LINKS: usize = 30;

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
        played.reset();
        let capture = Packets::of(played.port(), &played.room.path().join("shop.pcap"));
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

    fn sql(&self, sql: &str) {
        self.connect().run(sql).unwrap();
    }

    /// Puts the data back to what they were before the traffic.
    fn reset(&self) {
        let mut one = self.connect();
        for sql in [
            "DROP DATABASE IF EXISTS shop",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.accounts (id INT PRIMARY KEY, amount INT)",
            "CREATE TABLE shop.links (id INT PRIMARY KEY)",
        ] {
            one.run(sql).unwrap();
        }
        for id in 0..ACCOUNTS {
            one.run(&format!("INSERT INTO shop.accounts VALUES ({id}, 100)"))
                .unwrap();
        }
    }

    /// Transfers, and two sessions that hand work to each other: each sees what the other one committed.
    fn traffic(&self) {
        std::thread::scope(|scope| {
            for teller in 0..3 {
                scope.spawn(move || self.transfers(teller));
            }
            let (to_reader, from_writer) = mpsc::channel();
            let (to_writer, from_reader) = mpsc::channel();
            scope.spawn(move || {
                let mut writer = self.connect();
                writer.run("USE shop").unwrap();
                for link in 0..LINKS {
                    writer.run("BEGIN").unwrap();
                    writer
                        .run(&format!("INSERT INTO links VALUES ({link})"))
                        .unwrap();
                    writer.run("COMMIT").unwrap();
                    to_reader.send(()).unwrap();
                    from_reader.recv().unwrap();
                }
            });
            scope.spawn(move || {
                let mut reader = self.connect();
                for _ in from_writer {
                    reader.run("SELECT id FROM shop.links").unwrap();
                    let _ = to_writer.send(());
                }
            });
        });
    }

    fn transfers(&self, teller: i64) {
        let mut session = self.connect();
        session.run("USE shop").unwrap();
        for turn in 0..TRANSFERS {
            let from = (teller * 7 + turn) % ACCOUNTS;
            let to = (from + 1 + turn % 5) % ACCOUNTS;
            let (first, second) = (from.min(to), from.max(to));
            for sql in [
                "START TRANSACTION".to_owned(),
                format!(
                    "SELECT amount FROM accounts WHERE id IN ({first}, {second}) ORDER BY id FOR UPDATE"
                ),
                format!("UPDATE accounts SET amount = amount - 1 WHERE id = {from}"),
                format!("UPDATE accounts SET amount = amount + 1 WHERE id = {to}"),
                "COMMIT".to_owned(),
            ] {
                session.run(&sql).unwrap();
            }
        }
    }

    fn replay(&self, words: &[&str]) -> Ended {
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = evenkeel.command(&["replay", "shop.pcap", "--no-defaults", "-u", "root"]);
        command.arg("-S").arg(self.running.socket());
        let port = format!("--captured-port={}", self.port());
        command.arg(port).args(words);
        command.current_dir(self.room.path());
        run(command)
    }

    /// Every row of the data.
    fn state(&self) -> Vec<Vec<u8>> {
        let mut one = self.connect();
        let mut rows = one
            .query("SELECT id, amount FROM shop.accounts UNION ALL SELECT id, NULL FROM shop.links ORDER BY 1, 2")
            .unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let mut bytes = Vec::new();
            let mut cells = row.cells();
            while !cells.is_empty() {
                bytes.extend_from_slice(cells.next().unwrap().unwrap_or(b"NULL"));
                bytes.push(b' ');
            }
            all.push(bytes);
        }
        all
    }
}

fn outcomes_are_compared(server: &TestServer) {
    let played = Played::new(server);
    let after = played.state();
    played.reset();
    assert_ne!(played.state(), after);

    let ended = played.replay(&["--allow-writes", "--speed", "max"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        played.state(),
        after,
        "the same statements came to something else"
    );
    let answer = &ended.answer;
    assert_eq!(answer["schema"], "evenkeel/replay/1");
    assert_eq!(answer["sessions"], 5);
    // Three tellers and the two who hand over; USE is no statement, but where the next ones run.
    let sent = 3 * 5 * TRANSFERS + 3 * LINKS as i64 + LINKS as i64;
    assert_eq!(answer["statements"], sent, "{answer}");
    assert_eq!(answer["differences"].as_array().unwrap().len(), 0);
    assert_eq!(answer["gave_up"], 0);
    assert!(answer["waits"].as_u64().unwrap() >= 2 * LINKS as u64 - 1);

    // The data are others than when it was captured.
    played.reset();
    played.sql("INSERT INTO shop.links VALUES (1000)");
    let ended = played.replay(&["--allow-writes", "--speed", "max"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let rows = &ended.answer["differences"][0];
    assert_eq!(
        (&rows["difference"], &rows["count"]),
        (&"rows".into(), &LINKS.into())
    );
    let example = &rows["example"];
    assert_eq!(example["sql"], "SELECT id FROM shop.links");
    let is_one_more = |side: &str| example[side]["rows"].as_u64().unwrap();
    assert_eq!(is_one_more("replayed"), is_one_more("captured") + 1);

    // Nothing is written, and what was not done is named.
    played.reset();
    let before = played.state();
    let page = ["--html", "replay.html", "--tmpdir", "."];
    let ended = played.replay(&[&["--read-only", "--speed", "20"], &page[..]].concat());
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(played.state(), before);
    let html = std::fs::read_to_string(played.room.path().join("replay.html")).unwrap();
    assert!(html.contains("returned another number of rows"), "{html}");
    let left = &ended.answer["left_out"][0];
    assert_eq!(left["reason"], "writes");
    assert_eq!(left["count"], 3 * 3 * TRANSFERS + LINKS as i64);
}

#[test]
fn on_mariadb_10_11() {
    outcomes_are_compared(&mariadb_10_11());
}

#[test]
fn on_mariadb_11_8() {
    outcomes_are_compared(&mariadb_11_8());
}

#[test]
fn on_mysql_5_7() {
    outcomes_are_compared(&mysql_5_7_22());
}

#[test]
fn on_mysql_8_0() {
    outcomes_are_compared(&mysql_8_0_15());
}

#[test]
fn on_mysql_9() {
    outcomes_are_compared(&mysql_9());
}

/// The capture is one session's, in a database that is not there any more: nothing may run in another one.
#[test]
fn sessions_without_their_database_are_lost() {
    let room = Scratch::new();
    let running = mariadb_10_11().start(&room.path().join("data"), &[]);
    let mut session = Connection::open(&running.connect_options(), &Cancel::new()).unwrap();
    session.run("CREATE DATABASE other").unwrap();
    session.run("CREATE TABLE other.l SELECT 1 AS a").unwrap();
    let log = "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:\n\
        Tcp port: 0  Unix socket: /run/s\nTime                 Id Command    Argument\n\
        2026-11-28T08:00:00.000000Z\t    7 Connect\troot@localhost on other using Socket\n\
        2026-11-28T08:00:00.000000Z\t    7 Query\tSELECT 1\n\
        2026-11-28T08:00:00.100000Z\t    7 Init DB\tgone\n\
        2026-11-28T08:00:00.200000Z\t    7 Query\tDELETE FROM l\n";
    std::fs::write(room.path().join("general.log"), log).unwrap();
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command =
        evenkeel.command(&["replay", "general.log", "--allow-writes", "--no-defaults"]);
    command.args(["-u", "root", "-S"]).arg(running.socket());
    command.current_dir(room.path());
    let ended = run(command);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.answer["lost"], 1);
    let loss = ended.answer["loss"].as_str().unwrap();
    assert!(loss.contains("the database gone: error 1049"), "{loss}");
    let mut rows = session.query("SELECT a FROM other.l").unwrap();
    assert!(
        rows.next().unwrap().is_some(),
        "another database's rows were deleted"
    );
}
