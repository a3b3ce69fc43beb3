//! Do captured prepared statements run as prepared ones again: prepared once, with their values, and closed?

use evenkeel_cases::packets::Packets;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_server::launch::Running;
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mariadb_11_8, mysql_8_0_15};
use evenkeel_wire::Connection;
use serde_json::Value as Json;
use std::process::Command;

const ROWS: u64 = 10;
const INSERT: &[u8] = b"INSERT INTO t VALUES (?, ?, ?, ?)";
const SELECT: &[u8] = b"SELECT a, d, s, b FROM t WHERE a >= ? ORDER BY a";

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
        Self { room, running }
    }

    fn capture(&self, traffic: impl FnOnce(&Self)) {
        let file = self.room.path().join("shop.pcap");
        let capture = Packets::of(self.running.port().unwrap(), &file);
        traffic(self);
        capture.end();
    }

    fn connect(&self) -> Connection {
        let options = ConnectOptions {
            socket: None,
            host: Some("127.0.0.1".to_owned()),
            port: self.running.port(),
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
            "CREATE TABLE shop.t (a BIGINT UNSIGNED PRIMARY KEY, d DOUBLE, s VARCHAR(20), b BLOB)",
        ]);
    }

    /// How often the server prepared, ran and closed.
    fn counts(&self) -> [u64; 3] {
        let mut session = self.connect();
        ["Com_stmt_prepare", "Com_stmt_execute", "Com_stmt_close"].map(|name| {
            let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
            let mut rows = session.query(&sql).unwrap();
            let row = rows.next().unwrap().unwrap();
            let mut cells = row.cells();
            cells.next().unwrap();
            let text = String::from_utf8_lossy(cells.next().unwrap().unwrap()).into_owned();
            text.parse().unwrap()
        })
    }

    fn replay(&self, words: &[&str]) -> (Ended, [u64; 3]) {
        let before = self.counts();
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = evenkeel.command(&["replay", "shop.pcap", "--no-defaults", "-u", "root"]);
        command.arg("-S").arg(self.running.socket());
        let port = format!("--captured-port={}", self.running.port().unwrap());
        command.args([&port, "--speed", "max"]).args(words);
        command.current_dir(self.room.path());
        let ended = run(command);
        let after = self.counts();
        (ended, [0, 1, 2].map(|at| after[at] - before[at]))
    }
}

/// The values of an execution: a number, a DOUBLE or NULL, a string, bytes.
fn values(number: u64) -> Vec<u8> {
    let is_null = number.is_multiple_of(3);
    let mut bytes = vec![
        if is_null { 2 } else { 0 },
        1,
        8,
        0x80,
        5,
        0,
        253,
        0,
        252,
        0,
    ];
    bytes.extend_from_slice(&(u64::MAX - number).to_le_bytes());
    if !is_null {
        bytes.extend_from_slice(&(number as f64 / 7.0).to_le_bytes());
    }
    bytes.extend_from_slice(b"\x04it's\x05\0\xff'\\\n");
    bytes
}

fn traffic(played: &Played) {
    let mut session = played.connect();
    session.run("USE shop").unwrap();
    let insert = session.play_prepare(INSERT).unwrap().unwrap();
    let select = session.play_prepare(SELECT).unwrap().unwrap();
    for number in 0..ROWS {
        let done = session.play_execute(&insert, &values(number)).unwrap();
        assert_eq!((done.error, done.affected), (None, 1));
        let from = [&[0, 1, 8, 0x80][..], &0_u64.to_le_bytes()].concat();
        let done = session.play_execute(&select, &from).unwrap();
        assert_eq!((done.error, done.rows), (None, number + 1));
    }
    session.play_close(insert).unwrap();
    session.run("COMMIT").unwrap();
    let last = session
        .play_prepare(b"SELECT COUNT(*) FROM t")
        .unwrap()
        .unwrap();
    session.play_execute(&last, &[]).unwrap();
}

fn errors(answer: &Json) -> Vec<(String, u64)> {
    let all = answer["differences"].as_array().unwrap().iter();
    all.map(|one| {
        let name = one["difference"].as_str().unwrap().to_owned();
        (name, one["count"].as_u64().unwrap())
    })
    .collect()
}

fn prepared_statements_run_again(server: &TestServer) {
    let played = Played::new(server);
    played.fill();
    played.capture(traffic);

    played.fill();
    let (ended, counts) = played.replay(&["--allow-writes"]);
    assert_eq!(
        (ended.code, errors(&ended.answer)),
        (Some(0), vec![]),
        "{ended:?}"
    );
    assert_eq!(counts, [3, 2 * ROWS + 1, 1]);
    assert_eq!(ended.answer["prepared"], 2 * ROWS + 1);
    assert_eq!(ended.answer["prepared_as_text"], 0);
    assert_eq!(ended.answer["results"]["compared"], ROWS + 1);

    // What writes is neither prepared nor run.
    played.fill();
    let (ended, counts) = played.replay(&["--read-only"]);
    assert_eq!(counts, [2, ROWS + 1, 0], "{ended:?}");
    let left = &ended.answer["left_out"][0];
    assert_eq!(
        (&left["reason"], &left["count"]),
        (&"writes".into(), &ROWS.into())
    );
    let mut session = played.connect();
    let mut rows = session.query("SELECT a FROM shop.t").unwrap();
    assert!(rows.next().unwrap().is_none(), "a row was inserted");

    // A server that cannot prepare a statement does not run it either, and says why.
    played.run(&["ALTER TABLE shop.t CHANGE d e DOUBLE"]);
    let (ended, counts) = played.replay(&["--allow-writes"]);
    assert_eq!((ended.code, counts[1]), (Some(4), ROWS + 1), "{ended:?}");
    assert_eq!(errors(&ended.answer), [("error-new".to_owned(), ROWS)]);
    let example = &ended.answer["differences"][0]["example"];
    assert_eq!(example["replayed"]["error"], 1054, "{example}");
}

#[test]
fn on_mariadb_10_11() {
    prepared_statements_run_again(&mariadb_10_11());
}

#[test]
fn on_mariadb_11_8() {
    prepared_statements_run_again(&mariadb_11_8());
}

#[test]
fn on_mysql_8_0() {
    prepared_statements_run_again(&mysql_8_0_15());
}

fn sysbench(played: &Played, verb: &str) {
    let mut sysbench = Command::new("sysbench");
    sysbench.args([
        "oltp_read_only",
        "--mysql-host=127.0.0.1",
        "--mysql-user=app",
    ]);
    sysbench.args([
        "--mysql-db=shop",
        "--table-size=200",
        "--threads=2",
        "--events=20",
    ]);
    sysbench.args(["--time=0", "--db-ps-mode=auto"]);
    sysbench.arg(format!("--mysql-port={}", played.running.port().unwrap()));
    let output = sysbench.arg(verb).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The library that sysbench uses has the server leave out the definitions of columns that it knows.
#[test]
fn those_of_sysbench_return_the_same_rows() {
    let played = Played::new(&mariadb_11_8());
    played.fill();
    played.run(&["CREATE USER app", "GRANT ALL ON shop.* TO app"]);
    sysbench(&played, "prepare");
    played.capture(|played| sysbench(played, "run"));
    let (ended, counts) = played.replay(&["--read-only"]);
    assert_eq!(
        (ended.code, errors(&ended.answer)),
        (Some(0), vec![]),
        "{ended:?}"
    );
    // Fourteen queries, between BEGIN and COMMIT.
    assert_eq!(counts[1], 20 * 16);
    assert_eq!(ended.answer["results"]["compared"], 20 * 14);
    assert_eq!(
        ended.answer["results"]["not_compared"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}
