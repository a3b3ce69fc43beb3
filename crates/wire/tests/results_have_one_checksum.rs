//! Has a result one checksum, whether its rows came as text or in binary, whatever the server and the types?

use evenkeel_op::Cancel;
use evenkeel_server::launch::Running;
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{
    TestServer, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_wire::watch::{Side, Watch, command};
use evenkeel_wire::{Checksum, Connection};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What was seen: command, text, rows, checksum.
type Seen = Arc<Mutex<Vec<(u8, String, u64, Option<Checksum>)>>>;

/// A connection's bytes on their way, and what they come to.
struct Between {
    watch: Mutex<Watch>,
    seen: Seen,
}

impl Between {
    fn pass(&self, side: Side, mut from: TcpStream, mut to: TcpStream) {
        // Small enough that rows come in pieces.
        let mut buffer = vec![0; 1448];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            self.watch
                .lock()
                .unwrap()
                .bytes(side, 0, &buffer[..read], &mut |seen| {
                    let text = String::from_utf8_lossy(seen.sql).into_owned();
                    let one = (seen.command, text, seen.rows, seen.checksum);
                    self.seen.lock().unwrap().push(one);
                });
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// Returns a connection that is watched.
fn watched(running: &Running) -> (Connection, Seen) {
    let seen = Seen::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let port = running.port().unwrap();
    let between = Arc::new(Between {
        watch: Mutex::new(Watch::new(1 << 20).with_checksums()),
        seen: seen.clone(),
    });
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (client_too, server_too) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let to_server = between.clone();
        std::thread::spawn(move || to_server.pass(Side::Client, client, server));
        between.pass(Side::Server, server_too, client_too);
    });
    let options = ConnectOptions {
        socket: None,
        host: Some("127.0.0.1".to_owned()),
        port: Some(own),
        ssl_mode: SslMode::Disabled,
        ..running.connect_options()
    };
    (Connection::open(&options, &Cancel::new()).unwrap(), seen)
}

const TABLE: &str = "CREATE TABLE c.t (id INT PRIMARY KEY, tiny TINYINT, utiny TINYINT UNSIGNED, small SMALLINT,
    medium MEDIUMINT, umedium MEDIUMINT UNSIGNED, i INT, ui INT UNSIGNED, big BIGINT, ubig BIGINT UNSIGNED,
    filled INT(7) ZEROFILL, filled_tiny TINYINT(2) ZEROFILL, filled_double DOUBLE(9,2) ZEROFILL,
    filled_decimal DECIMAL(9,2) ZEROFILL, f FLOAT, f2 FLOAT(9,2), d DOUBLE, d3 DOUBLE(12,3), dec_ DECIMAL(30,10),
    y YEAR, da DATE, ti TIME, ti6 TIME(6), dt DATETIME, dt6 DATETIME(6), dt3 DATETIME(3), ts TIMESTAMP NULL,
    bits BIT(13), ch CHAR(5), bi BINARY(5), vc VARCHAR(300), te TEXT, bl LONGBLOB, e ENUM('a','b'), s SET('x','y'),
    js JSON, g GEOMETRY) DEFAULT CHARSET utf8mb4";

const ROWS: [&str; 4] = [
    "(1, -128, 255, -32768, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808,
     18446744073709551615, 42, 7, 12.5, 3.25, 16777216, 1234567.25, 1e15, 1.0005, -12345678901234567890.0123456789,
     2026, '2026-11-28', '-838:59:59', '-34:22:33.000009', '2026-11-28 00:00:00', '2026-11-28 16:08:09.000001',
     '2026-11-28 16:08:09.5', '2026-11-28 16:08:09', b'1000000000001', 'ab', 'a\\0b', '', 'é€😀', 'a\\0\\n''b', 'b',
     'x,y', '{\"a\": [1, 2.50, null]}', ST_GeomFromText('POINT(1 2)'))",
    "(2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '1970-01-01', '00:00:00', '838:59:58.999999',
     '1000-01-01 00:00:00', '9999-12-31 23:59:59.999999', '2026-11-28 00:00:00', NULL, 0, '', '', REPEAT('x', 251), '',
     '', 'a', '', '[]', NULL)",
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3.14159265, -0.005, -1e-7, -1e-7, 1e-10, 1901, '0001-01-01',
     '23:59:59', '00:00:00.1', '2026-11-28 16:00:00', '2026-11-28 00:00:00.1', '2026-11-28 16:08:09', NULL, 5, 'abcde',
     '12345', 'y', REPEAT('text', 20000), REPEAT(x'00FF', 800000), 'a', 'y', '\"j\"', NULL)",
];

const QUERIES: [&str; 14] = [
    "SELECT * FROM c.t ORDER BY id",
    "SELECT bl, id, te, bl FROM c.t ORDER BY id DESC",
    "SELECT id FROM c.t WHERE 0",
    "SELECT NULL, '', 1, -1, 1.50, 1e0/3, 'a'",
    "SELECT AVG(d), AVG(i), SUM(f), SUM(dec_), COUNT(*), AVG(d3), MAX(f2), STD(tiny) FROM c.t",
    "SELECT ROUND(d, 2), ROUND(d3, 1), f * 2, f2 * 3, d3 / 7, d3 + 0, f + 0 FROM c.t ORDER BY id",
    "SELECT SEC_TO_TIME(1e5), TIMEDIFF('01:00:00', '03:00:00.5'), MAKETIME(-1, 2, 3.25)",
    "SELECT CAST('2026-11-28 01:02:03' AS DATETIME(3)), DATE('2026-11-28'), TIME('01:02:03.4')",
    "SELECT ti + INTERVAL 1 SECOND, dt6 + INTERVAL 1 MICROSECOND FROM c.t ORDER BY id",
    "SELECT y, bits, bits + 0, e, s, js, g FROM c.t ORDER BY id",
    "SELECT id FROM c.numbers ORDER BY id",
    "SELECT d FROM c.numbers ORDER BY id",
    "SELECT f FROM c.numbers ORDER BY id",
    "SELECT d, f, d3 FROM c.numbers ORDER BY id",
];

/// Numbers of all sizes, from a sequence that is the same each time.
fn numbers() -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let rows = (0..400).map(|id| {
        let (double, float) = loop {
            let (double, float) = (f64::from_bits(next()), f32::from_bits(next() as u32));
            // What is nearer to zero than a normal number is zero for some servers.
            if double.is_normal() && float.is_normal() && float.abs() < 1e38 {
                break (double, float);
            }
        };
        let plain = (next() >> 20) as f64 / 1e6;
        let double = if id % 2 == 0 { double } else { plain };
        let float = if id % 3 == 0 { float } else { plain as f32 };
        format!("({id}, {double:e}, {float:e}, {:.3})", plain / 1e3)
    });
    rows.collect::<Vec<_>>().join(",")
}

fn results_have_one_checksum(server: &TestServer) {
    let room = Scratch::new();
    let running = server.run(
        &server
            .prepare(&room.path().join("data"), &[])
            .with_networking(),
    );
    let (mut session, seen) = watched(&running);
    for sql in [
        "SET NAMES utf8mb4",
        "SET sql_mode = ''",
        "CREATE DATABASE c",
        TABLE,
    ] {
        session.run(sql).unwrap();
    }
    for row in ROWS {
        session
            .run(&format!("INSERT INTO c.t VALUES {row}"))
            .unwrap();
    }
    session
        .run("CREATE TABLE c.numbers (id INT PRIMARY KEY, d DOUBLE, f FLOAT, d3 DOUBLE(20,3))")
        .unwrap();
    let numbers = numbers();
    session
        .run(&format!("INSERT INTO c.numbers VALUES {numbers}"))
        .unwrap();
    for sql in QUERIES {
        seen.lock().unwrap().clear();
        let played = session.play(sql.as_bytes()).unwrap();
        assert_eq!(played.error, None, "{sql}");
        let mut prepared = session.prepare(sql).unwrap();
        // The second time, some servers leave the definitions out.
        for _ in 0..2 {
            session.execute(&mut prepared, &[]).unwrap();
        }
        session.run("DO 1").unwrap();
        let seen = seen.lock().unwrap();
        let of = |number: u8| {
            seen.iter()
                .filter(move |one| one.0 == number && one.1 == sql)
        };
        let text = of(command::QUERY).next().unwrap();
        assert!(played.checksum.is_some(), "{sql}");
        assert_eq!((text.2, text.3), (played.rows, played.checksum), "{sql}");
        let binary: Vec<_> = of(command::EXECUTE).collect();
        assert_eq!(binary.len(), 2, "{sql}");
        for binary in binary {
            assert_eq!((binary.2, binary.3), (text.2, text.3), "in binary: {sql}");
        }
    }
}

#[test]
fn on_mariadb_10_11() {
    results_have_one_checksum(&mariadb_10_11());
}

#[test]
fn on_mariadb_11_8() {
    results_have_one_checksum(&mariadb_11_8());
}

#[test]
fn on_mysql_5_7() {
    results_have_one_checksum(&mysql_5_7_22());
}

#[test]
fn on_mysql_8_0() {
    results_have_one_checksum(&mysql_8_0_15());
}

#[test]
fn on_mysql_9() {
    results_have_one_checksum(&mysql_9());
}
