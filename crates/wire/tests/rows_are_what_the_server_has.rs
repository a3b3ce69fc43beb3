//! Do rows come through as the server has them, on every server, and does every end say so?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_server::launch::Running;
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::servers::newer_servers;
use evenkeel_testkit::{Scratch, TestServer, servers, until};
use evenkeel_wire::Connection;
use std::io::{self, Read};
use std::time::Duration;

const MIB: usize = 1 << 20;

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    let args = ["--max-allowed-packet=64M", "--local-infile=1"];
    let plan = server.prepare(&scratch.join("data"), &args);
    server.run(&plan.with_networking())
}

fn open(options: &ConnectOptions) -> Connection {
    Connection::open(options, &Cancel::new()).unwrap_or_else(|e| panic!("{}", e.chain()))
}

/// All cells of a result as text, NULL as "NULL!".
fn table(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let mut rows = connection
        .query(sql)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    let width = rows.columns().len();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let mut cells = row.cells();
        let text = |cell: Option<&[u8]>| {
            cell.map_or("NULL!".to_owned(), |c| {
                String::from_utf8_lossy(c).into_owned()
            })
        };
        all.push((0..width).map(|_| text(cells.next().unwrap())).collect());
        assert!(cells.is_empty());
        assert!(cells.next().is_err(), "a cell past the last");
    }
    all
}

fn small_results(connection: &mut Connection) {
    assert_eq!(
        table(
            connection,
            "SELECT NULL, '', 'a\\0b', -1, 1.50, X'FF00' = X'FF00'"
        ),
        [["NULL!", "", "a\0b", "-1", "1.50", "1"]]
    );
    assert!(table(connection, "SELECT 1 FROM DUAL WHERE 0").is_empty());
    // Lengths around each form of a length.
    for length in [250, 251, 255, 256, 65_535, 65_536, 70_000] {
        let got = table(
            connection,
            &format!("SELECT 7, REPEAT('x', {length}), NULL"),
        );
        assert_eq!(got[0][1].len(), length);
        assert_eq!((&*got[0][0], &*got[0][2]), ("7", "NULL!"));
    }
    let error = connection.run("SELEKT 1").unwrap_err();
    assert!(error.to_string().contains("ERROR 1064 (42000)"), "{error}");
    let error = connection.query("DO 1").unwrap_err();
    assert!(error.to_string().contains("no rows"), "{error}");
    assert_eq!(table(connection, "SELECT 2"), [["2"]]);
}

fn many_rows(connection: &mut Connection) {
    connection.run("CREATE DATABASE d").unwrap();
    connection
        .run("CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(50))")
        .unwrap();
    let mut inserted = 0;
    for from in (0..50_000).step_by(5000) {
        let values: Vec<String> = (from..from + 5000)
            .map(|a| format!("({a}, REPEAT('{}', {}))", a % 10, a % 50))
            .collect();
        let sql = format!("INSERT INTO d.t VALUES {}", values.join(","));
        inserted += connection.run(&sql).unwrap().affected;
    }
    assert_eq!(inserted, 50_000);
    let rows = table(connection, "SELECT a, b FROM d.t ORDER BY a");
    assert_eq!(rows.len(), 50_000);
    for (a, row) in rows.iter().enumerate() {
        assert_eq!(row[0], a.to_string());
        assert_eq!(row[1], (a % 10).to_string().repeat(a % 50));
    }
    // What is left unread does not get into the next result.
    let mut rows = connection.query("SELECT a FROM d.t").unwrap();
    assert!(rows.next().unwrap().is_some());
    assert_eq!(table(connection, "SELECT 3"), [["3"]]);
}

/// The server finds out in the second row.
fn errors_in_the_middle(connection: &mut Connection) {
    let sql = "SELECT a, (SELECT x.a FROM d.t x WHERE x.a <= t.a) FROM d.t WHERE a < 2 ORDER BY a";
    let mut rows = connection.query(sql).unwrap();
    let error = loop {
        match rows.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the result ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("ERROR 1242 (21000)"), "{error}");
    assert_eq!(table(connection, "SELECT 4"), [["4"]]);
}

fn long_cells(connection: &mut Connection) {
    for length in [
        16 * MIB - 10,
        16 * MIB - 2,
        16 * MIB - 1,
        16 * MIB,
        40 * MIB,
    ] {
        let sql = format!("SELECT REPEAT('y', {length}), 'end'");
        let mut rows = connection.query(&sql).unwrap();
        let row = rows.next().unwrap().unwrap();
        let mut cells = row.cells();
        let cell = cells.next().unwrap().unwrap();
        assert_eq!(cell.len(), length);
        assert!(cell.iter().all(|byte| *byte == b'y'), "{length}");
        assert_eq!(cells.next(), Ok(Some(&b"end"[..])), "{length}");
        assert!(rows.next().unwrap().is_none());
    }
    // And as long on the way there.
    let sql = format!("SELECT LENGTH('{}')", "z".repeat(17 * MIB));
    assert_eq!(table(connection, &sql), [[(17 * MIB).to_string()]]);
}

fn several_results(connection: &mut Connection) {
    connection
        .run("CREATE PROCEDURE d.p() BEGIN SELECT 1; SELECT 2, 3; END")
        .unwrap();
    assert_eq!(table(connection, "CALL d.p()"), [["1"]]);
    assert_eq!(table(connection, "SELECT 5"), [["5"]]);
    connection.run("CALL d.p()").unwrap();
    assert_eq!(table(connection, "SELECT 6"), [["6"]]);
}

/// Gives some bytes and then fails.
struct Fails(&'static [u8]);

impl Read for Fails {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the disk is gone"));
        }
        let count = into.len().min(self.0.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn loads(running: &Running, connection: &mut Connection) {
    connection
        .run("CREATE TABLE d.l (a INT, b VARCHAR(20)) ENGINE=InnoDB")
        .unwrap();
    let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE d.l";
    let done = connection.load(sql, &mut &b"1\tx\n2\t\\N\n"[..]).unwrap();
    assert_eq!(done.affected, 2);
    assert_eq!(
        table(connection, "SELECT * FROM d.l ORDER BY a"),
        [["1", "x"], ["2", "NULL!"]]
    );
    // Nothing is given to a server that asks without our having offered it.
    let error = connection.run(sql).unwrap_err();
    assert!(error.to_string().contains("is not allowed"), "{error}");
    assert_eq!(table(connection, "SELECT COUNT(*) FROM d.l"), [["2"]]);
    let mut other = open(&running.connect_options());
    let error = other.load(sql, &mut Fails(b"3\ty\n")).unwrap_err();
    assert!(error.chain().contains("the disk is gone"), "{error}");
    drop(other);
    // Half a file is no file.
    assert_eq!(table(connection, "SELECT COUNT(*) FROM d.l"), [["2"]]);
}

fn ends(running: &Running, connection: &mut Connection) {
    // Killed in the middle of a result.
    let mut victim = open(&running.connect_options());
    let id = victim.id();
    let sql = "SELECT x.a, SLEEP(0.001) FROM d.t x";
    let mut rows = victim.query(sql).unwrap();
    connection.run(&format!("KILL {id}")).unwrap();
    let error = loop {
        match rows.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the result ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    until("the connection knows that it is lost", || {
        victim.run("DO 1").is_err()
    });
    assert_eq!(
        victim.run("DO 1").unwrap_err().kind(),
        ErrorKind::Unreachable
    );

    // Silent for too long.
    let mut patient = open(&running.connect_options());
    patient.set_silence(Duration::from_millis(300));
    let error = patient.run("DO SLEEP(60)").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("300 ms"), "{error}");

    // Stopped on request.
    let cancel = Cancel::new();
    let mut stopped = Connection::open(&running.connect_options(), &cancel).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| stopped.run("DO SLEEP(60)"));
        let id = stopped_id(connection);
        assert!(!id.is_empty());
        cancel.cancel(2);
        let error = waits.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    });
}

/// Waits until somebody sleeps, so that the request to stop finds a statement under way.
fn stopped_id(connection: &mut Connection) -> String {
    let sql = "SELECT MAX(id) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'";
    let mut found = String::new();
    until("somebody sleeps", || {
        found = table(connection, sql)[0][0].clone();
        found != "NULL!"
    });
    found
}

fn case(server: &TestServer) {
    println!("{}", server.name);
    let scratch = Scratch::new();
    let running = start(server, &scratch);
    let mut connection = open(&running.connect_options());
    assert!(connection.is_private());
    assert!(
        connection
            .version()
            .contains(&server.binary.version.to_string()),
        "{}",
        connection.version()
    );
    let id = connection.id().to_string();
    assert_eq!(table(&mut connection, "SELECT CONNECTION_ID()"), [[id]]);
    small_results(&mut connection);
    many_rows(&mut connection);
    errors_in_the_middle(&mut connection);
    long_cells(&mut connection);
    several_results(&mut connection);
    loads(&running, &mut connection);
    ends(&running, &mut connection);
}

#[test]
fn on_every_server() {
    for server in servers() {
        case(&server);
    }
}

#[test]
fn on_newer_servers() {
    for server in newer_servers() {
        case(&server);
    }
}

#[test]
fn nobody_there_is_unreachable() {
    let options = ConnectOptions::over_socket("/nonexistent/s", "u");
    let error = Connection::open(&options, &Cancel::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("/nonexistent/s"), "{error}");
    let mut options = options;
    options.ssl_mode = SslMode::Required;
    let error = Connection::open(&options, &Cancel::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn a_silent_server_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ConnectOptions {
        connect_timeout: Duration::from_millis(300),
        ..ConnectOptions::over_tcp("127.0.0.1", silent.local_addr().unwrap().port(), "u")
    };
    let error = Connection::open(&options, &Cancel::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("300 ms"), "{error}");
}
